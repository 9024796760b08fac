// Zstandard data of several frames, decoded as one stream. node:zlib stops silently after the first frame, so the
// frame boundaries are walked here (RFC 8878, 3.1) and each frame is given to a decoder of its own.
//
//   frame      = magic  header  block+  [checksum]
//   magic      = 28 B5 2F FD
//   header     = descriptor  [window]  [dictionary id]  [content size]
//   block      = 3 bytes: last (1 bit), type (2 bits), size (21 bits); then `size` bytes, or 1 byte for a run
//   skippable  = 5x 2A 4D 18  size (4 bytes)  any bytes

import { pipeline, Readable } from 'node:stream'
import { constants, createZstdDecompress, zstdDecompressSync } from 'node:zlib'
import { Problem } from '../../codec/index.ts'
import { nextTurnIfLong } from './event-loop.ts'

/** Largest window that is decoded: 2^27 bytes, also the limit of the zstd command without `--long`. */
export const WINDOW_LOG_MAX = 27

/** A frame up to this size that gives no more than the other is decoded in one call; a stream for each costs ten times that. */
const SMALL_FRAME_BYTES = 32 * 1024
const SMALL_CONTENT_BYTES = 512 * 1024

const OUTPUT_BYTES = 128 * 1024

/**
 * Decodes a concatenation of Zstandard frames. Pulls from its source only what the reader takes.
 *
 * Iterating throws Problem `log/invalid` when the data is not Zstandard, is damaged, ends inside a frame, needs a
 * dictionary or a window above `WINDOW_LOG_MAX`. An error of the source is thrown as it is.
 */
export class ZstdFrames implements AsyncIterable<Uint8Array> {
  readonly #source: AsyncIterable<Uint8Array>

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    return gathered(this.#frames())
  }

  async *#frames(): AsyncGenerator<Uint8Array> {
    const input = new Input(this.#source)
    try {
      for (let frames = 0; await input.hasMore(); ) {
        await nextTurnIfLong()
        const magic = await input.take(4)
        if (isSkippable(magic)) {
          const size = littleEndian(await input.take(4))
          for await (const _ of input.pieces(size)) {
            // Skipped.
          }
          continue
        }
        if (littleEndian(magic) !== FRAME_MAGIC) {
          throw invalid(
            frames === 0 ? 'this is not Zstandard data' : 'something other than a Zstandard frame follows a frame',
          )
        }
        yield* decodeFrame(framePieces(input, magic))
        frames++
      }
    } finally {
      await input.close()
    }
  }
}

const GATHERED_BYTES = 64 * 1024

/** Small contents of many frames leave together: each piece costs whoever takes it. */
async function* gathered(contents: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = []
  let bytes = 0
  for await (const content of contents) {
    waiting.push(content)
    bytes += content.length
    if (bytes < GATHERED_BYTES) continue
    yield Buffer.concat(waiting)
    waiting = []
    bytes = 0
  }
  if (waiting.length > 0) yield Buffer.concat(waiting)
}

const FRAME_MAGIC = 0xfd2fb528

function isSkippable(magic: Uint8Array): boolean {
  return (littleEndian(magic) & 0xfffffff0) >>> 0 === 0x184d2a50
}

/** The compressed bytes of one frame, to its last byte. */
async function* framePieces(input: Input, magic: Uint8Array): AsyncGenerator<Uint8Array> {
  yield magic
  const descriptor = await input.take(1)
  const { fieldBytes, checksumBytes } = readDescriptor(descriptor[0]!)
  const fields = await input.take(fieldBytes)
  checkFields(descriptor[0]!, fields)
  yield descriptor
  yield fields
  for (let last = false; !last; ) {
    const block = await input.take(3)
    const bits = littleEndian(block)
    last = (bits & 1) === 1
    // Millions of empty blocks fit into one chunk.
    await nextTurnIfLong()
    const type = (bits >> 1) & 3
    if (type === RESERVED_BLOCK) throw invalid('a Zstandard block is of a type that does not exist')
    yield block
    yield* input.pieces(type === RUN_BLOCK ? 1 : bits >> 3)
  }
  yield await input.take(checksumBytes)
}

const RUN_BLOCK = 1
const RESERVED_BLOCK = 3

const DICTIONARY_BYTES = [0, 1, 2, 4] as const
const CONTENT_SIZE_BYTES = [0, 2, 4, 8] as const

function readDescriptor(descriptor: number): { fieldBytes: number; checksumBytes: number } {
  if ((descriptor & 0x08) !== 0) throw invalid('a Zstandard frame header uses a reserved bit')
  const { window, dictionary, contentSize } = fieldSizes(descriptor)
  return { fieldBytes: window + dictionary + contentSize, checksumBytes: (descriptor & 0x04) === 0 ? 0 : 4 }
}

