// A follower that costs next to nothing: a bare socket that looks at lines, so that a thousand of them fit beside the
// server on two cores. It checks what it sees: seqs rise by one from where it began.

import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

/** A live line of the bench: its seq, and when it was sent. */
const LIVE_LINE = /^\{"type":"event","event":\{"seq":(\d+),"time":\d+,"type":"tick","data":\{"sent":([\d.]+)\}\}\}$/

export class LiveClient {
  /** Milliseconds from the append's start to the line's arrival, for each live line. */
  readonly delays: number[] = []
  /** Lines that did not follow the one before. */
  faults = 0
  lines = 0
  readonly #socket: Socket
  #rest = ''
  #seq: number | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Resolved once the answer has begun. */
  static async open(port: number, path: string): Promise<LiveClient> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    const client = new LiveClient(socket)
    socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`)
    const [head] = await once(socket, 'data')
    if (!`${head}`.startsWith('HTTP/1.1 200')) throw new Error(`${path}: ${`${head}`.split('\r\n', 1)}`)
    client.#take(head)
    socket.on('data', (bytes) => client.#take(bytes))
    return client
  }

  close(): void {
    this.#socket.destroy()
  }

  #take(bytes: Buffer): void {
    const now = performance.now()
    const lines = (this.#rest + bytes.toString('latin1')).split('\n')
    this.#rest = lines.pop() as string
    for (const line of lines) {
      const match = LIVE_LINE.exec(line)
      // Headers, sizes of chunks and heartbeats are lines too.
      if (!match) continue
      const seq = Number(match[1])
      if (this.#seq !== undefined && seq !== this.#seq + 1) this.faults++
      this.#seq = seq
      this.lines++
      this.delays.push(now - Number(match[2]))
    }
  }
}

/** Appends one event after another over one connection. */
export class Ticker {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #port: number
  readonly #path: string

  constructor(port: number, id: string) {
    this.#port = port
    this.#path = `/v1/sessions/${id}/events`
  }

  /** `rate` events a second for some seconds, in time even when an answer is late. Returns how many. */
  async run(rate: number, seconds: number): Promise<number> {
    const count = rate * seconds
    const start = performance.now()
    const answers: Promise<void>[] = []
    for (let k = 0; k < count; k++) {
      const wait = start + (k * 1000) / rate - performance.now()
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
      answers.push(this.#append())
    }
    await Promise.all(answers)
    return count
  }

  close(): void {
    this.#agent.destroy()
  }

  #append(): Promise<void> {
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', port: this.#port, path: this.#path, agent: this.#agent }
      const headers = { 'content-type': 'application/x-ndjson' }
      const sent = request({ ...options, headers }, (answer) => {
        answer
          .resume()
          .on('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error(`${answer.statusCode}`))))
      })
      sent.on('error', reject).end(`{"type":"tick","data":{"sent":${performance.now()}}}`)
    })
  }
}
