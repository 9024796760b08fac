// Owns turning events into the lines of an append, exactly: what JSON cannot carry is refused before anything is sent.

import type { ChunkRowEvent, JsonValue, SessionEvent, SurfaceOp } from '../../codec/index.ts'
import { eventText, Problem, rowFragments, rowRecordLine, scanObject, validateRecord } from '../../codec/index.ts'
import { InputError } from './errors.ts'

/** An event to append. All events of one append carry their `seq`, or none does. */
export interface NewEvent {
  /** 1 to 200 characters; not one of the words of the formats themselves */
  type: string
  /** place in the log */
  seq?: number | undefined
  /** epoch milliseconds; given with `seq`. An event without both is stamped by the service */
  time?: number | undefined
  data: JsonValue
  ignorable?: true | undefined
  /** earlier seqs, on the three surface types only */
  sourceEventSeqs?: number[] | undefined
  /** on the three surface types only */
  surfaceOp?: SurfaceOp | undefined
}

/** What can be appended: an event, or a record as the service gives it. */
export type AppendItem =
  | NewEvent
  | { readonly type: 'event'; readonly event: NewEvent }
  | { readonly type: 'chunks'; readonly event: ChunkRowEvent }

/** The lines of an append that are encoded already. */
export interface AppendLines {
  /** lines of an append body, newlines included; with their seq on all of them, or on none */
  readonly lines: string
  /** events that the lines hold, the members of rows counted */
  readonly events: number
  /** the seq that the first gets, when they carry none */
  readonly expectedSeq?: number | undefined
  /** whether they carry their seq */
  readonly numbered: boolean
}

/** Throws InputError for the first event that cannot be appended, or whose seq does not follow the one before it. */
export function encodeAppend(items: Iterable<AppendItem>): AppendLines {
  const lines: string[] = []
  let events = 0
  let numbered: boolean | undefined
  let next: number | undefined
  for (const item of items) {
    const { text, seq, count } = encoded(item, lines.length + 1)
    const fault = placeFault(numbered, next, seq)
    if (fault) throw new InputError(new Problem('event/invalid', fault, { path: '/seq' }), lines.length + 1)
    numbered = seq !== undefined
    next = seq === undefined ? undefined : seq + count
    events += count
    lines.push(`${text}\n`)
  }
  return { lines: lines.join(''), events, numbered: numbered ?? false }
}

function placeFault(numbered: boolean | undefined, next: number | undefined, seq: number | undefined) {
  if (numbered === undefined) return undefined
  if (numbered !== (seq !== undefined)) return 'one append has seq on all of its events or on none'
  return seq === next ? undefined : `seq must be ${next} after the event before it, got ${seq}`
}

function encoded(item: AppendItem, line: number): { text: string; seq?: number; count: number } {
  try {
    const record = item as { type?: unknown; event?: unknown }
    if (record?.type === 'event' && 'event' in record) return encodedEvent(record.event as NewEvent)
    if (record?.type !== 'chunks') return encodedEvent(item as NewEvent)
    const row = validateRecord(item).event as ChunkRowEvent
    return { text: rowRecordLine(row), seq: row.seq, count: rowFragments(row).length }
  } catch (error) {
    throw error instanceof Problem ? new InputError(error, line) : error
  }
}

/** After every place in a log, so that the sources of an event are all before it. */
const NO_PLACE = { seq: Number.MAX_SAFE_INTEGER, time: 0 } as const

function encodedEvent(event: NewEvent): { text: string; seq?: number; count: number } {
  const fields = Object.entries(event ?? {}).filter(([, value]) => value !== undefined)
  const given = Object.fromEntries(fields) as unknown as SessionEvent
  if (given.seq !== undefined && given.time === undefined) {
    throw new Problem('event/invalid', 'seq is given without time', { path: '/time' })
  }
  if (typeof event !== 'object' || event === null || given.seq !== undefined) {
    return { text: eventText(event as SessionEvent), seq: given.seq, count: 1 }
  }
  // The codec writes events that have a place; what was not given is left out of its text again.
  const text = eventText({ ...NO_PLACE, ...given })
  const members = scanObject(text).members.filter(({ key }) => !(key in NO_PLACE) || Object.hasOwn(given, key))
  const texts = members.map(({ key, start, end }) => `${JSON.stringify(key)}:${text.slice(start, end)}`)
  return { text: `{${texts.join(',')}}`, count: 1 }
}
