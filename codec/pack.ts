// Owns packing: consecutive deltas of one block become one row.
//
// The records of a log are a function of its events alone. A run grows from its first event; the member that would
// break a limit of the row starts the next one; a row of one or two members is written as events instead. So nothing
// here may depend on how the events came: one by one, in batches, or read back from rows.

import type { Delta, SessionEvent } from './event.ts'
import { deltaEvent, deltaOf, deltaText, LIMITS } from './event.ts'
import { jsonStringBytes } from './json-text.ts'
import type { ChunkRowEvent, SessionHistoryRecord } from './record.ts'
import { eventRecordLine, ROW_LEAST_MEMBERS, ROW_LINE_START, rowFragments, rowKind, rowTextOf } from './record.ts'

/** The digits of a safe integer, its sign included. */
function digits(value: number): number {
  let count = value < 0 ? 2 : 1
  for (let limit = 10; Math.abs(value) >= limit; limit *= 10) count++
  return count
}

/** UTF-8 bytes of `deltaText`, without building the text. */
export function deltaBytes(delta: Delta, seq: number, time: number): number {
  const { kind, turn, step, index, id, name, fragment } = delta
  let bytes = DELTA_FRAMES[kind] + digits(seq) + digits(time) + digits(turn) + digits(step) + digits(index)
  if (kind === 'tool-call-delta') {
    bytes += jsonStringBytes(id ?? '') - 2
    if (name !== undefined) bytes += '"name":,'.length + jsonStringBytes(name)
  }
  return bytes + jsonStringBytes(fragment)
}

/** The length of what all deltas of a kind have in common: five one-digit numbers and the fragment's quotes taken off. */
function deltaFrame(kind: Delta['kind']): number {
  const id = kind === 'tool-call-delta' ? '' : undefined
  return deltaText({ kind, turn: 0, step: 0, index: 0, id, name: undefined, fragment: '' }, 0, 0).length - 7
}

const DELTA_FRAMES: Record<Delta['kind'], number> = {
  'text-delta': deltaFrame('text-delta'),
  'reasoning-delta': deltaFrame('reasoning-delta'),
  'tool-call-delta': deltaFrame('tool-call-delta'),
}

/** Bytes of the record line of a row without members: all that is neither a gap, a fragment nor a comma between them. */
function frameBytes(delta: Delta, seq: number, time: number): number {
  const { kind, turn, step, index, id, name } = delta
  // The text of the empty row is exact but for `id` and `name`, the only parts that are not ASCII.
  const frame = rowTextOf(kind, seq, time, turn, step, index, '', name === undefined ? undefined : '', [], [])
  const texts = kind === 'tool-call-delta' ? jsonStringBytes(id ?? '') + jsonStringBytes(name ?? '') - 4 : 0
  return ROW_LINE_START.length + frame.length + 1 + texts
}

/**
 * One run being packed: what is, or will be, one row, or the one or two events too few for a row. It only grows.
 *
 * `rowBytes` is kept exact as it grows, so the owner may ask at any time, and no text is built before `lines()`.
 */
export class Run {
  readonly firstSeq: number
  readonly firstTime: number
  readonly #delta: Delta
  readonly #dt: number[] = []
  readonly #fragments: string[]
  readonly #frameBytes: number
  #lastTime: number
  #rowBytes: number
  // What accepts() found for the fragment that add() then takes, so that each is counted once.
  #askedFragment = ''
  #askedBytes = 2

  constructor(delta: Delta, seq: number, time: number) {
    this.firstSeq = seq
    this.firstTime = time
    this.#delta = delta
    this.#fragments = [delta.fragment]
    this.#lastTime = time
    this.#frameBytes = frameBytes(delta, seq, time)
    this.#rowBytes = this.#frameBytes + jsonStringBytes(delta.fragment)
  }

