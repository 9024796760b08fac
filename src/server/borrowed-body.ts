// A request's body that may be closed without closing the connection: a decoder that fails, or is left early, destroys
// what it reads from, and the answer would have no way to the client.

import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

export class BorrowedBody extends Readable {
  readonly #request: IncomingMessage
  #ended = false

  constructor(request: IncomingMessage) {
    super()
    this.#request = request
    request.pause()
    // Nobody reads it when the request is refused for its coding; its connection may still end before its body does.
    this.on('error', () => {})
    request.on('data', this.#onData).on('end', this.#onEnd).on('error', this.#onLost).on('close', this.#onLost)
  }

  override _read(): void {
    this.#request.resume()
  }

  /** The rest of the request runs out unread. */
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#request.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onLost)
    this.#request.resume()
    done(error)
  }

  readonly #onData = (piece: Buffer) => {
    if (!this.push(piece)) this.#request.pause()
  }

  readonly #onEnd = () => {
    this.#ended = true
    this.push(null)
  }

  readonly #onLost = (error?: Error) => {
    if (!this.#ended) this.destroy(error ?? new Error('the connection closed before the body ended'))
  }
}
