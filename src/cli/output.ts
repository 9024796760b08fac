// Owns standard output: whole lines, one write after the other, and what happens when its reader has gone.

import type { Writable } from 'node:stream'

/** Whoever read the output has closed it, as `head` does. The work may stop there, and that is no failure. */
export class OutputClosed extends Error {}

export class Output {
  readonly #stream: Writable
  #closed = false

  constructor(stream: Writable) {
    this.#stream = stream
    // Each failure is also given to the write that it belongs to; without a listener it would end the process.
    stream.on('error', () => {})
  }

  /** Resolves once the system has taken the text. Throws OutputClosed, or the error of a full disk and the like. */
  async write(text: string): Promise<void> {
    if (this.#closed) throw new OutputClosed('the output is closed')
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#stream.write(text, (error) => (error ? reject(error) : resolve()))
    try {
      await promise
    } catch (error) {
      if (!isClosed(error)) throw error
      this.#closed = true
      throw new OutputClosed('the output is closed', { cause: error })
    }
  }

  /** Tells what was done. The work of a command that changes something goes on when nobody listens any more. */
  async tell(value: unknown): Promise<void> {
    try {
      await this.write(`${JSON.stringify(value)}\n`)
    } catch (error) {
      if (!(error instanceof OutputClosed)) throw error
    }
  }
}

function isClosed(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === 'EPIPE' || code === 'EOF' || code === 'ERR_STREAM_DESTROYED'
}
