/**
 * Owns what tests and benchmarks need around a log: append bodies, bodies read back, walks over pages, the checkers of
 * what a reader was given, and models of the rules so plain that they are right at a glance.
 */
import assert from 'node:assert/strict'
import type { ChunksMode, SessionEvent, SessionHistoryRecord } from '../../codec/index.ts'
import {
  deltaOf,
  expandRecord,
  groupStart,
  isMessage,
  packEvents,
  recordRange,
  rowRecordLine,
  validateRecord,
} from '../../codec/index.ts'
import type { AppendBody, History, Page, SessionTarget } from '../../src/history/index.ts'

// ---- bodies -------------------------------------------------------------------------------------------------------

export function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

/** An NDJSON body of these lines. */
export function bodyOf(...lines: string[]): AppendBody {
  return { format: 'ndjson', bytes: [bytesOf(lines.map((line) => `${line}\n`).join(''))] }
}

/** The body of these events, one a line. */
export function bodyOfEvents(events: readonly SessionEvent[]): AppendBody {
  return bodyOf(...events.map((event) => JSON.stringify(event)))
}

/** An event without place: whoever takes it numbers it. */
export function unplaced(event: SessionEvent, withTime: boolean): object {
  const { seq: _seq, time, ...rest } = event
  return withTime ? { ...rest, time } : rest
}

/** The same event with the keys of all its objects turned around. Only a packable delta is still the same to a log. */
export function turnedKeys(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, turnedKeys(item)]),
  )
}

/** The ways to write one event on a line; a row can stand for three or more of them. */
export type LineForm = 'bare' | 'record' | 'spaced' | 'turned'

export function lineOf(event: SessionEvent, form: LineForm): string {
  if (form === 'record') return `{"type":"event","event":${JSON.stringify(event)}}`
  if (form === 'spaced') return ` ${JSON.stringify(event).replace(/^\{/, '{ ').replace(/\}$/, '\t}')} `
  if (form === 'turned' && deltaOf(event)) return JSON.stringify(turnedKeys(event))
  return JSON.stringify(event)
}

export function recordLine(record: SessionHistoryRecord): string {
  return record.type === 'chunks' ? rowRecordLine(record.event) : JSON.stringify(record)
}

/** A short log of plain messages: so many, each with its number as content. */
export function messagesLog(count: number, from = 0): SessionEvent[] {
  return Array.from({ length: count }, (_, index) => userMessage(from + index))
}

export function userMessage(seq: number): SessionEvent {
  return {
    type: 'user/message',
    seq,
    time: 1_785_000_000_000,
    data: { content: `message ${seq}` },
    surfaceOp: 'append',
  }
}

export function textDelta(seq: number, text = 'x', index = 0): SessionEvent {
  const chunk = { type: 'text-delta', index, text }
  return { type: 'assistant/chunk', seq, time: 1_785_000_000_000 + seq, data: { turn: 0, step: 0, chunk } }
}

export function textDeltas(from: number, to: number): SessionEvent[] {
  return Array.from({ length: to - from }, (_, index) => textDelta(from + index))
}

export function assistantMessage(seq: number, sourceEventSeqs: number[]): SessionEvent {
  const message = { id: `m${seq}`, role: 'assistant', content: `answer ${seq}` }
  const data = { turn: 0, step: 0, message }
  return { type: 'assistant/message', seq, time: 1_785_000_000_000 + seq, data, sourceEventSeqs, surfaceOp: 'append' }
}

// ---- what a reader was given --------------------------------------------------------------------------------------

export async function collect(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const part of bytes) parts.push(part)
  return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))
}

/** Lines without their newlines; the last one must have had its own. */
export function linesOf(text: string): string[] {
  if (text === '') return []
  assert(text.endsWith('\n'), 'the body ends inside a line')
  return text.slice(0, -1).split('\n')
}

export function recordsOf(text: string): SessionHistoryRecord[] {
  return linesOf(text).map((line) => validateRecord(JSON.parse(line)))
}

/** The records of a page, checked to cover it. */
export async function pageRecords(page: Page): Promise<SessionHistoryRecord[]> {
  const records = recordsOf(await collect(page.bytes('ndjson')))
  assertCovers(records, page.from, page.to)
  return records
}

/** Each record begins where the one before it ended. Returns the seq after the last. */
export function assertGapless(records: readonly SessionHistoryRecord[], from: number): number {
  let next = from
  for (const record of records) {
    const { from: first, to } = recordRange(record)
    assert.equal(first, next, `a record begins at ${first}, but ${next} is the next seq`)
    next = to
  }
  return next
}

