// Owns one session as its readers and writers see it: pages, ranges, the exported log, appending.

import type { AppendResult, ChunksMode, ExportLayout, SessionHistoryRecord } from '../../codec/index.ts'
import { MEDIA_NDJSON } from '../../codec/index.ts'
import type { PageHeaders, SessionHead } from './answers.ts'
import { readAppendResult, readLogHeaders, readPageHeaders, readSessionHead } from './answers.ts'
import { AnswerError } from './errors.ts'
import { readLogLines } from './log-lines.ts'
import type { RecordLine } from './record-lines.ts'
import { readRecordLines } from './record-lines.ts'
import type { RetryOptions } from './retry.ts'
import { withRetries } from './retry.ts'
import type { ServiceAnswer, Transport } from './transport.ts'

export interface PageOptions {
  /** the page ends before this seq */
  beforeSeq?: number | undefined
  /** the page goes no further than this seq */
  throughSeq?: number | undefined
  maxMessages?: number | undefined
  chunks?: ChunksMode | undefined
  epoch?: string | undefined
  signal?: AbortSignal | undefined
}

export interface RangeOptions {
  /** default 0 */
  fromSeq?: number | undefined
  /** exclusive; default after the last event */
  toSeq?: number | undefined
  chunks?: ChunksMode | undefined
  epoch?: string | undefined
  signal?: AbortSignal | undefined
}

export interface AppendLines {
  /** lines of an append body, newlines included; with their seq on all of them, or on none */
  readonly lines: string
  /** events that the lines hold, the members of rows counted */
  readonly events: number
  /** the seq that the first gets, when they carry none; without it the request cannot be repeated */
  readonly expectedSeq?: number | undefined
  /** whether they carry their seq */
  readonly numbered: boolean
}

/** What the parts of a client share. */
export interface Wiring {
  readonly transport: Transport
  readonly retry: RetryOptions
  /** limit of a line, as the service has it */
  readonly lineBytes: number
}

/** A contiguous part of a log whose body is open. It is read once, or cancelled. */
export class HistoryPage {
  readonly epoch: string
  /** inclusive */
  readonly from: number
  /** exclusive */
  readonly to: number
  readonly hasMore: boolean
  /** last seq of the log, when the end was not asked for */
  readonly head: number | undefined
  readonly #answer: ServiceAnswer
  readonly #lineBytes: number

  constructor(headers: PageHeaders, answer: ServiceAnswer, lineBytes: number) {
    this.epoch = headers.epoch
    this.from = headers.from
    this.to = headers.to
    this.hasMore = headers.hasMore
    this.head = headers.head
    this.#answer = answer
    this.#lineBytes = lineBytes
  }

  /** The records, checked; reading ends in an AnswerError or NetworkError unless they cover `[from, to)`. */
  get records(): AsyncIterable<SessionHistoryRecord> {
    return this.#records()
  }

  /** The same with their texts, as many at a time as arrived together. */
  lines(): AsyncGenerator<RecordLine[]> {
    return readRecordLines(this.#answer.body(), this, this.#lineBytes)
  }

  cancel(): void {
    this.#answer.discard()
  }

  async *#records(): AsyncGenerator<SessionHistoryRecord> {
    for await (const lines of this.lines()) for (const { record } of lines) yield record
  }
}

/** An exported log whose body is open. It is read once, or cancelled. */
export class ExportedLog {
  readonly epoch: string
  readonly head: number
  readonly #id: string
  readonly #answer: ServiceAnswer
  readonly #lineBytes: number

  constructor(id: string, headers: { epoch: string; head: number }, answer: ServiceAnswer, lineBytes: number) {
    this.epoch = headers.epoch
    this.head = headers.head
    this.#id = id
    this.#answer = answer
    this.#lineBytes = lineBytes
  }

  /** The lines, checked, without newlines; reading ends in an error unless they are the whole log up to `head`. */
  lines(): AsyncGenerator<string[]> {
    return readLogLines(this.#answer.body(), this.#id, this.head + 1, this.#lineBytes)
  }

  cancel(): void {
    this.#answer.discard()
  }
}

/** What can be read of a session, its own path or its parent's. */
export class HistoryReader {
  protected readonly wiring: Wiring
  protected readonly path: string

  constructor(wiring: Wiring, path: string) {
    this.wiring = wiring
    this.path = path
  }

  /** The newest page, or the one before a cursor. Throws ServiceError, NetworkError, AnswerError. */
  async page(options: PageOptions = {}): Promise<HistoryPage> {
    const { signal, ...query } = options
    const page = await this.#open('history', query, signal)
    const { beforeSeq = Number.POSITIVE_INFINITY, throughSeq = Number.POSITIVE_INFINITY } = options
    return checked(page, { to: Math.min(beforeSeq, throughSeq + 1), epoch: options.epoch })
  }

