// Owns the journal: a window over the end of a log that stays up to date, its one reader, and how the two are joined to
// the connections below. The window itself is pure and has its own file; so have the connections.

import type { ChunksMode, SessionHistoryRecord } from '../../codec/index.ts'
import { PAGE_MESSAGES, recordRange } from '../../codec/index.ts'
import type { PageHeaders } from './answers.ts'
import { AnswerError, JournalError } from './errors.ts'
import { readGap } from './gap-repair.ts'
import { openPage } from './history-page.ts'
import type { JournalChange, JournalStatus, PendingChange, ReplaceReason } from './journal-window.ts'
import { JournalWindow } from './journal-window.ts'
import type { FollowPlace, LiveReader } from './live-source.ts'
import { followLive } from './live-source.ts'
import type { Checks } from './options.ts'
import { aSignal, checkOptions, chunksMode, messageCount } from './options.ts'
import type { RecordLine } from './record-lines.ts'
import { inOrder } from './record-order.ts'
import type { Wiring } from './wiring.ts'

export interface JournalOptions {
  /** messages of the first window and of each older page, 1 to 500 (default 50) */
  maxMessages?: number | undefined
  /**
   * `packed` (default): tokens in rows, live ones as soon as their run is closed; `expanded`: every event on its own;
   * `omit`: tokens left out where a message of the page settles them
   */
  chunks?: ChunksMode | undefined
  /** aborting it closes the journal */
  signal?: AbortSignal | undefined
}

const CHECKS: Checks<JournalOptions> = { maxMessages: messageCount, chunks: chunksMode, signal: aSignal }

/**
 * A contiguous window over the end of one log. Its changes are an async iterable for one reader: nothing is read before
 * it asks, and a slow reader slows the connection down. The window can be looked at any time; it holds exactly what the
 * changes given so far make of it, and an older page once `loadOlder()` has resolved, also before that is told.
 *
 * After a loss it connects again, for as long as it takes, and goes on at the window's end. The iteration ends, without
 * throwing, after the status `ended` (the session was deleted) or `failed` (with its `error`), and when the journal is
 * closed. Unless it is closed, it can be read backwards after that too: `loadOlder()` changes the window, and who asks the
 * iterator once more is told.
 */
export class Journal implements AsyncIterable<JournalChange> {
  readonly #wiring: Wiring
  readonly #path: string
  readonly #options: JournalOptions
  readonly #window: JournalWindow
  readonly #stop = new AbortController()
  readonly #close = () => this.close()
  #changes: AsyncGenerator<PendingChange> | undefined
  /** the change that comes next, not yet made */
  #pending: PendingChange | undefined
  #isPulling = false
  #isOver = false
  /** changes that were made by a call, and not yet told */
  #made: JournalChange[] = []
  #wake: (() => void) | undefined
  #older: Promise<boolean> | undefined

  /** Made by `session.journal()`. Throws TypeError for wrong options. */
  constructor(wiring: Wiring, path: string, options: JournalOptions) {
    this.#wiring = wiring
    this.#path = path
    this.#options = checkOptions('journal()', options, CHECKS)
    this.#window = new JournalWindow({ compacting: options.chunks !== 'expanded' })
  }

  /** The records of the window in the order of the log. It changes under the reader; copy what must stay. */
  get entries(): readonly SessionHistoryRecord[] {
    return this.#window.entries
  }

  /** first seq of the window */
  get from(): number {
    return this.#window.from
  }

  /** the seq after the last of the window */
  get to(): number {
    return this.#window.to
  }

  /** whether the log has events before the window */
  get hasMore(): boolean {
    return this.#window.hasMore
  }

  /** as it was told last */
  get status(): JournalStatus {
    return this.#window.status
  }

  /** why it is `reconnecting` or `failed` */
  get error(): Error | undefined {
    return this.#window.error
  }

  /** of the log; undefined until the window is opened */
  get epoch(): string | undefined {
    return this.#window.epoch
  }

