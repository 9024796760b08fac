// Following: a page that stays open. A follower reads the store by its own cursor until it is level with the log, then
// shares what its log's feed reads once for all; when its reader is slow it falls back to the store by its cursor.
//
//   opening ──▶ behind ──▶ level          behind: the store is read from `cursor` on, as fast as the reader takes it
//                 ▲          │            level:  cursor = feed.head; pieces of the feed go straight to the sink
//                 └──────────┘            either ends when the session is deleted, the server drains, the reader leaves
//
// Nothing is lost or doubled between the states: joining the feed is one synchronous step, taken only while the
// follower's cursor equals the feed's head, and each piece of the feed begins right after that head. Hints only wake;
// what is sent is always read from the store, so only durable events are seen, and a lost hint costs time, not events.

import type { ChunksMode, EndReason } from '../../codec/index.ts'
import { Problem } from '../../codec/index.ts'
import type { PagePiece } from './page.ts'
import { livePieces, Page } from './page.ts'
import type { HistoryStore, LogHint } from './store.ts'

/** Where a follower's lines go. */
export interface FollowSink {
  /** Take one piece. `false`: the reader is behind; what comes next waits until `ready`. */
  write(piece: PagePiece): boolean
  /** Resolved at once while the reader keeps up; with `false` once it has left. */
  ready(): Promise<boolean>
  /** The last word: why the stream ends. */
  end(reason: EndReason): void
}

/** A feed that could not ask how far its log has come asks again after this. */
const ASK_AGAIN_MS = 1_000

/** Level followers that get a piece in one turn of the event loop: a fan-out to thousands must not hold the others up. */
const FAN_OUT = 128

export interface FollowersOptions {
  /** Followers at one time; one more is refused, none is put out. */
  readonly limit: number
}

/** All followers of this process, and the feeds of the logs that they follow. */
export class Followers {
  readonly #store: HistoryStore
  readonly #limit: number
  readonly #feeds = new Map<number, Feed>()
  #count = 0
  #unwatch: (() => void) | undefined
  #draining = false

  constructor(store: HistoryStore, { limit }: FollowersOptions) {
    this.#store = store
    this.#limit = limit
  }

  get count(): number {
    return this.#count
  }