  /** The log from one seq to another. Throws as `page` does. */
  async events(options: RangeOptions = {}): Promise<HistoryPage> {
    const { signal, ...query } = options
    const page = await this.#open('events', query, signal)
    const { fromSeq: from = 0, toSeq: to = Number.POSITIVE_INFINITY } = options
    return checked(page, { from, to, epoch: options.epoch })
  }

  async #open(
    what: string,
    query: Record<string, string | number | undefined>,
    signal: AbortSignal | undefined,
  ): Promise<HistoryPage> {
    const { transport, retry, lineBytes } = this.wiring
    const request = { method: 'GET', path: `${this.path}/${what}`, query, accept: NDJSON, signal } as const
    const answer = await withRetries(request, () => transport.request(request), retry, signal)
    return opened(answer, () => new HistoryPage(readPageHeaders(answer.header), answer, lineBytes))
  }
}

export class SessionClient extends HistoryReader {
  readonly id: string

  constructor(wiring: Wiring, id: string) {
    super(wiring, sessionPath(id))
    this.id = id
  }

  /** Where the log stands. Throws ServiceError `session/not-found`. */
  async head(signal?: AbortSignal): Promise<SessionHead> {
    const { transport, retry } = this.wiring
    const request = { method: 'GET', path: this.path, signal } as const
    return withRetries(request, async () => readSessionHead(await transport.document(request)), retry, signal)
  }

  /**
   * Appends lines in one step that is durable once this resolves. Sent again only where the service recognises that.
   * Throws ServiceError (`append/gap`, `append/conflict`, `event/invalid`, …), NetworkError, AnswerError.
   */
  async append(
    batch: AppendLines,
    options: { epoch?: string | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<AppendResult> {
    const { transport, retry } = this.wiring
    const { expectedSeq } = batch
    const { epoch, signal } = options
    const request = {
      method: 'POST',
      path: `${this.path}/events`,
      query: { expectedSeq, epoch },
      contentType: NDJSON,
      body: batch.lines,
      repeatable: batch.numbered || expectedSeq !== undefined,
      signal,
    } as const
    const result = await withRetries(
      request,
      async () => readAppendResult(await transport.document(request)),
      retry,
      signal,
    )
    if (result.appended + result.duplicates !== batch.events) {
      throw AnswerError.malformed(
        `${batch.events} events were sent, and the answer counts ${result.appended} appended and ${result.duplicates} duplicates`,
      )
    }
    return result
  }

  /** The session in the session log format. Throws as `page` does. */
  async export(
    options: { layout?: ExportLayout | undefined; epoch?: string | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<ExportedLog> {
    const { transport, retry, lineBytes } = this.wiring
    const { layout, epoch, signal } = options
    const query = { layout, epoch }
    const request = { method: 'GET', path: `${this.path}/export`, query, accept: NDJSON, signal } as const
    const answer = await withRetries(request, () => transport.request(request), retry, signal)
    return opened(answer, () => new ExportedLog(this.id, readLogHeaders(answer.header), answer, lineBytes))
  }
}

const NDJSON = MEDIA_NDJSON.split(';')[0] as string

export function sessionPath(id: string): string {
  return `/v1/sessions/${encodeURIComponent(id)}`
}

export function subagentPath(parent: string, child: string): string {
  return `${sessionPath(parent)}/subagents/${encodeURIComponent(child)}`
}

/** An answer whose headers are refused must not keep its connection. */
function opened<Opened>(answer: ServiceAnswer, open: () => Opened): Opened {
  try {
    return open()
  } catch (error) {
    answer.discard()
    throw error
  }
}

/** An answer to another question than the one that was asked is an error. */
function checked(page: HistoryPage, asked: { from?: number; to: number; epoch: string | undefined }): HistoryPage {
  let wrong: string | undefined
  if (asked.from !== undefined && page.from !== asked.from) wrong = `begins at seq ${page.from}, not at ${asked.from}`
  else if (asked.to !== Number.POSITIVE_INFINITY && page.to !== asked.to) {
    wrong = `ends before seq ${page.to}, not before ${asked.to}`
  } else if (asked.epoch !== undefined && page.epoch !== asked.epoch) {
    wrong = `is of the epoch ${page.epoch}, not of ${asked.epoch}`
  }
  if (wrong === undefined) return page
  page.cancel()
  throw AnswerError.malformed(`the answer ${wrong}`)
}
