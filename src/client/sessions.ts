// Owns the sessions of a service: making, finding, describing, deleting and importing them.

import type { ImportResult, JsonValue, SessionDescription, SessionList } from '../../codec/index.ts'
import { CURSOR_LENGTH, LIST_SESSIONS, MEDIA_NDJSON, MEDIA_ZSTD } from '../../codec/index.ts'
import { readImportResult, readSessionDescription, readSessionList } from './answers.ts'
import { AnswerError } from './errors.ts'
import { aBoolean, aSignal, checkOptions, inclusiveSeq, integerOf, textOf } from './options.ts'
import { withRetries } from './retry.ts'
import type { RequestBody } from './transport.ts'
import type { Wiring } from './wiring.ts'
import { sessionPath } from './wiring.ts'

/** The header of a session to create. All may be left out; other fields are kept as they are. */
export interface NewSession {
  /** epoch milliseconds; default: the time of the request */
  createdAt?: number | undefined
  /** working folder of the agent */
  cwd?: string | undefined
  parentSession?: string | undefined
  /** how many events at the start were copied from the parent */
  seedLength?: number | undefined
  /** `subagent` makes it a child, which is read through its parent only */
  origin?: string | undefined
  delegationDepth?: number | undefined
  agentPreset?: JsonValue | undefined
  [other: string]: JsonValue | undefined
}

export interface ListOptions {
  /** sessions in one answer, 1 to 500 (default 50) */
  limit?: number | undefined
  /** the `nextCursor` of the answer before */
  cursor?: string | undefined
  /** only the direct children and forks of this session */
  parent?: string | undefined
  signal?: AbortSignal | undefined
}

export interface ImportOptions {
  /** the body is Zstandard */
  zstd?: boolean | undefined
  /** the last seq that the log must have */
  expectedHead?: number | undefined
  signal?: AbortSignal | undefined
}

const LIST_CHECKS = {
  limit: integerOf(LIST_SESSIONS.minimum, LIST_SESSIONS.maximum),
  cursor: textOf(CURSOR_LENGTH),
  parent: textOf(128),
  signal: aSignal,
}

/** An import answers when the whole log is stored, and a large one takes its time after the last byte. */
const IMPORT_TIMEOUT = 10 * 60_000

/** Every method throws ServiceError, NetworkError, AnswerError, TokenError, or the reason of an aborted signal. */
export class Sessions {
  readonly #wiring: Wiring

  /** Made by the client. */
  constructor(wiring: Wiring) {
    this.#wiring = wiring
  }

  /**
   * Makes the session, or finds the one of that id whose header has these fields.
   * Throws ServiceError `session/exists` when its header has others.
   */
  async create(id: string, fields: NewSession = {}, signal?: AbortSignal): Promise<SessionDescription> {
    const { transport, retry } = this.#wiring
    const body = JSON.stringify(fields)
    const request = { method: 'PUT', path: sessionPath(id), contentType: 'application/json', body, signal } as const
    return withRetries(request, async () => readSessionDescription(await transport.document(request)), retry, signal)
  }

  /** A part of the list of sessions, the newest created first. There are more when it has a `nextCursor`. */
  async list(options: ListOptions = {}): Promise<SessionList> {
    const { signal, ...query } = checkOptions('list()', options, LIST_CHECKS)
    return this.#list('/v1/sessions', query, signal)
  }

  /** The same of the children that can be read through this parent; none for a parent that is not known. */
  async listSubagents(parent: string, options: Omit<ListOptions, 'parent'> = {}): Promise<SessionList> {
    const { parent: _parent, ...checks } = LIST_CHECKS
    const { signal, ...query } = checkOptions('listSubagents()', options, checks)
    return this.#list(`${sessionPath(parent)}/subagents`, query, signal)
  }

  async #list(
    path: string,
    query: Readonly<Record<string, string | number | undefined>>,
    signal: AbortSignal | undefined,
  ): Promise<SessionList> {
    const { transport, retry } = this.#wiring
    const request = { method: 'GET', path, query, signal } as const
    return withRetries(request, async () => readSessionList(await transport.document(request)), retry, signal)
  }

  /** The session that was created last, undefined when there is none. */
  async newest(signal?: AbortSignal): Promise<SessionDescription | undefined> {
    const { sessions } = await this.list({ limit: 1, signal })
    return sessions[0]
  }

  /** One session with its header, head and epoch. Throws ServiceError `session/not-found`. */
  async get(id: string, signal?: AbortSignal): Promise<SessionDescription> {
    const { transport, retry } = this.#wiring
    const request = { method: 'GET', path: sessionPath(id), signal } as const
    return withRetries(request, async () => readSessionDescription(await transport.document(request)), retry, signal)
  }

  /**
   * Deletes the session, at once for every reader. Throws ServiceError `session/not-found`. Sent once where it may have
   * arrived: sent again it could meet the next session of that id.
   */
  async delete(id: string, signal?: AbortSignal): Promise<void> {
    const { transport, retry } = this.#wiring
    const request = { method: 'DELETE', path: sessionPath(id), signal } as const
    const answer = await withRetries(request, () => transport.request(request), retry, signal)
    for await (const _ of answer.body());
  }

  /**
   * Imports a session log. Never repeated: a stream can be read once.
   * Throws ServiceError (`log/invalid`, `session/exists`, …), NetworkError, AnswerError, or what the body throws.
   */
  async import(body: RequestBody, options: ImportOptions = {}): Promise<ImportResult> {
    const checks = { zstd: aBoolean, expectedHead: inclusiveSeq, signal: aSignal }
    const { zstd = false, expectedHead, signal } = checkOptions('import()', options, checks)
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