  /** Begins. Throws TypeError for a second reader. Leaving the loop closes the journal. */
  [Symbol.asyncIterator](): AsyncIterator<JournalChange, undefined> {
    if (this.#changes) throw new TypeError('a journal has one reader')
    const { signal } = this.#options
    if (signal?.aborted) this.close()
    else if (!this.#stop.signal.aborted) signal?.addEventListener('abort', this.#close, { once: true })
    this.#changes = this.#follow()
    // As a generator does: who asks again before the answer waits for it.
    let turn: Promise<unknown> = Promise.resolve()
    const next = () => {
      const answer = turn.then(() => this.#next())
      turn = answer
      return answer
    }
    return {
      next,
      return: async () => {
        this.close()
        return { done: true, value: undefined }
      },
    }
  }

  /**
   * Puts the page before the window in front of it, as the change `prepend`. Resolves to whether there are still older
   * events; calls that overlap share one page. Does nothing when there are none, or the window is not open yet.
   *
   * Throws JournalError `journal/moved` when the window was replaced meanwhile, `journal/closed`, ServiceError
   * (`session/replaced`, …), NetworkError, or AnswerError for a page that does not join; the window stands.
   */
  loadOlder(): Promise<boolean> {
    this.#older ??= this.#loadOlder().finally(() => {
      this.#older = undefined
    })
    return this.#older
  }

  /** Ends the iteration and every request at once. The window can still be read. */
  close(): void {
    this.#options.signal?.removeEventListener('abort', this.#close)
    if (this.#stop.signal.aborted) return
    this.#stop.abort(new JournalError('journal/closed', 'the journal was closed'))
    this.#isOver = true
    this.#made = []
    this.#pending = undefined
    // What the connection below waits for is aborted with this, and so is the connection itself; while it waits for its
    // reader it holds nothing else, so it need not be ended.
    this.#wake?.()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /**
   * One change is made at a time, when it is told. Those that a call has made go first: they were made on the window
   * as it was before the pending one.
   */
  async #next(): Promise<IteratorResult<JournalChange, undefined>> {
    for (;;) {
      const made = this.#made.shift()
      if (made) return { done: false, value: made }
      const pending = this.#pending
      if (pending) {
        this.#pending = undefined
        return { done: false, value: pending() }
      }
      if (this.#isOver) return { done: true, value: undefined }
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      if (!this.#isPulling) void this.#pull()
      await woken
    }
  }

  async #pull(): Promise<void> {
    this.#isPulling = true
    try {
      const { done, value } = await (this.#changes as AsyncGenerator<PendingChange>).next()
      if (done) this.#finish()
      else if (!this.#isOver) this.#pending = value
    } catch (error) {
      // Closing ends it so; anything else is a fault of this program, which must not pass for a quiet end.
      if (!this.#stop.signal.aborted) this.#pending = () => this.#window.tell('failed', error as Error)
      this.#finish()
    } finally {
      this.#isPulling = false
      this.#wake?.()
    }
  }

  #finish(): void {
    this.#isOver = true
    this.#options.signal?.removeEventListener('abort', this.#close)
  }

  async #loadOlder(): Promise<boolean> {
    const window = this.#window
    this.#stop.signal.throwIfAborted()
    const { epoch, from } = window
    if (epoch === undefined || !window.hasMore) return false
    const { maxMessages, chunks } = this.#options
    const { signal } = this.#stop
    const page = await openPage(this.#wiring, this.#path, { beforeSeq: from, epoch, maxMessages, chunks, signal })
    const entries: SessionHistoryRecord[] = []
    // To its end, or until it throws: then reading has let go of the connection.
    for await (const record of page.records) entries.push(record)
    signal.throwIfAborted()
    this.#made.push(window.prepend({ epoch, from }, page, entries))
    this.#wake?.()
    return window.hasMore
  }

  async *#follow(): AsyncGenerator<PendingChange> {
    const { transport, lineBytes, reconnect } = this.#wiring
    const { signal } = this.#stop
    signal.throwIfAborted()
    yield () => this.#window.tell('connecting')
    const reader = new JournalReader(this.#wiring, this.#path, this.#options, this.#window, signal)
    yield* followLive(reader, { transport, path: this.#path, lineBytes, reconnect, signal })
  }
}

/** A first part of a window that takes the place of what is there, held until it is complete. */
interface Opening {
  readonly page: PageHeaders
  readonly reason: ReplaceReason
  records: SessionHistoryRecord[]
  next: number
}

/** Turns what the connections bring into changes of the window. */
class JournalReader implements LiveReader<PendingChange> {
  readonly #wiring: Wiring
  readonly #path: string
  readonly #options: JournalOptions
  readonly #window: JournalWindow
  readonly #signal: AbortSignal
  #opening: Opening | undefined
  #epoch = ''
  /** the end of the connection's opening part: the window is live from there on */
  #liveAt = 0
  #isLive = false
  #startsOver = false

  constructor(wiring: Wiring, path: string, options: JournalOptions, window: JournalWindow, signal: AbortSignal) {
    this.#wiring = wiring
    this.#path = path
    this.#options = options
    this.#window = window
    this.#signal = signal
  }

  /** Always the window's own end: what was delivered, twice or never, does not count. */
  place(): FollowPlace {
    const { maxMessages, chunks } = this.#options
    const { epoch, to } = this.#window
    if (epoch === undefined || this.#startsOver) return { maxMessages, chunks }
    return { afterSeq: to - 1, epoch, maxMessages: maxMessages ?? PAGE_MESSAGES.default, chunks }
  }

  opened(page: PageHeaders): Iterable<PendingChange> {
    const { epoch, to } = this.#window
    this.#epoch = page.epoch
    this.#liveAt = page.to
    this.#isLive = false
    let reason: ReplaceReason | undefined
    if (epoch === undefined) reason = 'opened'
    else if (this.#startsOver) reason = 'reset'
    else if (page.from > to) reason = 'resumed'
    else if (page.to < to) {
      throw AnswerError.malformed(`the log goes to seq ${page.to - 1}, and seq ${to - 1} was read before`)
    }
    if (reason) this.#opening = { page, reason, records: [], next: page.from }
    return this.#advance([])
  }

  async *take(lines: RecordLine[]): AsyncGenerator<PendingChange> {
    const next = () => this.#opening?.next ?? this.#window.to
    const gap = { epoch: this.#epoch, chunks: this.#options.chunks, signal: this.#signal }
    for await (const ready of inOrder(lines, next, (range) => readGap(this.#wiring, this.#path, range, gap))) {
      yield* this.#advance(ready.map(({ record }) => record))
    }
  }

  /** What came of an opening part is worth more than nothing, and the next connection goes on behind it. */
  settle(): PendingChange[] {
    const opening = this.#opening
    if (!opening) return []
    this.#opening = undefined
    return opening.records.length === 0 ? [] : [this.#replacing(opening)]
  }

  lost(error: Error): PendingChange[] {
    return [() => this.#window.tell('reconnecting', error)]
  }

  startOver(error: Error): PendingChange[] {
    this.#startsOver = true
    return this.lost(error)
  }

  ended(): PendingChange[] {
    return [() => this.#window.tell('ended')]
  }

  failed(error: Error): PendingChange[] {
    return [() => this.#window.tell('failed', error)]
  }

  /** `records` come next. */
  *#advance(records: SessionHistoryRecord[]): Generator<PendingChange> {
    let rest = records
    const opening = this.#opening
    if (opening) {
      const count = records.findIndex(({ event }) => event.seq >= this.#liveAt)
      const own = count === -1 ? records : records.slice(0, count)
      rest = records.slice(own.length)
      for (const record of own) opening.records.push(record)
      const last = own.at(-1)
      if (last) opening.next = recordRange(last).to
      if (opening.next < this.#liveAt) return
      this.#opening = undefined
      yield this.#replacing(opening)
    }
    if (rest.length > 0) yield* this.#window.append(rest)
    if (this.#isLive || this.#window.to < this.#liveAt) return
    this.#isLive = true
    yield () => this.#window.tell('live')
  }

  #replacing({ page, records, reason }: Opening): PendingChange {
    return () => {
      this.#startsOver = false
      return this.#window.replace(page.epoch, page.from, records, reason)
    }
  }
}
