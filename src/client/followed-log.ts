// Owns following without a window: the records from a cursor on, each once and in order, over as many connections as
// that takes.

import type { ChunksMode, SessionHistoryRecord } from '../../codec/index.ts'
import { recordRange } from '../../codec/index.ts'
import { leavable } from './abort.ts'
import type { PageHeaders } from './answers.ts'
import { AnswerError } from './errors.ts'
import { readGap } from './gap-repair.ts'
import type { FollowPlace, LiveReader } from './live-source.ts'
import { followLive } from './live-source.ts'
import type { Checks } from './options.ts'
import { aFunction, anEpoch, aSignal, checkOptions, chunksMode, inclusiveSeq, messageCount } from './options.ts'
import type { RecordLine } from './record-lines.ts'
import { inOrder } from './record-order.ts'
import type { Wiring } from './wiring.ts'

/** Where a followed log stands, as it is told to `onStatus`. */
export type FollowStatus = 'connecting' | 'live' | 'reconnecting' | 'ended'

export interface FollowOptions {
  /** The last seq that the reader has; -1 for the beginning. Without it, the newest page comes first. */
  afterSeq?: number | undefined
  /** of the log that `afterSeq` was read from; another one is ServiceError `session/replaced` */
  epoch?: string | undefined
  /** 1 to 500: when there are more messages after `afterSeq`, begin at the newest page instead */
  maxMessages?: number | undefined
  /** of what is read from the store; what is appended while it is followed comes as single events */
  chunks?: ChunksMode | undefined
  /** `error` says why it is `reconnecting` */
  onStatus?: ((status: FollowStatus, error?: Error) => void) | undefined
  /** aborted at any moment, it leaves no timer and no socket */
  signal?: AbortSignal | undefined
}

const CHECKS: Checks<FollowOptions> = {
  afterSeq: inclusiveSeq,
  epoch: anEpoch,
  maxMessages: messageCount,
  chunks: chunksMode,
  onStatus: aFunction,
  signal: aSignal,
}

/**
 * The records of a log from a cursor on, without gap and without repetition, then each event as it is appended; an async
 * iterable that is read once and reads only as fast as it is read. After a loss it connects again and goes on.
 *
 * It ends when the session is deleted. Reading throws ServiceError for what the service refuses (`session/not-found`,
 * `session/replaced` and `history/ahead` when the log is not the one of the cursor any more, …), AnswerError when the
 * answers cannot be believed twice in a row, or the reason of the aborted signal.
 */
export class FollowedLog implements AsyncIterable<SessionHistoryRecord> {
  readonly #wiring: Wiring
  readonly #path: string
  readonly #options: FollowOptions
  #epoch: string | undefined
  /** where the next connection goes on: records that arrived together are taken together */
  #next: number | undefined
  /** the seq after the last record that was given by itself */
  #given: number | undefined
  #begun = false

  /** Made by `session.follow()`. Throws TypeError for wrong options. */
  constructor(wiring: Wiring, path: string, options: FollowOptions) {
    this.#wiring = wiring
    this.#path = path
    this.#options = checkOptions('follow()', options, CHECKS)
    this.#epoch = options.epoch
    this.#next = options.afterSeq === undefined ? undefined : options.afterSeq + 1
  }

  /** of the log; undefined until a connection stood, unless it was given */
  get epoch(): string | undefined {
    return this.#epoch
  }

  /** the seq after the last record that was given; undefined while it is not known where to begin */
  get next(): number | undefined {
    return this.#given ?? this.#next
  }

  /** Throws TypeError when it was begun before. */
  [Symbol.asyncIterator](): AsyncGenerator<SessionHistoryRecord> {
    const lines = this.lines()
    return leavable(this.#records(lines), () => void lines.return(undefined).catch(() => {}))
  }

  /** The same with their texts, as many at a time as arrived together. */
  lines(): AsyncGenerator<RecordLine[]> {
    if (this.#begun) throw new TypeError('a followed log can be read once')
    this.#begun = true
    const stop = new AbortController()
    return leavable(this.#read(stop), () => stop.abort(LEFT))
  }

  async *#records(batches: AsyncGenerator<RecordLine[]>): AsyncGenerator<SessionHistoryRecord> {
    for await (const lines of batches) {
      for (const { record } of lines) {
        this.#given = recordRange(record).to
        yield record
      }
    }
  }

  async *#read(stop: AbortController): AsyncGenerator<RecordLine[]> {
    const { signal } = this.#options
    const { transport, lineBytes, reconnect } = this.#wiring
    const forward = () => stop.abort(signal?.reason)
    if (signal?.aborted) forward()
    else signal?.addEventListener('abort', forward, { once: true })
    try {
      stop.signal.throwIfAborted()
      this.#tell('connecting')
      const reader = this.#reader(stop.signal)
      yield* followLive(reader, { transport, path: this.#path, lineBytes, reconnect, signal: stop.signal })
    } catch (error) {
      if (error !== LEFT) throw error
    } finally {
      signal?.removeEventListener('abort', forward)
    }
  }

  #reader(signal: AbortSignal): LiveReader<RecordLine[]> {
    let head = 0
    let live = false
    let known = false
    const tellLive = () => {
      if (live || this.#next === undefined || this.#next < head) return
      live = true
      this.#tell('live')
    }
    return {
      place: () => this.#place(known),
      opened: (page) => {
        this.#open(page, known)
        known = true
        head = page.to
        live = false
        tellLive()
        return []
      },
      take: (lines) => this.#take(lines, signal, tellLive),
      settle: () => [],
      lost: (error) => {
        this.#tell('reconnecting', error)
        return []
      },
      startOver: (error) => {
        throw error
      },
      ended: () => {
        this.#tell('ended')
        return []
      },
      failed: (error) => {
        throw error
      },
    }
  }

  #place(known: boolean): FollowPlace {
    const { maxMessages, chunks } = this.#options
    const afterSeq = this.#next === undefined ? undefined : this.#next - 1
    // Nothing may be passed over later on, however much was missed.
    return { afterSeq, epoch: this.#epoch, maxMessages: known ? undefined : maxMessages, chunks }
  }

  #open(page: PageHeaders, known: boolean): void {
    const { maxMessages } = this.#options
    this.#epoch = page.epoch
    if (this.#next === undefined || (!known && maxMessages !== undefined && page.from > this.#next))
      this.#next = page.from
    if (page.to < this.#next) {
      throw AnswerError.malformed(`the log goes to seq ${page.to - 1}, and seq ${this.#next - 1} was read before`)
    }
  }

  async *#take(lines: RecordLine[], signal: AbortSignal, tellLive: () => void): AsyncGenerator<RecordLine[]> {
    const next = () => this.#next as number
    const gap = { epoch: this.#epoch as string, chunks: this.#options.chunks, signal }
    for await (const ready of inOrder(lines, next, (range) => readGap(this.#wiring, this.#path, range, gap))) {
      this.#next = recordRange((ready.at(-1) as RecordLine).record).to
      yield ready
      tellLive()
    }
  }

  #tell(status: FollowStatus, error?: Error): void {
    this.#options.onStatus?.(status, error)
  }
}

/** The reason of a reader who left. */
const LEFT = new Error('the reader left')