  /** Whether a row of this member alone keeps the limit. A member that does not is an event, and no run begins with it. */
  static fits(delta: Delta, seq: number, time: number): boolean {
    const { id, name, fragment } = delta
    // No escape is longer than six bytes a code unit, and all else of the line is far below 1,000: seldom more than this.
    if ((fragment.length + (id?.length ?? 0) + (name?.length ?? 0)) * 6 + 1000 <= LIMITS.rowBytes) return true
    return frameBytes(delta, seq, time) + jsonStringBytes(fragment) <= LIMITS.rowBytes
  }

  /** A valid row read back, to go on with. Takes copies of its arrays. */
  static ofRow(row: ChunkRowEvent): Run {
    const { turn, step, index, dt } = row.data
    const fragments = rowFragments(row)
    const { id, name } = row.type === 'chunkrow/tool-call-chunks' ? row.data : { id: undefined, name: undefined }
    const delta = { kind: rowKind(row), turn, step, index, id, name, fragment: fragments[0]! }
    const run = new Run(delta, row.seq, row.time)
    for (let k = 1; k < fragments.length; k++) run.#append(fragments[k]!, jsonStringBytes(fragments[k]!), dt[k - 1]!)
    return run
  }

  get length(): number {
    return this.#fragments.length
  }

  get nextSeq(): number {
    return this.firstSeq + this.#fragments.length
  }

  get lastTime(): number {
    return this.#lastTime
  }

  /** Time of the member at this seq, epoch milliseconds. */
  timeAt(seq: number): number {
    return this.#timeOf(seq - this.firstSeq)
  }

  /** Of `rowBytes`, what every part of the run repeats: all but its gaps and fragments. */
  get frameBytes(): number {
    return this.#frameBytes
  }

  /** UTF-8 bytes of the record line of the row, without newline, even while there are too few members for one. */
  get rowBytes(): number {
    return this.#rowBytes
  }

  /** Whether this delta is the row's next member: the same block, the next seq, a safe gap, within the limits. */
  accepts(delta: Delta, seq: number, time: number): boolean {
    const mine = this.#delta
    const gap = time - this.#lastTime
    if (
      seq !== this.firstSeq + this.#fragments.length ||
      delta.kind !== mine.kind ||
      delta.index !== mine.index ||
      delta.step !== mine.step ||
      delta.turn !== mine.turn ||
      delta.id !== mine.id ||
      delta.name !== mine.name ||
      !Number.isSafeInteger(gap) ||
      this.#fragments.length >= LIMITS.rowMembers
    ) {
      return false
    }
    const bytes = jsonStringBytes(delta.fragment)
    this.#askedFragment = delta.fragment
    this.#askedBytes = bytes
    return this.#rowBytes + addedBytes(this.#dt.length, bytes, gap) <= LIMITS.rowBytes
  }

  /** Takes the next member. The caller has asked `accepts()`. */
  add(delta: Delta, _seq: number, time: number): void {
    const { fragment } = delta
    const bytes = fragment === this.#askedFragment ? this.#askedBytes : jsonStringBytes(fragment)
    this.#append(fragment, bytes, time - this.#lastTime)
  }