  /**
   * A place among the followers, for a log about to be read. It must be left.
   * @throws Problem `server/busy`, `server/draining`
   */
  join(log: number): Seat {
    if (this.#draining) throw new Problem('server/draining', 'the server is shutting down', { retryAfter: 1 })
    if (this.#count >= this.#limit) {
      throw new Problem('server/busy', `there are ${this.#limit} followers already`, {
        limit: this.#limit,
        retryAfter: 5,
      })
    }
    this.#unwatch ??= this.#store.watch((hint) => this.#hear(hint))
    const feed = this.#feeds.get(log) ?? new Feed(this.#store, log)
    this.#feeds.set(log, feed)
    this.#count++
    feed.seats++
    let left = false
    return {
      feed,
      leave: () => {
        if (left) return
        left = true
        this.#count--
        if (--feed.seats === 0) {
          feed.close()
          this.#feeds.delete(log)
        }
        if (this.#feeds.size > 0) return
        this.#unwatch?.()
        this.#unwatch = undefined
      },
    }
  }

  /** Tell every follower to come back later. New ones are refused from now on. */
  drain(): void {
    this.#draining = true
    for (const feed of this.#feeds.values()) feed.end('draining')
  }

  #hear(hint: LogHint): void {
    if ('any' in hint) {
      for (const feed of this.#feeds.values()) feed.ask()
      return
    }
    const feed = this.#feeds.get(hint.log)
    if ('deleted' in hint) feed?.end('deleted')
    else feed?.wake(hint.head)
  }
}

export interface Seat {
  readonly feed: Feed
  leave(): void
}

/** One log's live end: it reads what was committed, once, and hands it to every level follower. */
export class Feed {
  seats = 0
  readonly #store: HistoryStore
  readonly #log: number
  readonly #level = new Set<Follower>()
  readonly #waiting = new Set<() => void>()
  #asking: NodeJS.Timeout | undefined
  /** Last seq handed out, or that nobody level was there to take. */
  #head = -1
  /** Last seq known to be committed. */
  #known = -1
  #ended: EndReason | undefined
  #reading = false

  constructor(store: HistoryStore, log: number) {
    this.#store = store
    this.#log = log
  }

  get head(): number {
    return this.#head
  }

  get ended(): EndReason | undefined {
    return this.#ended
  }

  /** The log has reached this seq. */
  wake(head: number): void {
    if (head <= this.#known) return
    this.#known = head
    if (!this.#reading) void this.#read()
  }

  /** Something may have happened elsewhere: ask how far the log has come. */
  ask(): void {
    this.#store.headOf(this.#log).then(
      (head) => (head === undefined ? this.end('deleted') : this.wake(head)),
      () => this.#askAgain(),
    )
  }

  /** In a quiet store no other hint would come. */
  #askAgain(): void {
    if (this.seats === 0) return
    this.#asking ??= setTimeout(() => {
      this.#asking = undefined
      this.ask()
    }, ASK_AGAIN_MS)
  }

  /** Nobody is here any more. */
  close(): void {
    clearTimeout(this.#asking)
  }

  end(reason: EndReason): void {
    this.#ended ??= reason
    this.#stir()
  }

  /** Join the level followers. The caller's cursor is this feed's head. */
  join(follower: Follower): void {
    this.#level.add(follower)
  }

  leave(follower: Follower): void {
    this.#level.delete(follower)
  }

  /** Resolved at the next change of head or end. */
  moved(): { readonly promise: Promise<void>; cancel(): void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    return {
      promise,
      cancel: () => {
        this.#waiting.delete(resolve)
        resolve()
      },
    }
  }

  async #read(): Promise<void> {
    this.#reading = true
    try {
      while (this.#head < this.#known && !this.#ended) {
        if (this.#level.size === 0) {
          this.#head = this.#known
          this.#stir()
          return
        }
        for await (const piece of livePieces(this.#store, this.#log, this.#head + 1, this.#known + 1)) {
          await this.#hand(piece)
          if (this.#level.size === 0 || this.#ended) break
        }
      }
    } catch (error) {
      // Its followers read on from the store, and meet there whatever is wrong.
      if (error instanceof Problem && error.code === 'session/not-found') this.end('deleted')
      else for (const follower of [...this.#level]) follower.fallBehind()
      this.#head = this.#known
      this.#stir()
    } finally {
      this.#reading = false
    }
  }

  async #hand(piece: PagePiece): Promise<void> {
    // Whoever joins from here on has this piece already, or reads it from the store.
    const level = [...this.#level]
    this.#head = piece.to - 1
    this.#stir()
    for (const [index, follower] of level.entries()) {
      if (index > 0 && index % FAN_OUT === 0) await nextTurn()
      if (this.#level.has(follower)) follower.take(piece)
    }
  }

  #stir(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
    if (this.#ended) for (const follower of [...this.#level]) follower.fallBehind()
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** One reader's place in a log. */
export class Follower {
  /** The opening part. */
  readonly page: Page
  readonly #store: HistoryStore
  readonly #seat: Seat
  readonly #chunks: ChunksMode
  #sink: FollowSink | undefined
  #cursor: number
  #behind: (() => void) | undefined

  constructor(store: HistoryStore, seat: Seat, page: Page) {
    this.#store = store
    this.#seat = seat
    this.page = page
    this.#chunks = page.chunks
    this.#cursor = page.from - 1
  }

  /**
   * Send the opening part and then all that comes, until the log or the reader ends.
   * @throws when the store fails: the reader must not take what it has for the end
   */
  async run(sink: FollowSink, signal: AbortSignal): Promise<void> {
    const { feed } = this.#seat
    this.#sink = sink
    const stop = () => this.fallBehind()
    signal.addEventListener('abort', stop)
    try {
      if (!(await this.#send(this.page, signal))) return
      while (!signal.aborted) {
        if (feed.ended) return sink.end(feed.ended)
        if (this.#cursor < feed.head) {
          if (!(await this.#send(this.#missing(feed.head), signal))) return
        } else if (this.#cursor > feed.head) {
          // The opening part was read before the feed heard of its last events.
          await this.#whenMoved(signal)
        } else {
          await this.#level()
          if (!(await sink.ready())) return
        }
      }
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'session/not-found')) throw error
      sink.end('deleted')
    } finally {
      signal.removeEventListener('abort', stop)
      this.leave()
    }
  }

  /** Give up the place; what was not run yet needs it too. */
  leave(): void {
    this.fallBehind()
    this.#seat.leave()
  }

  /** A piece of the feed. */
  take(piece: PagePiece): void {
    if (piece.from !== this.#cursor + 1) {
      this.fallBehind()
      return
    }
    this.#cursor = piece.to - 1
    if (!this.#sink?.write(piece)) this.fallBehind()
  }

  /** Leave the feed: from here on the store is read. */
  fallBehind(): void {
    this.#seat.feed.leave(this)
    this.#behind?.()
  }

  /** Level until something makes it fall behind. */
  async #level(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#behind = resolve
    this.#seat.feed.join(this)
    await promise
    this.#behind = undefined
  }

  async #whenMoved(signal: AbortSignal): Promise<void> {
    const moved = this.#seat.feed.moved()
    signal.addEventListener('abort', moved.cancel)
    await moved.promise
    signal.removeEventListener('abort', moved.cancel)
  }

  #missing(head: number): Page {
    return new Page(this.#store, this.page.session, {
      from: this.#cursor + 1,
      to: head + 1,
      fixed: true,
      chunks: this.#chunks,
    })
  }

  /** @returns whether the reader is still there */
  async #send(page: Page, signal: AbortSignal): Promise<boolean> {
    const sink = this.#sink as FollowSink
    for await (const piece of page.pieces()) {
      if (signal.aborted) return false
      if (!sink.write(piece) && !(await sink.ready())) return false
    }
    this.#cursor = page.to - 1
    return true
  }
}
