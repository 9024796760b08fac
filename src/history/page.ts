// A page: a contiguous range of a log and the bytes that show it. Whole lines go from the store to the reader as they
// are; only the rows that an edge cuts are parsed. The body is pulled: nothing is read before the reader takes it.

import type { ChunkRowEvent, ChunksMode } from '../../codec/index.ts'
import {
  eventRecordLine,
  expandRowLines,
  omittedRecordLine,
  rowRecordLine,
  rowTimeAt,
  sliceRow,
  validateRow,
} from '../../codec/index.ts'
import type { Group, HistoryStore, SessionState, StoredRecord } from './store.ts'

/** The first batch is small so that the first line leaves at once; later ones are large enough to cost few turns. */
const FIRST_BATCH_BYTES = 16 * 1024
const BATCH_BYTES = 256 * 1024

export type PageMedia = 'ndjson' | 'json'

export interface PageRange {
  /** Inclusive. */
  readonly from: number
  /** Exclusive. */
  readonly to: number
  /** The caller named the end, so the bytes can never change. */
  readonly fixed: boolean
  readonly chunks: ChunksMode
}

export class Page {
  readonly session: SessionState
  readonly from: number
  readonly to: number
  readonly fixed: boolean
  readonly chunks: ChunksMode
  readonly #store: HistoryStore

  constructor(store: HistoryStore, session: SessionState, range: PageRange) {
    this.#store = store
    this.session = session
    this.from = range.from
    this.to = range.to
    this.fixed = range.fixed
    this.chunks = range.chunks
  }

  get epoch(): string {
    return this.session.epoch
  }

  get hasMore(): boolean {
    return this.from > 0
  }

  /** The log's head, on pages whose end was not given. */
  get head(): number | undefined {
    return this.fixed ? undefined : this.session.head
  }

  /** Names the bytes of the page, all but their content coding. */
  tag(media: PageMedia): string {
    return `${this.epoch}.${this.from}.${this.to}.${this.chunks}.${media}`
  }

  /** The body in pieces. @throws Problem when the store fails or the session is deleted meanwhile */
  async *bytes(media: PageMedia): AsyncGenerator<Uint8Array> {
    if (media === 'ndjson') yield* this.#lines()
    else yield* this.#document()
  }

  async *#lines(): AsyncGenerator<Uint8Array> {
    for await (const lines of this.#batches()) yield Buffer.concat(lines)
  }

  /** `{ epoch, from, to, hasMore, records: [...] }`, streamed. */
  async *#document(): AsyncGenerator<Uint8Array> {
    const head = { epoch: this.epoch, from: this.from, to: this.to, hasMore: this.hasMore }
    yield Buffer.from(`${JSON.stringify(head).slice(0, -1)},"records":[`)
    let first = true
    for await (const lines of this.#batches()) {
      const parts: Uint8Array[] = []
      for (const line of lines) {
        if (!first) parts.push(COMMA)
        first = false
        parts.push(line.subarray(0, -1))
      }
      yield Buffer.concat(parts)
    }
    yield Buffer.from(']}\n')
  }

  /** Batches of whole lines. */
  #batches(): AsyncGenerator<Uint8Array[]> {
    if (this.chunks === 'omit') return this.#omitting()
    return this.#stretch(this.from, this.to, new BatchSize())
  }

  async *#stretch(from: number, to: number, size: BatchSize): AsyncGenerator<Uint8Array[]> {
    let at = from
    while (at < to) {
      const records = await this.#store.read(this.session.log, at, to, { maxBytes: size.next(), chunkLines: true })
      if (this.chunks === 'expanded') yield* expandedLines(records, at, to)
      else yield records.flatMap((record) => cutLines(record, at, to))
      at = endOf(records)
    }
  }

  /** Inside a message's group its chunks are counted, not read; everything else is sent. */
  async *#omitting(): AsyncGenerator<Uint8Array[]> {
    const size = new BatchSize()
    const omitted = new OmittedStretch()
    let at = this.from
    for (const group of await this.#store.messageGroups(this.session.log, this.from, this.to)) {
      if (at < group.start) {
        const lines = omitted.end()
        if (lines.length > 0) yield lines
        yield* this.#stretch(at, group.start, size)
      }
      yield* this.#group(group, size, omitted)
      at = group.end
    }
    const lines = omitted.end()
    if (lines.length > 0) yield lines
    yield* this.#stretch(at, this.to, size)
  }

  async *#group(group: Group, size: BatchSize, omitted: OmittedStretch): AsyncGenerator<Uint8Array[]> {
    let at = group.start
    while (at < group.end) {
      const records = await this.#store.read(this.session.log, at, group.end, {
        maxBytes: size.next(),
        chunkLines: false,
      })
      const lines: Uint8Array[] = []
      for (const record of records) {
        if (record.kind === 'event') lines.push(...omitted.end(), ...cutLines(record, at, group.end))
        else omitted.add(record, at, group.end)
      }
      if (lines.length > 0) yield lines
      at = endOf(records)
    }
  }
}

