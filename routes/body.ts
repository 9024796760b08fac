// Request bodies. They are read as raw bytes, decoded of their content coding, under three bounds: the size of one body,
// the bytes of all append bodies held at one time, and how long a client may send nothing. No body is destroyed here,
// since that would close the connection before the answer; what is left of one is let run out after it.

import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Problem } from '../codec/index.ts'
import { REQUEST_CODINGS } from './content-coding.ts'

export interface BodyLimits {
  /** Bytes of one append body, decoded. */
  readonly appendBytes: number
  /** Bytes of all append bodies that are held at one time, decoded. */
  readonly heldBytes: number
  /** Bytes of one import, decoded. */
  readonly importBytes: number
  /** Imports at one time: each may hold a decoder's window. */
  readonly imports: number
  /** How long a client may send nothing while its body is awaited, ms. */
  readonly idleMs: number
}

/** A create request has a few header fields. */
export const CREATE_BYTES = 64 * 1024

/** A request whose body is a stream; there is none when the request has no body. */
export type BodyRequest = Pick<FastifyRequest, 'headers' | 'raw'> & { readonly body: unknown }

/** Append bodies, counted while they are held. */
export class AppendBodies {
  readonly #limits: BodyLimits
  #held = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /** Bytes held now. */
  get held(): number {
    return this.#held
  }

  /**
   * Read a body and hold it until `use` has settled.
   * @throws Problem `request/too-large`, `server/busy`, `request/timeout`, `request/invalid`
   */
  async hold<T>(request: BodyRequest, use: (bytes: readonly Uint8Array[]) => Promise<T>): Promise<T> {
    const { appendBytes, heldBytes, idleMs } = this.#limits
    const pieces = new Pieces()
    let held = 0
    try {
      await receive(request, { maxBytes: appendBytes, idleMs }, (piece) => {
        this.#held += piece.length
        held += piece.length
        if (this.#held > heldBytes) {
          throw new Problem('server/busy', 'too many bytes are being appended at this moment', {
            limit: heldBytes,
            retryAfter: 1,
          })
        }
        pieces.add(piece)
      })
      return await use(pieces.take())
    } finally {
      this.#held -= held
    }
  }
}

