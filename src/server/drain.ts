// The end of serving: new requests are refused while the running ones may finish, for a bounded time.

import type { ServerResponse } from 'node:http'
import { Problem } from '../../codec/index.ts'

export class Drain {
  readonly #running = new Set<ServerResponse>()
  #started = false
  #idle = Promise.withResolvers<void>()

  readonly #listeners: (() => void)[] = []

  /** Called once, when it starts. */
  onStart(listener: () => void): void {
    this.#listeners.push(listener)
  }

  get started(): boolean {
    return this.#started
  }

  /** Count an answer until it is sent or its client has left. */
  track(response: ServerResponse): void {
    this.#running.add(response)
    response.once('close', () => {
      this.#running.delete(response)
      if (this.#started && this.#running.size === 0) this.#idle.resolve()
    })
  }

  /** @throws Problem `server/draining` once it has started */
  refuse(): void {
    if (this.#started) throw new Problem('server/draining', 'the server is shutting down', { retryAfter: 1 })
  }

  /** Resolved when nothing runs any more, or the time is over, or `cut` is resolved. */
  async finish(graceMs: number, cut: Promise<void>): Promise<void> {
    if (!this.#started) for (const listener of this.#listeners) listener()
    this.#started = true
    if (this.#running.size === 0) return
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, graceMs)
    await Promise.race([this.#idle.promise, over, cut])
    clearTimeout(timer)
  }
}