  #append(fragment: string, bytes: number, gap: number): void {
    this.#rowBytes += addedBytes(this.#dt.length, bytes, gap)
    this.#lastTime += gap
    this.#dt.push(gap)
    this.#fragments.push(fragment)
  }

  /** The record lines, without newlines, of the members with `from <= seq < to`: one row, or one or two events. */
  lines(from = this.firstSeq, to = this.nextSeq): string[] {
    const { first, end } = this.#cut(from, to)
    if (end - first < ROW_LEAST_MEMBERS) {
      const lines: string[] = []
      for (let k = first; k < end; k++) {
        lines.push(eventRecordLine(deltaText(this.#member(k), this.firstSeq + k, this.#timeOf(k))))
      }
      return lines
    }
    const { kind, turn, step, index, id, name } = this.#delta
    const whole = end - first === this.#fragments.length
    const dt = whole ? this.#dt : this.#dt.slice(first, end - 1)
    const fragments = whole ? this.#fragments : this.#fragments.slice(first, end)
    const time = this.#timeOf(first)
    return [
      `${ROW_LINE_START}${rowTextOf(kind, this.firstSeq + first, time, turn, step, index, id, name, dt, fragments)}}`,
    ]
  }

  /** The same as records. They share nothing that this run goes on to change. */
  records(from = this.firstSeq, to = this.nextSeq): SessionHistoryRecord[] {
    const { first, end } = this.#cut(from, to)
    if (end - first < ROW_LEAST_MEMBERS) {
      const records: SessionHistoryRecord[] = []
      for (let k = first; k < end; k++) {
        records.push({ type: 'event', event: deltaEvent(this.#member(k), this.firstSeq + k, this.#timeOf(k)) })
      }
      return records
    }
    const { kind, turn, step, index, id, name } = this.#delta
    const seq = this.firstSeq + first
    const time = this.#timeOf(first)
    const dt = this.#dt.slice(first, end - 1)
    const fragments = this.#fragments.slice(first, end)
    const event: ChunkRowEvent =
      kind === 'tool-call-delta'
        ? {
            type: 'chunkrow/tool-call-chunks',
            seq,
            time,
            data: { turn, step, index, id: id ?? '', ...(name === undefined ? {} : { name }), dt, args: fragments },
          }
        : {
            type: kind === 'text-delta' ? 'chunkrow/text-chunks' : 'chunkrow/reasoning-chunks',
            seq,
            time,
            data: { turn, step, index, dt, texts: fragments },
          }
    return [{ type: 'chunks', event }]
  }

  #cut(from: number, to: number): { first: number; end: number } {
    return { first: Math.max(0, from - this.firstSeq), end: Math.min(this.#fragments.length, to - this.firstSeq) }
  }

  #member(k: number): Delta {
    return { ...this.#delta, fragment: this.#fragments[k]! }
  }

  #timeOf(k: number): number {
    let time = this.firstTime
    for (let i = 0; i < k; i++) time += this.#dt[i]!
    return time
  }
}

/** What one more member adds to the line: its fragment after a comma, and its gap, after a comma unless it is the first. */
function addedBytes(gaps: number, fragmentBytes: number, gap: number): number {
  return fragmentBytes + 1 + digits(gap) + (gaps === 0 ? 0 : 1)
}

/** The members of a valid row, one after the other; nothing is kept. */
export function* members(row: ChunkRowEvent): Generator<{ delta: Delta; seq: number; time: number }> {
  const kind = rowKind(row)
  const { turn, step, index, dt } = row.data
  const { id, name } = row.type === 'chunkrow/tool-call-chunks' ? row.data : { id: undefined, name: undefined }
  const fragments = rowFragments(row)
  let time = row.time
  for (let k = 0; k < fragments.length; k++) {
    if (k > 0) time += dt[k - 1]!
    yield { delta: { kind, turn, step, index, id, name, fragment: fragments[k]! }, seq: row.seq + k, time }
  }
}

/**
 * Packs events as they come. Each `push` gives the records that it completed, in order, and `end` the rest; how the
 * events are spread over calls changes nothing in the records.
 */
export class Packer {
  #run: Run | undefined

  push(event: SessionEvent): SessionHistoryRecord[] {
    const delta = deltaOf(event)
    const { seq, time } = event
    if (delta !== undefined && this.#run?.accepts(delta, seq, time)) {
      this.#run.add(delta, seq, time)
      return []
    }
    const done = this.end()
    if (delta !== undefined && Run.fits(delta, seq, time)) this.#run = new Run(delta, seq, time)
    else done.push({ type: 'event', event })
    return done
  }

  end(): SessionHistoryRecord[] {
    const run = this.#run
    this.#run = undefined
    return run === undefined ? [] : run.records()
  }
}

/** The records of consecutive events: runs of three or more as rows, all else as it is. */
export function packEvents(events: Iterable<SessionEvent>): SessionHistoryRecord[] {
  const packer = new Packer()
  const records: SessionHistoryRecord[] = []
  for (const event of events) for (const record of packer.push(event)) records.push(record)
  for (const record of packer.end()) records.push(record)
  return records
}
