// The rules by which a log grows: numbering, duplicates, gaps, the surface, and packing. A store calls it inside one of
// its transactions, on the one thread that writes, and gives it the few reads and writes it needs (`LogStorage`).
//
// Open run: deltas are stored as they come, a piece for each request, so that each is durable at once. When the run
// closes, its pieces become the canonical row. So a line is written once, and at most once more; what is canonical is
// never touched again.

import type { ChunkRowEvent, Delta, EventText, SurfaceOp } from '../../codec/index.ts'
import {
  checkSources,
  deltaBytes,
  deltaText,
  eventRecordLine,
  groupStart,
  isMessage,
  members,
  messageSlice,
  numberEvent,
  Problem,
  Run,
  utf8Bytes,
} from '../../codec/index.ts'
import type { NumberedItem } from './append-input.ts'
import { atLine } from './append-input.ts'
import type { RecordKind } from './store.ts'

/**
 * A row says its tool call's id and name once, and each of its members has them. Ordinary ones are short; the members of
 * rows with longer ones may take this many bytes in one request, or a line could stand for terabytes.
 */
const LONG_NAME_CHARACTERS = 16 * 1024
const LONG_NAMES_CHARACTERS = 64 * 1024 * 1024

export interface NewRecord {
  readonly first: number
  readonly last: number
  readonly kind: RecordKind
  readonly time: number
  /** Without its newline. */
  readonly line: string
}

export interface NewSurfaceEntry {
  readonly seq: number
  readonly type: string
  readonly message: boolean
  readonly groupStart: number
  /** The smallest seq that a page must reach back to when it holds this message and cuts none. */
  readonly pageStart: number
  /** Its place: its own seq, or the place of the first entry it replaces. */
  readonly position: number
  /** Bytes of the message's text inside the stored line; absent when it is not shown to the model. */
  readonly slice: { readonly start: number; readonly end: number } | undefined
}

export interface StoredEvent {
  readonly seq: number
  readonly time: number
  readonly text: string
}

/** The log's end, as the writer keeps it between requests. */
export interface LogState {
  head: number
  messages: number
  bytes: number
  /** The run that may still grow; its stored pieces are the records from its first seq on. */
  run: Run | undefined
  /** Records that hold the open run. */
  pieces: number
  /** First seq of the open run that is not stored. */
  unstored: number
}

/** What the rules need of a store, inside one transaction. */
export interface LogStorage {
  insertRecord(record: NewRecord): void
  /** Remove the records from this seq on. */
  deleteRecords(from: number): void
  insertSurface(entry: NewSurfaceEntry): void
  surfaceEntry(seq: number): { readonly position: number; readonly live: boolean } | undefined
  /** Take the live entries at these places off the surface, both included. */
  hideSurface(fromPosition: number, toPosition: number, bySeq: number): void
  /** The last message before this seq. */
  messageBefore(seq: number): { readonly seq: number; readonly pageStart: number } | undefined
  /** The stored events from this seq on, each with its canonical text. */
  storedEvents(from: number): Iterator<StoredEvent>
}

export interface AppendCounts {
  readonly appended: number
  readonly duplicates: number
}

export class LogWriter {
  readonly #state: LogState
  readonly #storage: LogStorage
  readonly #now: number

  /** @param now epoch milliseconds for events that come without a time */
  constructor(state: LogState, storage: LogStorage, now: number) {
    this.#state = state
    this.#storage = storage
    this.#now = now
  }

