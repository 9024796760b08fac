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
import { nextTurnIfLong } from './event-loop.ts'
import type { Group, HistoryStore, SessionState, StoredRecord } from './store.ts'

/** Whole NDJSON lines that cover `[from, to)`; with omitted chunks, all of it that is told by now. */
export interface PagePiece {
  readonly from: number
  readonly to: number
  readonly bytes: Uint8Array
}

/** Whole lines, and the seq up to which everything is covered. */
interface Batch {
  readonly lines: readonly Uint8Array[]
  readonly to: number
}

/** The first batch is small so that the first line leaves at once; later ones are large enough to cost few turns. */
const FIRST_BATCH_BYTES = 16 * 1024
const BATCH_BYTES = 256 * 1024
const GATHERED_BYTES = 64 * 1024

/** Memory for a piece of a body, of this many bytes. */
export type Allocate = (bytes: number) => Buffer

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

  /**
   * The body in pieces.
   * @param allocate gives the memory of a piece, which its owner may use again once the piece has been sent
   * @throws Problem when the store fails or the session is deleted meanwhile
   */
  async *bytes(media: PageMedia, allocate: Allocate = Buffer.allocUnsafe): AsyncGenerator<Uint8Array> {
    if (media === 'ndjson') yield* this.#lines(allocate)
    else yield* this.#document(allocate)
  }

  async *#lines(allocate: Allocate): AsyncGenerator<Uint8Array> {
    for await (const { lines } of this.#batches()) yield join(lines, allocate)
  }

  /** The body as NDJSON in pieces that say what they cover. @throws as `bytes` does */
  async *pieces(): AsyncGenerator<PagePiece> {
    let from = this.from
    for await (const { lines, to } of this.#batches()) {
      yield { from, to, bytes: join(lines, Buffer.allocUnsafe) }
      from = to
    }
  }

  /** `{ epoch, from, to, hasMore, records: [...] }`, streamed. */
  async *#document(allocate: Allocate): AsyncGenerator<Uint8Array> {
    const head = { epoch: this.epoch, from: this.from, to: this.to, hasMore: this.hasMore }
    yield Buffer.from(`${JSON.stringify(head).slice(0, -1)},"records":[`)
    let first = true
    for await (const { lines } of this.#batches()) {
      const records = join(first ? lines : [Buffer.of(COMMA), ...lines], allocate).subarray(0, -1)
      first = false
      // A JSON text holds no line feed, so each one here ends a record.
      for (let at = records.indexOf(LINE_FEED); at >= 0; at = records.indexOf(LINE_FEED, at + 1)) records[at] = COMMA
      yield records
    }
    yield Buffer.from(']}\n')
  }

  /** Batches of whole lines. */
  #batches(): AsyncGenerator<Batch> {
    if (this.chunks === 'omit') return gathered(this.#omitting())
    return this.#stretch(this.from, this.to, new BatchSize())
  }

  async *#stretch(from: number, to: number, size: BatchSize): AsyncGenerator<Batch> {
    let at = from
    while (at < to) {
      const records = await this.#store.read(this.session.log, at, to, { maxBytes: size.next(), chunkLines: true })
      if (this.chunks === 'expanded') yield* expandedLines(records, at, to)
      else yield { lines: records.flatMap((record) => cutLines(record, at, to)), to: Math.min(endOf(records), to) }
      at = endOf(records)
    }
  }

  /** Inside a message's group its chunks are counted, not read; everything else is sent. */
  async *#omitting(): AsyncGenerator<Batch> {
    const size = new BatchSize()
    const omitted = new OmittedStretch()
    let at = this.from
    for (const group of await this.#store.messageGroups(this.session.log, this.from, this.to)) {
      if (at < group.start) {
        const lines = omitted.end()
        if (lines.length > 0) yield { lines, to: at }
        yield* this.#stretch(at, group.start, size)
      }
      yield* this.#group(group, size, omitted)
      at = group.end
    }
    const lines = omitted.end()
    if (lines.length > 0) yield { lines, to: at }
    yield* this.#stretch(at, this.to, size)
  }

  async *#group(group: Group, size: BatchSize, omitted: OmittedStretch): AsyncGenerator<Batch> {
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
      at = Math.min(endOf(records), group.end)
      if (lines.length > 0) yield { lines, to: at - omitted.count }
    }
  }
}

const COMMA = 0x2c
const LINE_FEED = 0x0a
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/**
 * The lines as one, and their memory given back: it lies outside the heap, where a page's worth of lines would wait for
 * the next full collection. The store's lines are this reader's own.
 */
function join(lines: readonly Uint8Array[], allocate: Allocate): Buffer {
  const joined = allocate(lines.reduce((sum, line) => sum + line.length, 0))
  let at = 0
  for (const line of lines) {
    joined.set(line, at)
    at += line.length
    const { buffer, byteLength } = line
    if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
  }
  return joined
}

/** Between omitted stretches stand few lines: they leave together, all but the first. */
async function* gathered(batches: AsyncGenerator<Batch>): AsyncGenerator<Batch> {
  let lines: Uint8Array[] = []
  let bytes = 0
  let enough = 1
  let to = 0
  for await (const batch of batches) {
    lines.push(...batch.lines)
    bytes += batch.lines.reduce((sum, line) => sum + line.length, 0)
    to = batch.to
    if (bytes < enough) continue
    yield { lines, to }
    lines = []
    bytes = 0
    enough = GATHERED_BYTES
  }
  if (lines.length > 0) yield { lines, to }
}

/**
 * What was committed in `[from, to)`, a line for each event: what those who are level with a log get, and nobody waits
 * longer for than it takes.
 * @throws Problem when the store fails or the session is deleted meanwhile
 */
export async function* livePieces(
  store: HistoryStore,
  log: number,
  from: number,
  to: number,
): AsyncGenerator<PagePiece> {
  const size = new BatchSize()
  let at = from
  while (at < to) {
    const records = await store.read(log, at, to, { maxBytes: size.next(), chunkLines: true })
    const end = endOf(records)
    for await (const batch of expandedLines(records, at, to)) {
      yield { from: at, to: batch.to, bytes: join(batch.lines, Buffer.allocUnsafe) }
      at = batch.to
    }
    at = end
  }
}

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

  /** Events counted, and not told yet. */
  get count(): number {
    return this.#count
  }

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

/** Expanded lines go out in groups of about this many characters: a few milliseconds of work, whatever a member holds. */
const EXPANDED_CHARACTERS = 64 * 1024

async function* expandedLines(records: readonly StoredRecord[], from: number, to: number): AsyncGenerator<Batch> {
  let lines: Uint8Array[] = []
  let at = from
  for (const record of records) {
    if (record.kind !== 'row') {
      lines.push(lineOf(record))
      at = record.last + 1
      continue
    }
    let texts: string[] = []
    let characters = 0
    for (const text of expandRowLines(parseRowLine(record), at, Math.min(to, record.last + 1))) {
      texts.push(text)
      characters += text.length
      at++
      if (characters < EXPANDED_CHARACTERS) continue
      lines.push(encodeLines(texts))
      yield { lines, to: at }
      await nextTurnIfLong()
      lines = []
      texts = []
      characters = 0
    }
    if (texts.length > 0) lines.push(encodeLines(texts))
  }
  if (lines.length > 0) yield { lines, to: at }
}

function encodeLines(texts: readonly string[]): Uint8Array {
  return encoder.encode(`${texts.join('\n')}\n`)
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
