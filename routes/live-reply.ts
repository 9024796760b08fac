// A followed stream as an HTTP answer. It writes to the response itself: each line must leave at once, and a thousand
// followers of one session must cost little more than their sockets.

import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { BrotliCompress, Gzip, ZstdCompress } from 'node:zlib'
import { constants, createBrotliCompress, createGzip, createZstdCompress } from 'node:zlib'
import type { EndReason } from '../codec/index.ts'
import type { Follower, FollowSink, PagePiece } from '../src/history/index.ts'
import type { ContentCoding } from './content-coding.ts'
import type { LiveFormat } from './live-format.ts'

export interface LiveLimits {
  /** A blank line after this much silence, ms. */
  readonly heartbeatMs: number
  /** Followers with an encoder of their own; more than these get identity. */
  readonly compressedFollowers: number
}

type Encoder = Gzip | BrotliCompress | ZstdCompress

// Small windows: an encoder lives as long as its follower, and lines of one session repeat soon or not at all.
const ENCODERS: Record<Exclude<ContentCoding, 'identity'>, { make(): Encoder; readonly flush: number }> = {
  gzip: { make: () => createGzip({ windowBits: 13, memLevel: 6 }), flush: constants.Z_SYNC_FLUSH },
  br: {
    make: () =>
      createBrotliCompress({
        params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 16 },
      }),
    flush: constants.BROTLI_OPERATION_FLUSH,
  },
  zstd: {
    make: () => createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: 16 } }),
    flush: constants.ZSTD_e_flush,
  },
}

let encoders = 0

/** The coding that a follower gets: the one it prefers while there are encoders left. */
export function liveCoding(preferred: ContentCoding, { compressedFollowers }: LiveLimits): ContentCoding {
  return encoders < compressedFollowers ? preferred : 'identity'
}

/**
 * Run a follower into a response whose headers are set but not sent.
 * @throws when the store fails; the response is destroyed
 */
export async function sendLive(
  response: ServerResponse,
  follower: Follower,
  format: LiveFormat,
  coding: ContentCoding,
  { heartbeatMs }: LiveLimits,
): Promise<void> {
  // A client that left already is not heard leaving any more, and an encoder made for it would stay.
  if (response.destroyed) return follower.leave()
  const output = coding === 'identity' ? new PlainOutput(response) : new CodedOutput(response, ENCODERS[coding])
  const sink = new LiveSink(output, format, heartbeatMs)
  const left = new AbortController()
  const leave = () => left.abort()
  response.once('close', leave)
  response.flushHeaders()
  try {
    const opening = format.opening(follower.page)
    if (opening) output.write(opening)
    await follower.run(sink, left.signal)
  } catch (error) {
    response.destroy()
    throw error
  } finally {
    sink.close()
    response.off('close', leave)
    // After its last word an encoder still has to let go of the rest.
    if (!sink.ended) response.destroy()
  }
}

/** Bytes on their way to one reader. */
interface Output {
  /** Take the bytes, and send them at once. `false`: enough is waiting. */
  write(bytes: Uint8Array): boolean
  /** Nothing that was written is still here. */
  readonly idle: boolean
  /** Resolved when more can be written, or the reader has left. */
  drained(): Promise<void>
  end(bytes: Uint8Array): void
  readonly gone: boolean
}

class LiveSink implements FollowSink {
  readonly #output: Output
  readonly #format: LiveFormat
  readonly #heartbeat: NodeJS.Timeout
  #full = false
  ended = false

  constructor(output: Output, format: LiveFormat, heartbeatMs: number) {
    this.#output = output
    this.#format = format
    // For a reader that takes nothing heartbeats would pile up behind what it has not taken.
    this.#heartbeat = setInterval(() => {
      if (output.idle) output.write(format.heartbeat)
    }, heartbeatMs)
  }

  write(piece: PagePiece): boolean {
    if (this.#output.gone) return false
    this.#heartbeat.refresh()
    this.#full = !this.#output.write(this.#format.piece(piece))
    return !this.#full
  }

  async ready(): Promise<boolean> {
    if (this.#full && !this.#output.gone) await this.#output.drained()
    this.#full = false
    return !this.#output.gone
  }

  end(reason: EndReason): void {
    this.ended = true
    this.#output.end(this.#format.end(reason))
  }

  close(): void {
    clearInterval(this.#heartbeat)
  }
}

class PlainOutput implements Output {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }

  get gone(): boolean {
    return this.#response.destroyed
  }

  get idle(): boolean {
    return !this.gone && this.#response.writableLength === 0
  }

  write(bytes: Uint8Array): boolean {
    return this.#response.write(bytes)
  }

  drained(): Promise<void> {
    return drained(this.#response)
  }

  end(bytes: Uint8Array): void {
    this.#response.end(bytes)
  }
}

class CodedOutput implements Output {
  readonly #response: ServerResponse
  readonly #encoder: Encoder
  readonly #flush: number

  constructor(response: ServerResponse, { make, flush }: (typeof ENCODERS)['gzip']) {
    this.#response = response
    this.#encoder = make()
    this.#flush = flush
    encoders++
    this.#encoder.once('close', () => encoders--)
    this.#encoder.on('error', () => response.destroy())
    response.once('close', () => this.#encoder.destroy())
    this.#encoder.pipe(response)
  }

  get gone(): boolean {
    return this.#response.destroyed
  }

  get idle(): boolean {
    return !this.gone && this.#encoder.writableLength === 0 && this.#response.writableLength === 0
  }

  write(bytes: Uint8Array): boolean {
    const room = this.#encoder.write(bytes)
    this.#encoder.flush(this.#flush)
    return room
  }

  /** The encoder takes no more while the response takes none from it. */
  drained(): Promise<void> {
    return drained(this.#encoder)
  }

  end(bytes: Uint8Array): void {
    this.#encoder.end(bytes)
  }
}

async function drained(stream: Duplex | ServerResponse): Promise<void> {
  if (!stream.writableNeedDrain || stream.destroyed) return
  const { promise, resolve } = Promise.withResolvers<void>()
  stream.once('drain', resolve).once('close', resolve)
  await promise
  stream.off('drain', resolve).off('close', resolve)
}
