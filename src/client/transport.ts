// Owns the connection: one request out, one answer in, every failure a typed error. Nothing is repeated here, and no body
// is believed to be whole because it ended: undici takes some bodies that were cut for whole ones.

import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Agent, request as send } from 'undici'
import { AnswerError, ClientError, errorOfAnswer, errorOfConnection } from './errors.ts'

/** Milliseconds, each. */
export interface Timeouts {
  /** until a connection stands */
  connect: number
  /** from the end of the request to the answer's headers */
  headers: number
  /** of silence inside a body; a reader that takes nothing stops this clock */
  body: number
}

export const TIMEOUT_DEFAULTS: Timeouts = { connect: 10_000, headers: 60_000, body: 60_000 }

export interface TransportOptions {
  /** where the service is; a path in it comes before every other */
  baseUrl: string | URL
  /** sent as a bearer token; a function is asked at each request */
  token?: string | (() => string | Promise<string>) | undefined
  /** undici's, for other connections than plain ones; closing it is the caller's business */
  dispatcher?: Dispatcher | undefined
  timeouts?: Partial<Timeouts> | undefined
}

export type RequestBody = string | Uint8Array | AsyncIterable<Uint8Array>

export interface ServiceRequest {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE'
  /** after the base; segments encoded */
  readonly path: string
  /** those that are undefined are not sent */
  readonly query?: Readonly<Record<string, string | number | undefined>> | undefined
  readonly accept?: string | undefined
  readonly contentType?: string | undefined
  readonly body?: RequestBody | undefined
  /** the service recognises this very request when it comes twice */
  readonly repeatable?: boolean | undefined
  /** milliseconds; instead of the one of the transport */
  readonly headersTimeout?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** A success, its body not yet read. */
export interface ServiceAnswer {
  readonly status: number
  header(name: string): string | undefined
  /** Throws NetworkError when the connection breaks, the signal's reason when it is aborted. */
  body(): AsyncGenerator<Uint8Array>
  /** Lets go of a body that nobody reads. */
  discard(): void
}

/** Most of an answer that is one value, or an error. */
const DOCUMENT_BYTES = 16 * 1024 * 1024
const ERROR_BYTES = 64 * 1024

export class Transport {
  readonly #base: URL
  readonly #token: TransportOptions['token']
  readonly #timeouts: Timeouts
  readonly #dispatcher: Dispatcher
  readonly #own: Agent | undefined

  /** Throws TypeError for a base that is no http URL. */
  constructor(options: TransportOptions) {
    this.#base = readBase(options.baseUrl)
    this.#token = options.token
    this.#timeouts = { ...TIMEOUT_DEFAULTS, ...options.timeouts }
    this.#own = options.dispatcher ? undefined : new Agent({ connect: { timeout: this.#timeouts.connect } })
    this.#dispatcher = options.dispatcher ?? (this.#own as Agent)
  }

  /** Throws ServiceError, NetworkError, AnswerError, the signal's reason, or what the body to send throws itself. */
  async request(request: ServiceRequest): Promise<ServiceAnswer> {
    const { signal } = request
    signal?.throwIfAborted()
    const headers = await this.#headers(request)
    const outgoing = new Outgoing(request.body)
    let response: Dispatcher.ResponseData
    try {
      response = await send(this.#url(request), {
        method: request.method,
        headers,
        body: outgoing.body,
        dispatcher: this.#dispatcher,
        headersTimeout: request.headersTimeout ?? this.#timeouts.headers,
        bodyTimeout: this.#timeouts.body,
        signal: signal ?? null,
      })
    } catch (error) {
      signal?.throwIfAborted()
      if (outgoing.failure) throw outgoing.failure.error
      throw this.#lost(error)
    }
    const header = (name: string) => oneValue(response.headers[name.toLowerCase()])
    const body = () => this.#body(response.body, signal)
    if (response.statusCode < 200 || response.statusCode > 299) {
      throw errorOfAnswer(response.statusCode, header, await beginning(body()), Date.now())
    }
    const discard = () => void response.body.on('error', () => {}).destroy()
    const coding = header('content-encoding') ?? 'identity'
    if (coding !== 'identity') {
      discard()
      throw AnswerError.malformed(`the answer has the content coding ${coding}, which was not asked for`)
    }
    return { status: response.statusCode, header, body, discard }
  }

  /** The answer's body as one JSON value. Throws AnswerError for any other. */
  async document(request: ServiceRequest): Promise<unknown> {
    const answer = await this.request({ accept: 'application/json', ...request })
    const pieces: Uint8Array[] = []
    let bytes = 0
    for await (const piece of answer.body()) {
      pieces.push(piece)
      bytes += piece.length
      if (bytes > DOCUMENT_BYTES) throw AnswerError.malformed(`the answer takes more than ${DOCUMENT_BYTES} bytes`)
    }
    try {
      return JSON.parse(Buffer.concat(pieces).toString())
    } catch (error) {
      throw AnswerError.malformed(`the answer is not JSON: ${(error as Error).message}`, error)
    }
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    await this.#own?.destroy()
  }

  #url({ path, query = {} }: ServiceRequest): URL {
    const url = new URL(this.#base)
    url.pathname = `${this.#base.pathname.replace(/\/+$/, '')}${path}`
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) url.searchParams.set(name, `${value}`)
    }
    return url
  }

  async #headers(request: ServiceRequest): Promise<Record<string, string>> {
    const token = typeof this.#token === 'function' ? await this.#token() : this.#token
    const headers: Record<string, string> = { 'accept-encoding': 'identity' }
    if (request.accept !== undefined) headers.accept = request.accept
    if (request.contentType !== undefined) headers['content-type'] = request.contentType
    if (token !== undefined) headers.authorization = `Bearer ${token}`
    return headers
  }

  async *#body(body: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
    try {
      yield* body
    } catch (error) {
      signal?.throwIfAborted()
      throw this.#lost(error)
    }
  }

  #lost(error: unknown): Error {
    // What undici says of a call that is wrong in itself is our own mistake, and no news of the network.
    const { code } = error as { code?: unknown }
    if (error instanceof ClientError || error instanceof TypeError || code === 'UND_ERR_INVALID_ARG')
      return error as Error
    return errorOfConnection(error, this.#base.origin)
  }
}

/** A body that remembers its own failure, so that a file that cannot be read is not told as a lost connection. */
class Outgoing {
  readonly body: string | Uint8Array | Readable | null
  failure: { error: unknown } | undefined

  constructor(body: RequestBody | undefined) {
    const streamed = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)
    this.body = streamed ? Readable.from(this.#watched(body), { objectMode: false }) : (body ?? null)
  }

  async *#watched(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      for await (const bytes of body) yield bytes
    } catch (error) {
      this.failure = { error }
      throw error
    }
  }
}

function readBase(text: string | URL): URL {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new TypeError(`baseUrl must be a URL such as http://127.0.0.1:7411, got ${JSON.stringify(`${text}`)}`)
  }
  if (!/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new TypeError(`baseUrl must be an http or https URL without query, got ${JSON.stringify(`${text}`)}`)
  }
  return url
}

function oneValue(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

/** As much text as an error needs. A body that breaks off leaves what came: the status already says most. */
async function beginning(body: AsyncGenerator<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const piece of body) {
      pieces.push(piece)
      bytes += piece.length
      if (bytes > ERROR_BYTES) break
    }
  } catch {
    // See above.
  }
  return Buffer.concat(pieces).toString()
}
