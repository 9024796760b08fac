// Owns one session as its readers and writers see it.

import type { AppendResult, ChunksMode, ExportLayout, SessionDescription, SessionEvent } from '../../codec/index.ts'
import { EXPORT_LAYOUTS, expandRecord } from '../../codec/index.ts'
import type { SessionHead } from './answers.ts'
import { readLogHeaders, readSessionDescription, readSessionHead } from './answers.ts'
import type { AppendItem, AppendLines } from './append-lines.ts'
import type { AppendOptions } from './appender.ts'
import { Appender } from './appender.ts'
import type { ConversationOptions, ViewDefinitions } from './conversation/index.ts'
import { CONVERSATION, Conversation } from './conversation/index.ts'
import { ExportedLog } from './exported-log.ts'
import type { FollowOptions } from './followed-log.ts'
import { FollowedLog } from './followed-log.ts'
import type { HistoryPage, PageOptions, RangeOptions } from './history-page.ts'
import { openPage, openRange, PAGE_CHECKS, RANGE_CHECKS } from './history-page.ts'
import type { JournalOptions } from './journal.ts'
import { Journal } from './journal.ts'
import { anEpoch, aSignal, checkOptions, oneOf } from './options.ts'
import { withRetries } from './retry.ts'
import { NDJSON } from './transport.ts'
import type { Wiring } from './wiring.ts'
import { openedAnswer, sessionPath } from './wiring.ts'

export interface ExportOptions {
  /** `packed` writes runs as rows (the default), `events` one event a line */
  layout?: ExportLayout | undefined
  /** fail with `session/replaced` for another one */
  epoch?: string | undefined
  signal?: AbortSignal | undefined
}

/**
 * What can be read of a session, by its own path or its parent's. Every method throws TypeError for wrong options,
 * ServiceError for what the service refuses (`session/not-found`, `session/replaced`, `history/ahead`, …), NetworkError,
 * AnswerError for an answer that is not to be believed, TokenError, or the reason of an aborted signal.
 */
export class HistoryReader {
  protected readonly wiring: Wiring
  protected readonly path: string

  /** Made by the client. */
  constructor(wiring: Wiring, path: string) {
    this.wiring = wiring
    this.path = path
  }

  /** The newest page, or the one before a cursor. Read it or cancel it. */
  async page(options: PageOptions = {}): Promise<HistoryPage> {
    return openPage(this.wiring, this.path, checkOptions('page()', options, PAGE_CHECKS))
  }

  /**
   * The page that `page` gives, then the one before it, and so on to the beginning of the log: each ends where the one
   * given before it begins, in one epoch. A page must be read or cancelled before the next one is asked for.
   */
  async *pages(options: PageOptions = {}): AsyncGenerator<HistoryPage> {
    // The pages behind the first have one address each, however it was asked for: a cache may know them.
    const { throughSeq: _throughSeq, ...rest } = options
    let page = await this.page(options)
    yield page
    while (page.hasMore) {
      page = await this.page({ ...rest, beforeSeq: page.from, epoch: page.epoch })
      yield page
    }
  }

  /** The records from one seq to another. Read it or cancel it. */
  async range(options: RangeOptions = {}): Promise<HistoryPage> {
    return openRange(this.wiring, this.path, checkOptions('range()', options, RANGE_CHECKS))
  }

  /** Every single event from `fromSeq` (default 0) to `toSeq` (exclusive, default after the last), in order. */
  async *events(options: Omit<RangeOptions, 'chunks'> = {}): AsyncGenerator<SessionEvent> {
    const { chunks: _chunks, ...checks } = RANGE_CHECKS
    const range = checkOptions('events()', options, checks)
    // Rows are expanded here: they take a tenth of the bytes.
    const page = await openRange(this.wiring, this.path, { ...range, chunks: 'packed' satisfies ChunksMode })
    // Reading lets go of the connection itself, also when it is left in the middle.
    for await (const record of page.records) yield* expandRecord(record)
  }