function fieldSizes(descriptor: number): { window: number; dictionary: number; contentSize: number } {
  const single = isSingleSegment(descriptor)
  const contentSize = CONTENT_SIZE_BYTES[(descriptor >> 6) as 0 | 1 | 2 | 3]
  return {
    window: single ? 0 : 1,
    dictionary: DICTIONARY_BYTES[(descriptor & 3) as 0 | 1 | 2 | 3],
    contentSize: single && contentSize === 0 ? 1 : contentSize,
  }
}

/** A single segment needs its whole content as the window. */
function isSingleSegment(descriptor: number): boolean {
  return (descriptor & 0x20) !== 0
}

function checkFields(descriptor: number, fields: Uint8Array): void {
  const { window, dictionary } = fieldSizes(descriptor)
  if (littleEndian(fields.subarray(window, window + dictionary)) !== 0) {
    throw invalid('the Zstandard data needs a dictionary, which is not supported')
  }
  const bytes = isSingleSegment(descriptor) ? littleEndian(fields.subarray(dictionary)) : windowBytes(fields[0]!)
  if (bytes > 2 ** WINDOW_LOG_MAX) {
    throw invalid(`a Zstandard frame needs a window of ${bytes} bytes, at most ${2 ** WINDOW_LOG_MAX} are supported`)
  }
}

function windowBytes(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3))
  return base + (base / 8) * (descriptor & 7)
}

async function* decodeFrame(pieces: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const head: Uint8Array[] = []
  let bytes = 0
  while (bytes <= SMALL_FRAME_BYTES) {
    const { done, value } = await pieces.next()
    if (done) {
      const content = decodeSmall(head)
      if (content === undefined) break
      if (content.length > 0) yield content
      return
    }
    head.push(value)
    bytes += value.length
  }
  yield* decodeLarge(prepend(head, pieces))
}

/** `undefined` when the content is larger than a small frame's may be. */
function decodeSmall(pieces: Uint8Array[]): Uint8Array | undefined {
  try {
    return zstdDecompressSync(Buffer.concat(pieces), { maxOutputLength: SMALL_CONTENT_BYTES })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return undefined
    throw damaged(error)
  }
}

async function* decodeLarge(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const params = { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX }
  const decoder = createZstdDecompress({ chunkSize: OUTPUT_BYTES, params })
  // Its callback does nothing: every failure reaches the loop below through the decoder.
  pipeline(Readable.from(pieces), decoder, () => {})
  try {
    for await (const content of decoder) yield content
  } catch (error) {
    throw isDecoderError(error) ? damaged(error) : error
  }
}

async function* prepend(head: Uint8Array[], rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* head
  yield* rest
}

function isDecoderError(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && (code.startsWith('ZSTD_') || code.startsWith('ERR_ZSTD') || code === 'Z_BUF_ERROR')
}

/** The source's bytes, taken in the sizes that the format asks for. */
class Input {
  readonly #source: AsyncIterator<Uint8Array>
  #chunk: Uint8Array = new Uint8Array(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  async hasMore(): Promise<boolean> {
    while (this.#chunk.length === 0) {
      const { done, value } = await this.#source.next()
      if (done) return false
      this.#chunk = value
    }
    return true
  }

  /** Exactly `bytes` bytes, a few. */
  async take(bytes: number): Promise<Uint8Array> {
    if (bytes <= this.#chunk.length) return this.#cut(bytes)
    const taken: Uint8Array[] = []
    for await (const piece of this.pieces(bytes)) taken.push(piece)
    return Buffer.concat(taken)
  }

  /** Exactly `bytes` bytes, as they come. */
  async *pieces(bytes: number): AsyncGenerator<Uint8Array> {
    for (let left = bytes; left > 0; ) {
      if (!(await this.hasMore())) throw invalid('the Zstandard data ends inside a frame')
      const piece = this.#cut(Math.min(left, this.#chunk.length))
      left -= piece.length
      yield piece
    }
  }

  async close(): Promise<void> {
    await this.#source.return?.()
  }

  #cut(bytes: number): Uint8Array {
    const piece = this.#chunk.subarray(0, bytes)
    this.#chunk = this.#chunk.subarray(bytes)
    return piece
  }
}

/** Up to 8 bytes; beyond 2^53 the value is near enough for a comparison. */
function littleEndian(bytes: Uint8Array): number {
  let value = 0
  for (let at = bytes.length - 1; at >= 0; at--) value = value * 256 + bytes[at]!
  return value
}

function invalid(detail: string): Problem {
  return new Problem('log/invalid', detail)
}

function damaged(cause: unknown): Problem {
  return new Problem('log/invalid', 'the Zstandard data is damaged', {}, { cause })
}
