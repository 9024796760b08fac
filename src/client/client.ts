// Owns the client: where the service is, and the way to its sessions.

import type { ImportResult } from '../../codec/index.ts'
import { LIMITS, MEDIA_NDJSON, MEDIA_ZSTD } from '../../codec/index.ts'
import type { SessionHead } from './answers.ts'
import { readImportResult, readSessionHead, readSessions } from './answers.ts'
import { AnswerError } from './errors.ts'
import type { RetryOptions } from './retry.ts'
import { RETRY_DEFAULTS, withRetries } from './retry.ts'
import type { Wiring } from './session.ts'
import { HistoryReader, SessionClient, sessionPath, subagentPath } from './session.ts'
import type { RequestBody, TransportOptions } from './transport.ts'
import { Transport } from './transport.ts'

export interface HistoryClientOptions extends TransportOptions {
  /** for the requests that are safe to repeat; a body that has begun is never glued to another */
  retry?: Partial<RetryOptions> | undefined
  /** the service's limit of a line, where it is not the usual one */
  lineBytes?: number | undefined
}

export interface ImportOptions {
  /** the body is Zstandard */
  zstd?: boolean | undefined
  /** the last seq that the log must have */
  expectedHead?: number | undefined
  signal?: AbortSignal | undefined
}

/** An import answers when the whole log is stored, and a large one takes its time after the last byte. */
const IMPORT_TIMEOUT = 10 * 60_000

export class HistoryClient {
  readonly sessions: Sessions
  readonly #wiring: Wiring

  /** Throws TypeError for a `baseUrl` that is no http URL. */
  constructor(options: HistoryClientOptions) {
    this.#wiring = {
      transport: new Transport(options),
      retry: { ...RETRY_DEFAULTS, ...options.retry },
      lineBytes: options.lineBytes ?? LIMITS.lineBytes,
    }
    this.sessions = new Sessions(this.#wiring)
  }

  session(id: string): SessionClient {
    return new SessionClient(this.#wiring, id)
  }

  /** A child, read through its direct parent. */
  subagent(parent: string, child: string): HistoryReader {
    return new HistoryReader(this.#wiring, subagentPath(parent, child))
  }

  /** Ends what runs, with an error for those who wait for it. */
  async close(): Promise<void> {
    await this.#wiring.transport.close()
  }
}

export class Sessions {
  readonly #wiring: Wiring

  constructor(wiring: Wiring) {
    this.#wiring = wiring
  }

  /**
   * Makes the session, or finds the one of that id whose header has these fields.
   * Throws ServiceError `session/exists` when its header has others.
   */
  async create(id: string, fields: Record<string, unknown> = {}, signal?: AbortSignal): Promise<SessionHead> {
    const { transport, retry } = this.#wiring
    const body = JSON.stringify(fields)
    const request = { method: 'PUT', path: sessionPath(id), contentType: 'application/json', body, signal } as const
    return withRetries(request, async () => readSessionHead(await transport.document(request)), retry, signal)
  }

  /** The session that was created last, undefined when there is none. */
  async newest(signal?: AbortSignal): Promise<SessionHead | undefined> {
    const { transport, retry } = this.#wiring
    const request = { method: 'GET', path: '/v1/sessions', query: { limit: 1 }, signal } as const
    const sessions = await withRetries(
      request,
      async () => readSessions(await transport.document(request)),
      retry,
      signal,
    )
    return sessions[0]
  }

  /**
   * Imports a session log. Never repeated: a stream can be read once.
   * Throws ServiceError (`log/invalid`, `session/exists`, …), NetworkError, AnswerError, or what the body throws.
   */
  async import(body: RequestBody, options: ImportOptions = {}): Promise<ImportResult> {
    const { zstd = false, expectedHead, signal } = options
    const answer = await this.#wiring.transport.document({
      method: 'POST',
      path: '/v1/sessions/import',
      query: { expectedHead },
      contentType: zstd ? MEDIA_ZSTD : MEDIA_NDJSON,
      body,
      headersTimeout: IMPORT_TIMEOUT,
      signal,
    })
    const result = readImportResult(answer)
    if (expectedHead !== undefined && result.head !== expectedHead) {
      throw AnswerError.malformed(`the answer has the head ${result.head}, not ${expectedHead}`)
    }
    return result
  }
}