  /**
   * Apply one request. The caller commits, or on an error rolls back and forgets `state`.
   * @throws Problem `append/gap`, `append/conflict`, `event/invalid`, `request/invalid`, naming the line
   */
  append(items: Iterable<NumberedItem>, options: { expectedSeq?: number | undefined } = {}): AppendCounts {
    const { head } = this.#state
    let first: NumberedItem | undefined
    let numbered = true
    let next = head + 1
    let duplicates = 0
    let stored: Iterator<StoredEvent> | undefined
    let appended = 0
    let longNames = 0
    const take = (line: number, seq: number, time: number | undefined, text: (time: number) => string) => {
      if (seq !== next) throw gap(next, head, line)
      next++
      if (seq > this.#state.head) return true
      stored ??= this.#storage.storedEvents(seq)
      const there = stored.next().value
      // A time that the server gave is not the producer's to repeat.
      if (there?.seq !== seq || there.text !== text(time ?? there.time)) throw conflict(seq, head, line)
      duplicates++
      return false
    }
    for (const each of items) {
      const { line, item } = each
      if (!first) {
        first = each
        numbered = seqOf(each) !== undefined
        next = firstSeq(each, options.expectedSeq, head)
      }
      if ((item.kind === 'row' || item.event.seq !== undefined) !== numbered) throw mixed(line)
      if (item.kind === 'row') {
        longNames += longNameCharacters(item.row)
        if (longNames > LONG_NAMES_CHARACTERS) {
          throw new Problem('request/too-large', 'the ids and names of the rows stand for too many bytes of events', {
            line,
            limit: LONG_NAMES_CHARACTERS,
          })
        }
        for (const { delta, seq, time } of members(item.row)) {
          if (!take(line, seq, time, () => deltaText(delta, seq, time))) continue
          this.#delta(delta, seq, time)
          appended++
        }
        continue
      }
      const { event } = item
      const seq = event.seq ?? next
      if (!take(line, seq, event.time, (time) => numberEvent(event, seq, time))) continue
      try {
        this.#event(event, seq, event.time ?? this.#now)
      } catch (error) {
        throw atLine(error, line)
      }
      appended++
    }
    this.#store(false)
    return { appended, duplicates }
  }

  #event(event: EventText, seq: number, time: number): void {
    if (event.delta) {
      this.#delta(event.delta, seq, time)
      return
    }
    this.#closeRun()
    checkSources(event, seq)
    const text = numberEvent(event, seq, time)
    this.#insert(seq, event.type === 'assistant/chunk' ? 'chunk' : 'event', time, eventRecordLine(text))
    if (event.surfaceOp !== undefined) this.#surface(event, event.surfaceOp, seq, text)
    this.#state.bytes += utf8Bytes(text)
    this.#state.head = seq
  }

