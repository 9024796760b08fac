// Owns a gate on real sockets before the service: it counts who comes and when, and lets them pass, wait, or go away.

import type { Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import type { Test } from 'tap'
import { reset } from '../support/fault-proxy.ts'
import { listening } from '../support/listening.ts'

export class Gate {
  /** when each connection was made, of `performance.now()` */
  readonly arrivals: number[] = []
  /** the request lines that were let through, such as `GET /v1/sessions/s/follow HTTP/1.1` */
  readonly requests: string[] = []
  readonly url: string
  readonly #port: number
  readonly #clients = new Set<Socket>()
  #shut: PromiseWithResolvers<void> | undefined

  private constructor(url: string, port: number) {
    this.url = url
    this.#port = port
  }

  /** Before what listens on a port of this machine. Closed with the test. */
  static async before(t: Test, port: number): Promise<Gate> {
    const server = createServer({ noDelay: true })
    const gate = new Gate(await listening(t, server), port)
    server.on('connection', (client) => gate.#arrive(client))
    t.teardown(() => gate.#clear())
    return gate
  }

  /** connections on this side */
  get count(): number {
    return this.#clients.size
  }

  /** Who comes from now on waits until it is opened. */
  shut(): void {
    this.#shut ??= Promise.withResolvers()
  }

  open(): void {
    this.#shut?.resolve()
    this.#shut = undefined
  }

  /** Resets every connection. */
  cut(): void {
    for (const client of [...this.#clients]) reset(client)
  }

  #clear(): void {
    for (const client of [...this.#clients]) client.destroy()
  }

  async #arrive(client: Socket): Promise<void> {
    this.arrivals.push(performance.now())
    this.#clients.add(client)
    client.on('error', () => {}).once('close', () => this.#clients.delete(client))
    await this.#shut?.promise
    if (client.destroyed) return
    const service = connect({ host: '127.0.0.1', port: this.#port, noDelay: true })
    service.on('error', () => {}).once('close', () => reset(client))
    client.once('close', () => service.destroy())
    // What finds nobody behind the gate was not let through.
    service.once('connect', () => {
      client.on('data', (bytes) => {
        const line = /^[A-Z]+ \S+ HTTP\/1\.1(?=\r\n)/.exec(bytes.toString('latin1'))?.[0]
        if (line !== undefined) this.requests.push(line)
      })
      client.pipe(service)
      service.pipe(client)
    })
  }
}
