// Owns a proxy on real sockets that does to a connection what networks do: cut it, go silent, dribble.

import type { Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { listening } from './listening.ts'

/** What happens to what the server sends on one connection. */
export interface Plan {
  /** let this many bytes through, then do `how` */
  readonly after?: number
  /**
   * - `reset`: the connection is reset, for both
   * - `close`: the client sees an orderly end
   * - `silence`: nothing comes any more, and nobody is told
   */
  readonly how?: 'reset' | 'close' | 'silence'
  /** bytes at a time, each for itself on the wire */
  readonly piece?: number
  /** milliseconds before each piece */
  readonly wait?: number
}

export interface FaultProxy {
  readonly url: string
  /** connections made so far */
  readonly count: number
  /** connections that are open on the client's side */
  readonly open: number
  /** bytes of the server that were let through, of each connection */
  readonly passed: readonly number[]
  /** Says what happens to the n-th connection from here on; n counts from 1. */
  plan(plan: (n: number) => Plan | undefined): void
  /** Does it now to all that are open. */
  now(fault: 'reset' | 'silence'): void
}

/** Closed with the test. */
export async function faultProxy(t: Test, target: string): Promise<FaultProxy> {
  const { hostname, port } = new URL(target)
  const open = new Set<Link>()
  const passed: number[] = []
  let planned: (n: number) => Plan | undefined = () => undefined
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(port), noDelay: true })
    const n = passed.push(0)
    const link = new Link(client, upstream, planned(n) ?? {}, (bytes) => {
      passed[n - 1] = (passed[n - 1] as number) + bytes
    })
    open.add(link)
    client.once('close', () => open.delete(link))
  })
  const url = await listening(t, server)
  t.teardown(() => {
    for (const link of open) link.destroy()
  })
  return {
    url,
    get count() {
      return passed.length
    },
    get open() {
      return open.size
    },
    passed,
    plan(plan) {
      planned = plan
    },
    now(fault) {
      for (const link of [...open]) link.fail(fault)
    },
  }
}

/**
 * Resets a connection. One that is being shut down can only be destroyed: libuv refuses to reset it, and then Node.js
 * waits for it for ever when the process ends.
 */
export function reset(socket: Socket | null): void {
  if (socket?.writableEnded) socket.destroy()
  else socket?.resetAndDestroy()
}

class Link {
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #plan: Plan
  readonly #pass: (bytes: number) => void
  #left: number
  #silent = false

  constructor(client: Socket, upstream: Socket, plan: Plan, pass: (bytes: number) => void) {
    this.#client = client
    this.#upstream = upstream
    this.#plan = plan
    this.#pass = pass
    this.#left = plan.how === undefined ? Number.POSITIVE_INFINITY : (plan.after ?? 0)
    for (const socket of [client, upstream]) socket.on('error', () => {})
    client.pipe(upstream)
    client.once('close', () => upstream.destroy())
    upstream.once('close', () => {
      if (!this.#silent) client.end()
    })
    void this.#down()
  }

  async #down(): Promise<void> {
    const { piece = Number.POSITIVE_INFINITY, wait } = this.#plan
    try {
      for await (const bytes of this.#upstream as AsyncIterable<Buffer>) {
        for (let at = 0; at < bytes.length; ) {
          if (wait !== undefined) await delay(wait)
          const part = bytes.subarray(at, Math.min(at + piece, at + this.#left, bytes.length))
          if (this.#silent) return
          if (part.length > 0) await this.#write(part)
          at += part.length
          this.#left -= part.length
          if (this.#left <= 0) return this.fail(this.#plan.how ?? 'close')
        }
      }
    } catch {
      // The server has gone; the client is told by its side being closed.
    }
  }

  #write(part: Buffer): Promise<void> {
    this.#pass(part.length)
    return new Promise((resolve) => {
      if (this.#client.destroyed) resolve()
      else this.#client.write(part, () => setImmediate(resolve))
    })
  }

  fail(fault: 'reset' | 'close' | 'silence'): void {
    if (fault === 'reset') reset(this.#client)
    if (fault === 'close') this.#client.end(() => this.#client.destroy())
    if (fault === 'silence') {
      this.#silent = true
      this.#client.unpipe(this.#upstream)
      this.#client.resume()
    }
    this.#upstream.destroy()
  }

  destroy(): void {
    this.#client.destroy()
    this.#upstream.destroy()
  }
}