  #delta(delta: Delta, seq: number, time: number): void {
    const state = this.#state
    if (state.run?.accepts(delta, seq, time)) {
      state.run.add(delta, seq, time)
    } else {
      this.#closeRun()
      if (Run.fits(delta, seq, time)) {
        state.run = new Run(delta, seq, time)
        state.pieces = 0
        state.unstored = seq
      } else {
        this.#insert(seq, 'chunk', time, eventRecordLine(deltaText(delta, seq, time)))
      }
    }
    state.bytes += deltaBytes(delta, seq, time)
    state.head = seq
  }

  #insert(seq: number, kind: RecordKind, time: number, line: string): void {
    this.#storage.insertRecord({ first: seq, last: seq, kind, time, line })
  }

  #closeRun(): void {
    if (!this.#state.run) return
    this.#store(true)
    this.#state.run = undefined
    this.#state.pieces = 0
  }

  /** Store what of the open run is not stored yet; with `closing`, leave its canonical records. */
  #store(closing: boolean): void {
    const state = this.#state
    const { run } = state
    if (!run) return
    const unstored = state.unstored < run.nextSeq
    // Each piece holds the run's id and name again: where these are most of it, one piece is no larger than the next.
    const settling = closing || run.frameBytes > LONG_NAME_CHARACTERS
    if (settling && run.length > 2 && state.pieces + (unstored ? 1 : 0) > 1) {
      this.#storage.deleteRecords(run.firstSeq)
      state.pieces = 0
      this.#storeRun(run, run.firstSeq)
    } else if (unstored) {
      this.#storeRun(run, state.unstored)
    }
  }

  #storeRun(run: Run, from: number): void {
    const lines = run.lines(from)
    let first = from
    for (const line of lines) {
      const last = lines.length === 1 ? run.nextSeq - 1 : first
      this.#storage.insertRecord({
        first,
        last,
        kind: last > first ? 'row' : 'chunk',
        time: run.timeAt(first),
        line,
      })
      first = last + 1
    }
    this.#state.pieces += lines.length
    this.#state.unstored = run.nextSeq
  }

  #surface(event: EventText, op: SurfaceOp, seq: number, text: string): void {
    const storage = this.#storage
    let position = seq
    if (op !== 'append') {
      const start = this.#onSurface(op.start, 'start')
      const end = this.#onSurface(op.end, 'end')
      if (start > end) {
        throw new Problem('event/invalid', `replace: entry ${op.start} comes after entry ${op.end} on the surface`, {
          path: '/surfaceOp',
        })
      }
      storage.hideSurface(start, end, seq)
      position = start
    }
    const message = isMessage(event)
    const start = groupStart(seq, event.sourceEventSeqs)
    storage.insertSurface({
      seq,
      type: event.type,
      message,
      groupStart: start,
      pageStart: message ? this.#pageStart(start, seq) : seq,
      position,
      slice: lineSlice(event.type, text),
    })
    if (message) this.#state.messages++
  }

  #onSurface(seq: number, name: 'start' | 'end'): number {
    const entry = this.#storage.surfaceEntry(seq)
    if (entry?.live) return entry.position
    throw new Problem('event/invalid', `replace: ${seq} is not on the surface`, { path: `/surfaceOp/${name}` })
  }

  /** Groups that the new message's group reaches into join it; each is joined once, so this is cheap however they overlap. */
  #pageStart(start: number, seq: number): number {
    let reach = start
    let before = this.#storage.messageBefore(seq)
    while (before && before.seq >= reach) {
      reach = Math.min(reach, before.pageStart)
      before = this.#storage.messageBefore(before.pageStart)
    }
    return reach
  }
}

function seqOf({ item }: NumberedItem): number | undefined {
  return item.kind === 'row' ? item.row.seq : item.event.seq
}

function longNameCharacters(row: ChunkRowEvent): number {
  if (row.type !== 'chunkrow/tool-call-chunks') return 0
  const { id, name = '', args } = row.data
  const each = id.length + name.length
  return each > LONG_NAME_CHARACTERS ? each * args.length : 0
}

function firstSeq(first: NumberedItem, expectedSeq: number | undefined, head: number): number {
  const given = seqOf(first)
  if (given !== undefined && expectedSeq !== undefined && given !== expectedSeq) {
    throw new Problem('request/invalid', `expectedSeq is ${expectedSeq}, but the events begin with seq ${given}`, {
      path: 'expectedSeq',
      head,
    })
  }
  const start = given ?? expectedSeq ?? head + 1
  if (start > head + 1) throw gap(head + 1, head, first.line)
  return start
}

function gap(expectedSeq: number, head: number, line: number): Problem {
  return new Problem('append/gap', `the next seq is ${expectedSeq}`, { expectedSeq, head, line })
}

function conflict(seq: number, head: number, line: number): Problem {
  return new Problem('append/conflict', `another event is stored at seq ${seq}`, { seq, head, line })
}

function mixed(line: number): Problem {
  return new Problem('event/invalid', 'one request has seq on all lines or on none', { line, path: '/seq' })
}

/** The message's bytes inside the stored line: the text's characters before it, in UTF-8, after the record's opening. */
function lineSlice(type: string, text: string): { start: number; end: number } | undefined {
  const slice = messageSlice(type, text)
  if (!slice) return undefined
  const start = RECORD_OPENING_BYTES + utf8Bytes(text.slice(0, slice.start))
  return { start, end: start + utf8Bytes(text.slice(slice.start, slice.end)) }
}

const RECORD_OPENING_BYTES = '{"type":"event","event":'.length