/** The records cover `[from, to)` exactly, without gap or overlap. */
export function assertCovers(records: readonly SessionHistoryRecord[], from: number, to: number): void {
  assert.equal(assertGapless(records, from), to, `the records from ${from} on do not end at ${to}`)
}

/** Every event of the records; an omitted range is fetched with `fetch`. */
export async function eventsOf(
  records: readonly SessionHistoryRecord[],
  fetch?: (from: number, to: number) => Promise<SessionHistoryRecord[]>,
): Promise<SessionEvent[]> {
  const events: SessionEvent[] = []
  for (const record of records) {
    if (record.type !== 'omitted' || !fetch) {
      events.push(...expandRecord(record))
      continue
    }
    const { from, to } = recordRange(record)
    const fetched = await fetch(from, to)
    assertCovers(fetched, from, to)
    assert.equal(fetched[0]?.event.time, record.event.time, 'an omitted range tells the time of its first event')
    events.push(...(await eventsOf(fetched)))
  }
  return events
}

/** All pages of a session, the newest first, each joined to the next at its start and at one epoch. */
export async function* walkPages(
  history: History,
  target: SessionTarget,
  options: { maxMessages: number; chunks?: ChunksMode },
): AsyncGenerator<Page> {
  const { maxMessages, chunks = 'packed' } = options
  let page = await history.page(target, { maxMessages, chunks })
  for (;;) {
    yield page
    if (!page.hasMore) return
    const { from, epoch } = page
    page = await history.page(target, { maxMessages, chunks, beforeSeq: from, epoch })
    assert.equal(page.to, from, 'a page joins the one after it')
    assert(page.from < page.to, 'a page takes the walk further')
  }
}

// ---- models -------------------------------------------------------------------------------------------------------

/** Where a page begins that ends before `end`, straight from the rule. */
export function pageStartOf(events: readonly SessionEvent[], end: number, maxMessages: number): number {
  const messages = events.filter((event) => event.seq < end && isMessage(event))
  const counted = messages.at(-maxMessages)
  if (!counted) return 0
  let start = groupStart(counted.seq, counted.sourceEventSeqs)
  for (;;) {
    const cut = messages.find(({ seq, sourceEventSeqs }) => seq >= start && groupStart(seq, sourceEventSeqs) < start)
    if (!cut) return start
    start = groupStart(cut.seq, cut.sourceEventSeqs)
  }
}

/** The seqs of the chunks that `omit` leaves out of the page `[from, to)`. */
export function omittedSeqs(events: readonly SessionEvent[], from: number, to: number): Set<number> {
  const messages = events.filter((event) => event.seq >= from && event.seq < to && isMessage(event))
  const chunks = events.filter(({ type, seq }) => type === 'assistant/chunk' && seq >= from && seq < to)
  return new Set(
    chunks
      .map(({ seq }) => seq)
      .filter((seq) => messages.some((each) => groupStart(each.seq, each.sourceEventSeqs) <= seq && seq < each.seq)),
  )
}

/** UTF-8 bytes of the texts of all events. */
export function logBytes(events: readonly SessionEvent[]): number {
  return events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event)), 0)
}

/** The records of `[from, to)`, packed: those of the whole log, the edges cut. */
export function packedRange(events: readonly SessionEvent[], from: number, to: number): SessionHistoryRecord[] {
  return packEvents(events).flatMap((record) => {
    const range = recordRange(record)
    return packEvents(events.slice(Math.max(range.from, from), Math.max(Math.min(range.to, to), 0)))
  })
}

/** The body of a page, by the rules of its mode. */
export function pageText(events: readonly SessionEvent[], from: number, to: number, chunks: ChunksMode): string {
  const lines = (records: readonly SessionHistoryRecord[]): string =>
    records.map((each) => `${recordLine(each)}\n`).join('')
  const alone = (event: SessionEvent): SessionHistoryRecord => ({ type: 'event', event })
  if (chunks === 'expanded') return lines(events.slice(from, to).map(alone))
  if (chunks === 'packed') return lines(packedRange(events, from, to))
  const omitted = omittedSeqs(events, from, to)
  let text = ''
  for (let at = from; at < to; ) {
    let end = at + 1
    while (end < to && omitted.has(end) === omitted.has(at)) end++
    text += omitted.has(at)
      ? `{"type":"omitted","event":{"type":"chunkrow/omitted","seq":${at},"time":${events[at]?.time},"data":{"count":${end - at}}}}\n`
      : lines(packedRange(events, at, end))
    at = end
  }
  return text
}