const COMMA = Buffer.from(',')
const encoder = new TextEncoder()
const decoder = new TextDecoder()

class BatchSize {
  #first = true

  next(): number {
    const bytes = this.#first ? FIRST_BATCH_BYTES : BATCH_BYTES
    this.#first = false
    return bytes
  }
}

/** One stretch of chunks left out, grown over as many records and batches as it spans. */
class OmittedStretch {
  #seq = 0
  #time = 0
  #count = 0

  add(record: StoredRecord, from: number, to: number): void {
    const first = Math.max(record.first, from)
    if (this.#count === 0) {
      this.#seq = first
      this.#time = first === record.first ? record.time : rowTimeAt(parseRowLine(record), first)
    }
    this.#count += Math.min(record.last + 1, to) - first
  }

  end(): Uint8Array[] {
    if (this.#count === 0) return []
    const line = encoder.encode(`${omittedRecordLine(this.#seq, this.#time, this.#count)}\n`)
    this.#count = 0
    return [line]
  }
}

/** The part of a record inside `[from, to)`, as lines. */
function cutLines(record: StoredRecord, from: number, to: number): Uint8Array[] {
  if (record.first >= from && record.last < to) return [lineOf(record)]
  const part = sliceRow(parseRowLine(record), Math.max(from, record.first), Math.min(to, record.last + 1))
  const lines = Array.isArray(part)
    ? part.map((event) => eventRecordLine(JSON.stringify(event)))
    : [rowRecordLine(part)]
  return lines.map((line) => encoder.encode(`${line}\n`))
}

/** Members go out in groups of this many, so that one row holds the thread for a few milliseconds at most. */
const EXPAND_MEMBERS = 512

function* expandedLines(records: readonly StoredRecord[], from: number, to: number): Generator<Uint8Array[]> {
  let whole: Uint8Array[] = []
  for (const record of records) {
    if (record.kind !== 'row') {
      whole.push(lineOf(record))
      continue
    }
    let texts: string[] = []
    for (const line of expandRowLines(
      parseRowLine(record),
      Math.max(from, record.first),
      Math.min(to, record.last + 1),
    )) {
      if (texts.push(line) < EXPAND_MEMBERS) continue
      yield [...whole, encoder.encode(`${texts.join('\n')}\n`)]
      whole = []
      texts = []
    }
    if (texts.length > 0) whole.push(encoder.encode(`${texts.join('\n')}\n`))
  }
  if (whole.length > 0) yield whole
}

function parseRowLine(record: StoredRecord): ChunkRowEvent {
  return validateRow(JSON.parse(decoder.decode(lineOf(record))).event)
}

function lineOf(record: StoredRecord): Uint8Array {
  if (record.line === undefined) throw new Error(`the store left out the line of record ${record.first}`)
  return record.line
}

function endOf(records: readonly StoredRecord[]): number {
  const last = records.at(-1)
  if (last === undefined) throw new Error('the store answered no record for a range inside the log')
  return last.last + 1
}
