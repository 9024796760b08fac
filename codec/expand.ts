// Owns expanding: a row back into the events it was made from, as values or as lines.

import type { Delta, SessionEvent } from './event.ts'
import { deltaEvent, deltaText } from './event.ts'
import { members } from './pack.ts'
import { Problem } from './problem.ts'
import type { ChunkRowEvent, SessionHistoryRecord } from './record.ts'
import { EVENT_LINE_START, rowFragments, rowKind, rowTimeAt, validateRecord } from './record.ts'

/**
 * The events of one record, in order. The record is checked whole before the first is made.
 * Throws `record/malformed`, also for an omitted range, whose events are not here.
 */
export function expandRecord(record: SessionHistoryRecord): SessionEvent[] {
  const checked = validateRecord(record)
  if (checked.type === 'event') return [checked.event]
  if (checked.type === 'omitted') {
    const { seq, data } = checked.event
    throw new Problem(
      'record/malformed',
      `the ${data.count} events from seq ${seq} on were left out; ask for them by range`,
      {
        path: '/type',
      },
    )
  }
  const events: SessionEvent[] = []
  for (const { delta, seq, time } of members(checked.event)) events.push(deltaEvent(delta, seq, time))
  return events
}

/** The events of many records, one record at a time. */
export function* expandRecords(records: Iterable<SessionHistoryRecord>): Generator<SessionEvent> {
  for (const record of records) yield* expandRecord(record)
}

/**
 * The record lines, without newlines, of the members of a valid row with `from <= seq < to`, one event a line.
 * Lazy: a row of a million members costs one line at a time.
 */
export function* expandRowLines(row: ChunkRowEvent, from = row.seq, to = Number.POSITIVE_INFINITY): Generator<string> {
  const fragments = rowFragments(row)
  const first = Math.max(0, from - row.seq)
  const end = Math.min(fragments.length, to - row.seq)
  if (first >= end) return
  const { before, after } = memberFrame(row)
  const start = EVENT_LINE_START + MEMBER_START
  const { dt } = row.data
  let time = rowTimeAt(row, row.seq + first)
  for (let k = first; k < end; k++) {
    if (k > first) time += dt[k - 1]!
    yield `${start}${row.seq + k}${MEMBER_TIME}${time}${before}${JSON.stringify(fragments[k])}${after}}`
  }
}

const MEMBER_START = '{"type":"assistant/chunk","seq":'
const MEMBER_TIME = ',"time":'

/**
 * What the texts of a row's events have in common, between the time and the fragment and after the fragment. It is cut
 * from the text of one such event, whose last value the fragment is, so that there is one spelling of a delta.
 */
function memberFrame(row: ChunkRowEvent): { before: string; after: string } {
  const { turn, step, index } = row.data
  const { id, name } = row.type === 'chunkrow/tool-call-chunks' ? row.data : { id: undefined, name: undefined }
  const blank: Delta = { kind: rowKind(row), turn, step, index, id, name, fragment: '' }
  const text = deltaText(blank, 0, 0)
  const fragment = text.lastIndexOf('""')
  return {
    before: text.slice(MEMBER_START.length + 1 + MEMBER_TIME.length + 1, fragment),
    after: text.slice(fragment + 2),
  }
}
