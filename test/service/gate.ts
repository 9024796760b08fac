// Owns a gate on real sockets before the service: it counts who comes and when, and lets them pass, wait, or go away.

import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer } from 'node:net'
import type { Test } from 'tap'
import { reset } from '../support/fault-proxy.ts'

export class Gate {
  /** when each connection was made, of `performance.now()` */
  readonly arrivals: number[] = []
  /** the request lines that were let through, such as `GET /v1/sessions/s/follow HTTP/1.1` */
  readonly requests: string[] = []
  readonly #port: number
  readonly #clients = new Set<Socket>()
  readonly #server = createServer({ noDelay: true }, (client) => this.#arrive(client))
  #opened: Promise<void> = Promise.resolve()
  #open: () => void = () => {}

  private constructor(port: number) {
    this.#port = port
  }

  /** Before what listens on a port of this machine. Closed with the test. */
  static async before(t: Test, port: number): Promise<Gate> {
    const gate = new Gate(port)
    gate.#server.listen(0, '127.0.0.1')
    await once(gate.#server, 'listening')
    t.teardown(() => gate.close())
    return gate
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** connections on this side */
  get count(): number {
    return this.#clients.size
  }

  /** Who comes from now on waits until it is opened. */
  shut(): void {
    this.#opened = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#open()
  }

  /** Resets every connection. */
  cut(): void {
    for (const client of [...this.#clients]) reset(client)
  }

  close(): void {
    this.#server.close()
    for (const client of [...this.#clients]) client.destroy()
  }

  async #arrive(client: Socket): Promise<void> {
    this.arrivals.push(performance.now())
    this.#clients.add(client)
    client.on('error', () => {}).once('close', () => this.#clients.delete(client))
    await this.#opened
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
