// A follower that costs next to nothing: a bare socket that looks at lines, so that a thousand of them fit beside the
// server on two cores. It checks what it sees: seqs rise by one from where it began.

import type { Socket } from 'node:net'
import { isWhole } from './append-load.ts'
import { bareSocket } from './bare-socket.ts'

/** A live line of the bench: its seq, and when it was sent. */
const LIVE_LINE = /^\{"type":"event","event":\{"seq":(\d+),"time":\d+,"type":"tick","data":\{"sent":([\d.]+)\}\}\}$/

export class LiveClient {
  /** Milliseconds from the append's start to the line's arrival, for each live line. */
  readonly delays: number[] = []
  /** Lines that did not follow the one before. */
  faults = 0
  lines = 0
  #socket: Socket | undefined
  #rest = ''
  #seq: number | undefined

  /** Resolved once the answer has begun. */
  static async open(port: number, path: string): Promise<LiveClient> {
    const client = new LiveClient()
    const begun = Promise.withResolvers<void>()
    const begin = (bytes: Buffer) => {
      const head = bytes.toString('latin1')
      if (head.startsWith('HTTP/1.1 200')) begun.resolve()
      else begun.reject(new Error(`${path}: ${head.split('\r\n', 1)}`))
      take = (bytes) => client.#take(bytes)
      take(bytes)
    }
    let take = begin
    const socket = await bareSocket(port, (bytes) => take(bytes))
    client.#socket = socket
    socket.write(`GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`)
    await begun.promise
    return client
  }

  close(): void {
    this.#socket?.destroy()
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

/** One append, on its way or waiting for its turn. */
interface Tick {
  readonly due: number
  readonly body: string
  readonly done: () => void
  readonly failed: (error: Error) => void
}

/**
 * Appends one event after another over one connection, as cheaply as it follows: what an HTTP client leaves to the
 * garbage collector would be most of the time measured.
 */
export class Ticker {
  /** Milliseconds from when each event was due to its acknowledgement. */
  readonly delays: number[] = []
  readonly #head: string
  #socket: Socket | undefined
  /** Events whose turn has not come: there is one request in flight. */
  readonly #waiting: Tick[] = []
  #answer = ''

  private constructor(id: string) {
    this.#head = `POST /v1/sessions/${id}/events HTTP/1.1\r\nHost: bench\r\nContent-Type: application/x-ndjson\r\n`
  }

  static async open(port: number, id: string): Promise<Ticker> {
    const ticker = new Ticker(id)
    ticker.#socket = await bareSocket(port, (bytes) => ticker.#take(bytes))
    ticker.#socket.on('error', (error) => ticker.#waiting[0]?.failed(error))
    ticker.#socket.on('close', () => ticker.#waiting[0]?.failed(new Error('the server has closed the connection')))
    return ticker
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
    this.#socket?.destroy()
  }

  #append(): Promise<void> {
    const due = performance.now()
    const body = `{"type":"tick","data":{"sent":${due}}}\n`
    const answered = new Promise<void>((done, failed) => this.#waiting.push({ due, body, done, failed }))
    if (this.#waiting.length === 1) this.#send()
    return answered
  }

  #send(): void {
    const next = this.#waiting[0]
    if (next) this.#socket?.write(`${this.#head}Content-Length: ${next.body.length}\r\n\r\n${next.body}`)
  }

  #take(bytes: Buffer): void {
    this.#answer += bytes.toString('latin1')
    if (!isWhole(this.#answer)) return
    const status = this.#answer.slice(0, 'HTTP/1.1 200'.length)
    this.#answer = ''
    const sent = this.#waiting.shift()
    if (!sent) return
    this.delays.push(performance.now() - sent.due)
    if (status === 'HTTP/1.1 200') sent.done()
    else sent.failed(new Error(`append refused: ${status}`))
    this.#send()
  }
}
