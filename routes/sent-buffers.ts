// Memory for the pieces of one answer, used again as soon as a piece has left. A page of many megabytes would otherwise
// leave as many behind outside the heap, and each few pages would cost a full collection.

import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'

/** Sizes are rounded up to this, so that pieces of about one size fit each other's memory. */
const ROUND_BYTES = 128 * 1024

export class SentBuffers {
  readonly #response: ServerResponse
  readonly #lent: { readonly buffer: Buffer; readonly end: number }[] = []
  readonly #free: Buffer[] = []
  #given = 0
  #stream: Readable | undefined

  /** @param response what the pieces are written to, as they are */
  constructor(response: ServerResponse) {
    this.#response = response
  }

  /** The stream through which the pieces reach the response, each before the next is asked for. */
  through(stream: Readable): Readable {
    this.#stream = stream
    return stream
  }

  readonly allocate = (bytes: number): Buffer => {
    this.#collect()
    const at = this.#free.findIndex((each) => each.length >= bytes)
    const [buffer = fresh(bytes)] = at === -1 ? [] : this.#free.splice(at, 1)
    this.#given += bytes
    this.#lent.push({ buffer, end: this.#given })
    return buffer.subarray(0, bytes)
  }

  /**
   * Bytes leave in order, so what neither the stream nor the socket holds any more is the oldest. Both count until the
   * write is done; the socket counts the framing too, which errs on the safe side.
   */
  #collect(): void {
    const { socket, writableLength } = this.#response
    // An answer that waits behind another on its connection, or goes nowhere real, is not counted like this.
    if (!this.#stream || !(socket instanceof Socket)) return
    const left = this.#given - this.#stream.readableLength - writableLength
    while (this.#lent[0] && this.#lent[0].end <= left)
      this.#free.push((this.#lent.shift() as { buffer: Buffer }).buffer)
  }
}

function fresh(bytes: number): Buffer {
  return Buffer.allocUnsafeSlow(Math.ceil(bytes / ROUND_BYTES) * ROUND_BYTES)
}