/** A small body as text, undefined when it is absent or empty. @throws Problem as `AppendBodies.hold` */
export async function bodyText(request: BodyRequest, maxBytes: number, idleMs: number): Promise<string | undefined> {
  const pieces = new Pieces()
  await receive(request, { maxBytes, idleMs }, (piece) => pieces.add(piece))
  const bytes = Buffer.concat(pieces.take())
  if (bytes.length === 0) return undefined
  try {
    return utf8.decode(bytes)
  } catch {
    throw new Problem('request/invalid', 'the body is not UTF-8', { path: 'body' })
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** A large body as it comes, pulled. @throws Problem `request/timeout`, `request/invalid` */
export async function* bodyBytes(request: BodyRequest, idleMs: number): AsyncGenerator<Uint8Array> {
  const body = bodyStream(request)
  if (!body) return
  const pieces = body.iterator({ destroyOnReturn: false })
  try {
    for (;;) {
      const next: Promise<IteratorResult<Uint8Array>> = pieces.next()
      const { done, value } = await withinIdle(request, idleMs, next)
      if (done) return
      yield value
    }
  } catch (error) {
    throw bodyProblem(request, error)
  } finally {
    // The rest cannot run out while the iterator holds the body. It is not waited for: it may be waiting for the client.
    void pieces.return?.()
    letGo(request, body)
  }
}

/** The same bytes, as long as they are no more than `maxBytes`. @throws Problem `request/too-large` */
export async function* limited(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const piece of source) {
    bytes += piece.length
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    yield piece
  }
}

/** Give each piece of the body to `take`, which may throw. */
async function receive(
  request: BodyRequest,
  { maxBytes, idleMs }: { maxBytes: number; idleMs: number },
  take: (piece: Uint8Array) => void,
): Promise<void> {
  const body = bodyStream(request)
  if (!body) return
  if (body === request.raw && Number(request.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let bytes = 0
  const onData = (piece: Uint8Array) => {
    try {
      bytes += piece.length
      if (bytes > maxBytes) throw tooLarge(maxBytes)
      take(piece)
    } catch (error) {
      // No more of it is taken, also not what is emitted before the caller runs again.
      body.off('data', onData)
      reject(error)
    }
  }
  body.on('data', onData).on('end', resolve).on('error', reject).on('close', reject)
  // A decoder is handed over paused, and stays so for a mere listener.
  body.resume()
  const watch = watchIdle(request, idleMs, reject)
  try {
    await promise
  } catch (error) {
    throw bodyProblem(request, error)
  } finally {
    clearInterval(watch)
    // Its error listener stays: what is left of the body may still fail.
    body.off('data', onData)
    letGo(request, body)
  }
}

function bodyStream(request: BodyRequest): Readable | undefined {
  return (request.body as Readable | null | undefined) ?? undefined
}

/** Let the rest of the body run out unread. A decoder is closed, so that it does not decode the rest. */
function letGo(request: BodyRequest, body: Readable): void {
  if (body !== request.raw) body.destroy()
  request.raw.resume()
}

/** Wait for more of a body as long as bytes come over the connection at all. */
async function withinIdle<T>(request: BodyRequest, idleMs: number, next: Promise<T>): Promise<T> {
  const { promise: idle, reject } = Promise.withResolvers<never>()
  const watch = watchIdle(request, idleMs, reject)
  next.catch(() => {})
  try {
    return await Promise.race([next, idle])
  } finally {
    clearInterval(watch)
  }
}

/** Reject when no byte comes over the connection for a while. */
function watchIdle({ raw: { socket } }: BodyRequest, idleMs: number, reject: (problem: Problem) => void) {
  let seen = socket.bytesRead
  return setInterval(() => {
    if (socket.bytesRead === seen) {
      reject(new Problem('request/timeout', `nothing of the body came for ${idleMs / 1000} s`, { limit: idleMs }))
    }
    seen = socket.bytesRead
  }, idleMs)
}

function tooLarge(limit: number): Problem {
  return new Problem('request/too-large', `the body is larger than ${limit} bytes`, { limit })
}

/** Why a body could not be read to its end. `undefined` stands for a stream that closed before it ended. */
function bodyProblem(request: BodyRequest, error: unknown): unknown {
  if (error instanceof Problem) return error
  const options = { cause: error }
  if (error instanceof Error && 'decompressError' in error && !hasLeft(request)) {
    const coding = request.headers['content-encoding']
    return new Problem('request/invalid', `the body is not whole ${coding}`, { path: 'Content-Encoding' }, options)
  }
  if (error === undefined || isBroken(error)) {
    return new Problem('request/invalid', 'the connection ended before the body did', { path: 'body' }, options)
  }
  return error
}

function hasLeft({ raw }: BodyRequest): boolean {
  return raw.destroyed && !raw.complete
}

function isBroken(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE' || code === 'ERR_STREAM_DESTROYED'
}

/** What a refused content coding is answered with. */
export function codingProblem(coding: string): Problem {
  const offered = REQUEST_CODINGS.filter((coding) => coding !== 'identity')
  return new Problem(
    'request/unsupported-media-type',
    `the body's Content-Encoding may be one of ${offered.join(', ')}; got ${coding}`,
    { path: 'Content-Encoding', offered: [...offered] },
  )
}

/** Pieces up to this size are copied together once there are many: a buffer object for each byte would weigh hundreds. */
const SMALL_PIECE_BYTES = 4 * 1024
const MANY_PIECES = 16
const BLOCK_BYTES = 64 * 1024
const NO_BLOCK = new Uint8Array(0)

/** The pieces of one body, in order. */
class Pieces {
  #pieces: Uint8Array[] = []
  #block = NO_BLOCK
  #filled = 0

  add(piece: Uint8Array): void {
    if (piece.length > SMALL_PIECE_BYTES || this.#pieces.length < MANY_PIECES) {
      this.#closeBlock()
      this.#pieces.push(piece)
      return
    }
    if (this.#filled + piece.length > this.#block.length) {
      this.#closeBlock()
      this.#block = new Uint8Array(BLOCK_BYTES)
    }
    this.#block.set(piece, this.#filled)
    this.#filled += piece.length
  }

  take(): Uint8Array[] {
    this.#closeBlock()
    return this.#pieces
  }

  #closeBlock(): void {
    if (this.#filled === 0) return
    this.#pieces.push(this.#block.subarray(0, this.#filled))
    this.#block = this.#block.subarray(this.#filled)
    this.#filled = 0
  }
}
