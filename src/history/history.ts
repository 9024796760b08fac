// The domain: one method for each thing that a caller can do with histories. It knows sessions, cursors, epochs and
// who may read a child; it knows neither HTTP nor the database.

import type { ChunksMode } from '../../codec/index.ts'
import { headerFromFields, isSessionId, PAGE_MESSAGES, Problem } from '../../codec/index.ts'
import { Follower, Followers } from './follower.ts'
import type { ExportLayout } from './log-export.ts'
import { exportLines } from './log-export.ts'
import { messageLines } from './messages.ts'
import { Page } from './page.ts'
import type {
  AppendBody,
  AppendOptions,
  AppendResult,
  HistoryStore,
  ImportOptions,
  ImportResult,
  SessionState,
} from './store.ts'

/** A session by its own id, or a subagent through its direct parent. */
export type SessionTarget = { readonly id: string } | { readonly parent: string; readonly child: string }

export interface PageQuery {
  /** Exclusive end. */
  readonly beforeSeq?: number | undefined
  /** Inclusive end of the log that the reader knows. */
  readonly throughSeq?: number | undefined
  /** Messages on the page, 1 to 500. */
  readonly maxMessages: number
  readonly chunks: ChunksMode
  readonly epoch?: string | undefined
}

export interface RangeQuery {
  /** Inclusive start, default 0. */
  readonly fromSeq?: number | undefined
  /** Exclusive end, default after head. */
  readonly toSeq?: number | undefined
  readonly chunks: ChunksMode
  readonly epoch?: string | undefined
}

export interface FollowQuery {
  /** The last seq that the reader has, -1 for none; without it the newest page comes first. */
  readonly afterSeq?: number | undefined
  /** Messages on the newest page; with `afterSeq`, the most that are sent to catch up. */
  readonly maxMessages?: number | undefined
  readonly chunks: ChunksMode
  readonly epoch?: string | undefined
}

export interface HistoryOptions {
  /** Epoch milliseconds. */
  readonly now?: () => number
  /** Followers at one time, default 10,000. */
  readonly followers?: number
}

export interface SessionPage {
  readonly sessions: readonly SessionState[]
  readonly nextCursor: string | undefined
}

/** A finite stream of NDJSON lines that covers the log up to `to`. */
export interface LogStream {
  readonly epoch: string
  readonly head: number
  /** Exclusive. */
  readonly to: number
  bytes(): AsyncGenerator<Uint8Array>
}

export class History {
  readonly #store: HistoryStore
  readonly #now: () => number
  readonly #followers: Followers

  constructor(store: HistoryStore, { now = Date.now, followers = 10_000 }: HistoryOptions = {}) {
    this.#store = store
    this.#now = now
    this.#followers = new Followers(store, { limit: followers })
  }