  /**
   * The records from a cursor on, and then each event as it is appended, until the session is deleted; connects again
   * as often as it takes. See FollowedLog.
   */
  follow(options: FollowOptions = {}): FollowedLog {
    return new FollowedLog(this.wiring, this.path, options)
  }

  /** A window over the end of the log that stays up to date. See Journal. */
  journal(options: JournalOptions = {}): Journal {
    return new Journal(this.wiring, this.path, options)
  }

  /**
   * The end of the log as a user interface shows it, kept up to date: the views `chat` and `trajectory`, or those of
   * `definitions`. See Conversation. Throws TypeError for wrong options.
   */
  conversation(options?: ConversationOptions<typeof CONVERSATION>): Conversation<typeof CONVERSATION>
  conversation<Definitions extends ViewDefinitions>(
    options: ConversationOptions<Definitions> & { definitions: Definitions },
  ): Conversation<Definitions>
  conversation({ definitions = CONVERSATION, ...options }: ConversationOptions<ViewDefinitions> = {}) {
    return new Conversation(this.journal(options), definitions)
  }
}

/** A session by its own path. */
export class SessionClient extends HistoryReader {
  readonly id: string
  readonly #appender: Appender

  /** Made by the client. */
  constructor(wiring: Wiring, id: string) {
    super(wiring, sessionPath(id))
    this.id = id
    this.#appender = new Appender(wiring, this.path, (signal) => this.head(signal))
  }

  /** Where the log stands. Throws ServiceError `session/not-found`. */
  async head(signal?: AbortSignal): Promise<SessionHead> {
    return this.#get(readSessionHead, signal)
  }

  /** The session's description, its header included. Throws ServiceError `session/not-found`. */
  async describe(signal?: AbortSignal): Promise<SessionDescription> {
    return this.#get(readSessionDescription, signal)
  }

  /**
   * Appends events in one step that is durable once this resolves, in a form that can be sent twice without doubling
   * anything, so a lost answer is no reason to fail.
   *
   * Events that carry their `seq` go where it says. Others are numbered from `expectedSeq`; without that, after the
   * last event that this object knows of, and its appends wait for one another. One such writer at a time can succeed:
   * where another one was faster it is `append/conflict` or `append/gap`, and the next append goes on after that one's
   * events.
   *
   * When the outcome is not known (NetworkError, or an aborted signal), appending the same events again to this object
   * is safe, before any others; another object of the session does not know of them. So that none comes before them, appends that were waiting behind one that fails are not sent: they fail
   * with AppendError `append/behind`, and are to be appended again after it.
   *
   * Throws InputError for events that cannot be sent, ServiceError (`append/gap` with `expectedSeq`, `append/conflict`,
   * `event/invalid` with `line`, `session/replaced`, …), NetworkError, AnswerError, AppendError.
   */
  async append(events: Iterable<AppendItem> | AppendLines, options: AppendOptions = {}): Promise<AppendResult> {
    return this.#appender.append(events, options)
  }

  /** The whole session in the session log format. Read it or cancel it. Throws as `page` does. */
  async export(options: ExportOptions = {}): Promise<ExportedLog> {
    const { transport, retry, lineBytes } = this.wiring
    const checks = { layout: oneOf(EXPORT_LAYOUTS), epoch: anEpoch, signal: aSignal }
    const { layout, epoch, signal } = checkOptions('export()', options, checks)
    const query = { layout, epoch }
    const request = { method: 'GET', path: `${this.path}/export`, query, accept: NDJSON, signal } as const
    const answer = await withRetries(request, () => transport.request(request), retry, signal)
    return openedAnswer(answer, () => new ExportedLog(this.id, readLogHeaders(answer.header), answer, lineBytes))
  }

  async #get<Value>(read: (document: unknown) => Value, signal: AbortSignal | undefined): Promise<Value> {
    const { transport, retry } = this.wiring
    const request = { method: 'GET', path: this.path, signal } as const
    return withRetries(request, async () => read(await transport.document(request)), retry, signal)
  }
}
