// Owns the connection: one request out, one answer in, every failure a typed error. Nothing is repeated here, and no body
// is believed to be whole because it ended: undici takes some bodies that were cut for whole ones.

import { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { Agent, request as send } from 'undici'
import { MEDIA_NDJSON } from '../../codec/index.ts'
import { unlessAborted } from './abort.ts'
import { AnswerError, ClientError, errorOfAnswer, errorOfConnection, ServiceError, TokenError } from './errors.ts'

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
  /** Sent as a bearer token. A function is asked at each try, so that it can give one that is still good. */
  token?: string | (() => string | Promise<string>) | undefined
  /**
   * undici's, for other connections than plain ones; closing it is the caller's business. Each followed session keeps a
   * connection for itself, and others are needed beside it.
   */
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
  /** milliseconds; instead of the one of the transport; 0 is for ever, for a reader that watches the silence itself */
  readonly bodyTimeout?: number | undefined
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

/** What streams of records are asked for as. */
export const NDJSON = MEDIA_NDJSON.split(';')[0] as string

/** Most of an answer that is one value, or an error. */
const DOCUMENT_BYTES = 16 * 1024 * 1024
const ERROR_BYTES = 64 * 1024

export class Transport {
  readonly #base: URL
  readonly #token: TransportOptions['token']
  readonly #timeouts: Timeouts
  readonly #dispatcher: Dispatcher
  readonly #own: Agent | undefined
  readonly #running = new Set<AbortController>()
  #closed: ClientError | undefined

  /** Throws TypeError for a base that is no http URL. */
  constructor(options: TransportOptions) {
    this.#base = readBase(options.baseUrl)
    this.#token = options.token
    this.#timeouts = { ...TIMEOUT_DEFAULTS, ...options.timeouts }
    this.#own = options.dispatcher ? undefined : new Agent({ connect: { timeout: this.#timeouts.connect } })
    this.#dispatcher = options.dispatcher ?? (this.#own as Agent)
  }

  /**
   * Throws ServiceError, NetworkError, AnswerError, TokenError, the signal's reason, or what the body to send throws.
   * A token that is refused is asked for again, and if it is another one now, the request is sent once more: a refusal
   * did nothing. Nothing else is repeated.
   */
  async request(request: ServiceRequest): Promise<ServiceAnswer> {
    const token = await this.#askToken(request.signal)
    try {
      return await this.#send(request, token)
    } catch (error) {
      const refused = error instanceof ServiceError && error.status === 401
      if (!refused || typeof this.#token !== 'function' || !isReplayable(request.body)) throw error
      const other = await this.#askToken(request.signal)
      if (other === token) throw error
      return this.#send(request, other)
    }
  }

  async #send(request: ServiceRequest, token: string | undefined): Promise<ServiceAnswer> {
    const { signal } = request
    const running = this.start(signal)
    const outgoing = new Outgoing(request.body)
    let response: Dispatcher.ResponseData
    try {
      response = await send(this.#url(request), {
        method: request.method,
        headers: headersOf(request, token),
        body: outgoing.body,
        dispatcher: this.#dispatcher,
        headersTimeout: request.headersTimeout ?? this.#timeouts.headers,
        bodyTimeout: request.bodyTimeout ?? this.#timeouts.body,
        signal: running.signal,
      })
    } catch (error) {
      running.end()
      running.signal.throwIfAborted()
      if (outgoing.failure) throw outgoing.failure.error
      throw this.#lost(error)
    }
    response.body.once('close', running.end)
    const header = (name: string) => oneValue(response.headers[name.toLowerCase()])
    const body = () => this.#body(response.body, running.signal)
    // What is let go of may still tell of an error; nobody wants to know.
    const discard = () => void response.body.on('error', () => {}).destroy()
    if (response.statusCode < 200 || response.statusCode > 299) {
      const { text, failure } = await beginning(body(), discard, this.#timeouts.body)
      running.signal.throwIfAborted()
      const error = errorOfAnswer(response.statusCode, header, text, Date.now())
      // Half an error does not say what is wrong: a cursor that does not fit any more would look like any other 409.
      throw failure !== undefined && error.code.startsWith('http/') ? failure : error
    }
    const coding = header('content-encoding') ?? 'identity'
    if (coding !== 'identity') {
      discard()
      throw AnswerError.malformed(`the answer has the content coding ${coding}, which was not asked for`)
    }
    return { status: response.statusCode, header, body, discard }
  }

  /**
   * A signal that is aborted by the caller's, or by the closing of the client. `end` takes the listener away again.
   * Throws the reason when it is too late.
   */
  start(signal: AbortSignal | undefined): { signal: AbortSignal; end: () => void } {
    if (this.#closed) throw this.#closed
    signal?.throwIfAborted()
    const stop = new AbortController()
    const forward = () => stop.abort(signal?.reason)
    signal?.addEventListener('abort', forward, { once: true })
    this.#running.add(stop)
    const end = () => {
      signal?.removeEventListener('abort', forward)
      this.#running.delete(stop)
    }
    return { signal: stop.signal, end }
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

  /** Ends what runs, and everything after it, with ClientError `client/closed`. */
  async close(): Promise<void> {
    this.#closed ??= new ClientError('client/closed', 'the client was closed')
    for (const stop of [...this.#running]) stop.abort(this.#closed)
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

  async #askToken(signal: AbortSignal | undefined): Promise<string | undefined> {
    if (typeof this.#token !== 'function') return this.#token
    signal?.throwIfAborted()
    const ask = this.#token
    const asked = (async () => ask())()
      .then(checkedToken)
      .catch((error: unknown) => {
        throw TokenError.of(error)
      })
    const running = this.start(signal)
    try {
      return await unlessAborted(asked, running.signal)
    } finally {
      running.end()
    }
  }

  async *#body(body: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    try {
      yield* body
    } catch (error) {
      signal.throwIfAborted()
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

function headersOf(request: ServiceRequest, token: string | undefined): Record<string, string> {
  const headers: Record<string, string> = { 'accept-encoding': 'identity' }
  if (request.accept !== undefined) headers.accept = request.accept
  if (request.contentType !== undefined) headers['content-type'] = request.contentType
  if (token !== undefined) headers.authorization = `Bearer ${token}`
  return headers
}

/** What cannot stand in a header must not be told as a lost connection, which might be tried again for ever. */
function checkedToken(token: unknown): string {
  if (typeof token === 'string' && isToken(token)) return token
  throw new TypeError('it gave no text that can stand in a header')
}

/** Printable, and no line break that would begin another header. */
export function isToken(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token)
}

function isReplayable(body: RequestBody | undefined): boolean {
  return body === undefined || typeof body === 'string' || body instanceof Uint8Array
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

/** As much text as an error needs, and what broke it off before its end. */
async function beginning(
  body: AsyncGenerator<Uint8Array>,
  discard: () => void,
  patience: number,
): Promise<{ text: string; failure: unknown }> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  let failure: unknown
  // A request that has no limit of its own must not wait for ever for the end of an error.
  const timer = setTimeout(discard, patience > 0 ? patience : TIMEOUT_DEFAULTS.body)
  try {
    for await (const piece of body) {
      pieces.push(piece)
      bytes += piece.length
      if (bytes > ERROR_BYTES) break
    }
  } catch (error) {
    failure = error
  } finally {
    clearTimeout(timer)
  }
  return { text: Buffer.concat(pieces).toString(), failure }
}