  /** @param fields JSON text of the header's fields. @throws Problem `request/invalid`, `session/exists` */
  async create(id: string, fields: string | undefined): Promise<{ created: boolean; session: SessionState }> {
    checkId(id)
    const { header, given } = headerFromFields(id, fields, this.#now())
    return this.#store.create(header, given)
  }

  /** @throws Problem `session/not-found` */
  async describe(id: string): Promise<SessionState> {
    checkId(id)
    const session = await this.#store.describe(id)
    if (!session) throw notFound(id)
    return session
  }

  /** @throws Problem `request/invalid` for a cursor that no answer gave */
  async list(query: {
    limit: number
    cursor?: string | undefined
    parent?: string | undefined
    origin?: string | undefined
  }): Promise<SessionPage> {
    const { limit, cursor, parent, origin } = query
    const after = cursor === undefined ? undefined : readCursor(cursor)
    const sessions = await this.#store.list({ limit: limit + 1, after, parent, origin })
    const shown = sessions.slice(0, limit)
    const last = shown.at(-1)
    const more = sessions.length > limit && last !== undefined
    return { sessions: shown, nextCursor: more ? writeCursor(last) : undefined }
  }

  /** The direct children of a session, which need not be stored itself. */
  async subagents(parent: string, query: { limit: number; cursor?: string | undefined }): Promise<SessionPage> {
    checkId(parent)
    return this.list({ ...query, parent, origin: 'subagent' })
  }

  /** @throws Problem `session/not-found` */
  async remove(id: string): Promise<void> {
    checkId(id)
    if (!(await this.#store.delete(id))) throw notFound(id)
  }

  /** @throws Problem of section append: `event/invalid`, `append/gap`, `append/conflict`, `session/replaced`, … */
  async append(id: string, body: AppendBody, options: AppendOptions): Promise<AppendResult> {
    checkId(id)
    return this.#store.append(id, body, options)
  }

  importLog(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult> {
    return this.#store.importLog(source, options)
  }

  /** The page that ends at the given cursors, counted backwards in messages. */
  async page(target: SessionTarget, query: PageQuery): Promise<Page> {
    const session = await this.#reach(target, query.epoch)
    const { beforeSeq, throughSeq } = query
    refuseAhead(session, 'beforeSeq', beforeSeq, session.head + 1)
    refuseAhead(session, 'throughSeq', throughSeq, session.head)
    const to = Math.min(beforeSeq ?? session.head + 1, (throughSeq ?? session.head) + 1)
    const from = await this.#store.pageStart(session.log, to, query.maxMessages)
    const fixed = beforeSeq !== undefined || throughSeq !== undefined
    return new Page(this.#store, session, { from, to, fixed, chunks: query.chunks })
  }

  /**
   * A page that stays open. The follower holds a place until it has run, or is left.
   * @throws Problem `server/busy` when there is no place
   */
  async follow(target: SessionTarget, query: FollowQuery): Promise<Follower> {
    const { log } = await this.#reach(target, query.epoch)
    const seat = this.#followers.join(log)
    try {
      // Read again now that every later commit is heard of: nothing falls between the page and the live lines.
      const session = await this.#reach(target, query.epoch)
      if (session.log !== log) {
        // Deleted and made again between the two looks: what is asked for is the new one.
        seat.leave()
        return this.follow(target, query)
      }
      const page = await this.#opening(session, query)
      seat.feed.wake(session.head)
      return new Follower(this.#store, seat, page)
    } catch (error) {
      seat.leave()
      throw error
    }
  }

  /**
   * Follow from a cursor that may not fit any more: then from the newest page. For readers that can only connect again.
   * @returns undefined when the session is gone
   */
  async resume(target: SessionTarget, query: FollowQuery): Promise<Follower | undefined> {
    try {
      return await this.follow(target, query)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      if (error.code === 'session/not-found' || error.code === 'subagent/not-found') return undefined
      if (error.code !== 'session/replaced' && error.code !== 'history/ahead') throw error
      return this.resume(target, { ...query, afterSeq: undefined, epoch: undefined })
    }
  }

  /** How many follow now. */
  get following(): number {
    return this.#followers.count
  }

  /** End every follower with `draining`, and take no new one. */
  drain(): void {
    this.#followers.drain()
  }

  /** The records of `[fromSeq, toSeq)`. */
  async range(target: SessionTarget, query: RangeQuery): Promise<Page> {
    const session = await this.#reach(target, query.epoch)
    const { fromSeq: from = 0, toSeq } = query
    refuseAhead(session, 'fromSeq', from, session.head + 1)
    refuseAhead(session, 'toSeq', toSeq, session.head + 1)
    const to = toSeq ?? session.head + 1
    if (from > to) {
      throw new Problem('request/invalid', `fromSeq ${from} is beyond toSeq ${to}`, {
        path: 'fromSeq',
        head: session.head,
      })
    }
    return new Page(this.#store, session, { from, to, fixed: toSeq !== undefined, chunks: query.chunks })
  }

  /** The model-visible surface as it stands now. */
  async messages(target: SessionTarget, query: { epoch?: string | undefined }): Promise<LogStream> {
    const session = await this.#reach(target, query.epoch)
    return logStream(session, () => messageLines(this.#store, session))
  }

  /** The whole session in the session log format. */
  async exportLog(id: string, query: { layout: ExportLayout; epoch?: string | undefined }): Promise<LogStream> {
    const session = await this.describe(id)
    checkEpoch(session, query.epoch)
    return logStream(session, () => exportLines(this.#store, session, query.layout))
  }

  /** @throws Problem `store/unavailable` */
  check(): Promise<void> {
    return this.#store.check()
  }

  async #opening(session: SessionState, { afterSeq, maxMessages, chunks }: FollowQuery): Promise<Page> {
    refuseAhead(session, 'afterSeq', afterSeq, session.head)
    const to = session.head + 1
    const most = maxMessages ?? PAGE_MESSAGES.default
    const resumes =
      afterSeq !== undefined &&
      (maxMessages === undefined ||
        (await this.#store.countMessages(session.log, afterSeq + 1, maxMessages + 1)) <= maxMessages)
    const from = resumes ? afterSeq + 1 : await this.#store.pageStart(session.log, to, most)
    return new Page(this.#store, session, { from, to, fixed: false, chunks })
  }

  async #reach(target: SessionTarget, epoch: string | undefined): Promise<SessionState> {
    const session = 'id' in target ? await this.#own(target.id) : await this.#child(target.parent, target.child)
    checkEpoch(session, epoch)
    return session
  }

  /** A child is read only through its parent; its own path tells no more than that of no session. */
  async #own(id: string): Promise<SessionState> {
    const session = await this.describe(id)
    if (isChild(session)) throw notFound(id)
    return session
  }

  async #child(parent: string, child: string): Promise<SessionState> {
    checkId(parent)
    checkId(child)
    const session = await this.#store.describe(child)
    if (!session || !isChild(session) || session.parentSession !== parent) {
      throw new Problem('subagent/not-found', `session ${parent} has no subagent ${child}`)
    }
    return session
  }
}

function isChild(session: SessionState): boolean {
  return session.origin === 'subagent' && session.parentSession !== undefined
}

function checkId(id: string): void {
  if (!isSessionId(id)) {
    throw new Problem(
      'request/invalid',
      'a session id is 1 to 128 characters of A-Z a-z 0-9 . _ ~ : @ -, not . or ..',
      {
        path: 'id',
      },
    )
  }
}

function checkEpoch(session: SessionState, epoch: string | undefined): void {
  if (epoch !== undefined && epoch !== session.epoch) {
    throw new Problem('session/replaced', `session ${session.id} is another log now: read it from the start`, {
      epoch: session.epoch,
      head: session.head,
    })
  }
}

function refuseAhead(session: SessionState, path: string, cursor: number | undefined, most: number): void {
  if (cursor !== undefined && cursor > most) {
    throw new Problem('history/ahead', `${path} ${cursor} is beyond the log: its head is ${session.head}`, {
      path,
      head: session.head,
      epoch: session.epoch,
    })
  }
}

function notFound(id: string): Problem {
  return new Problem('session/not-found', `there is no session ${id}`)
}

function logStream(session: SessionState, bytes: () => AsyncGenerator<Uint8Array>): LogStream {
  return { epoch: session.epoch, head: session.head, to: session.head + 1, bytes }
}

// A list cursor names the last session shown by what orders it, so sessions created or deleted meanwhile move nothing.

function writeCursor(session: SessionState): string {
  return `${session.createdAt}.${session.log}`
}

function readCursor(cursor: string): { createdAt: number; log: number } {
  const [, createdAt, log] = /^(-?\d{1,16})\.(\d{1,16})$/.exec(cursor) ?? []
  if (createdAt === undefined || log === undefined) {
    throw new Problem('request/invalid', 'cursor is not one that a list answered', { path: 'cursor' })
  }
  return { createdAt: Number(createdAt), log: Number(log) }
}
