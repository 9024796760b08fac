// A GET that costs the client next to nothing: one socket, one buffer that is overwritten, no parsing but the last bytes.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { bareSocket } from './bare-socket.ts'

export interface Transfer {
  /** Milliseconds from the request to the first byte of the body. */
  readonly first: number
  /** Milliseconds from the request to the last byte of the body. */
  readonly last: number
  /** Bytes on the wire, head and framing included. */
  readonly wireBytes: number
}

/** What comes at once at the most. */
const PIECE_BYTES = 1024 * 1024

const CHUNKED_END = '0\r\n\r\n'

/** Time one GET on a connection that is open already. The answer must be 200 and chunked. */
export async function timeGet(port: number, path: string): Promise<Transfer> {
  const reading = new Reading()
  const socket = await bareSocket(port, (bytes) => reading.take(bytes), PIECE_BYTES)
  const started = performance.now()
  socket.write(requestHead(path))
  try {
    await Promise.race([reading.whole, lost(socket)])
  } finally {
    socket.destroy()
  }
  return { first: reading.first - started, last: reading.last - started, wireBytes: reading.bytes }
}

export interface Body {
  readonly status: number
  readonly headers: Headers
  readonly bytes: Buffer
  readonly hash: string
}

/** An ordinary GET that keeps the body, for what is not timed. */
export async function getBody(port: number, path: string): Promise<Body> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'accept-encoding': 'identity' } })
  const bytes = Buffer.from(await response.arrayBuffer())
  if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${bytes.toString().slice(0, 500)}`)
  const hash = createHash('sha256').update(bytes).digest('hex')
  return { status: response.status, headers: response.headers, bytes, hash }
}

class Reading {
  readonly whole: Promise<void>
  first = 0
  last = 0
  bytes = 0
  #finish!: () => void
  #fail!: (error: Error) => void
  /** The head, until its end is seen. */
  #head: Buffer | undefined = Buffer.alloc(0)
  #tail = ''

  constructor() {
    this.whole = new Promise((resolve, reject) => {
      this.#finish = resolve
      this.#fail = reject
    })
  }

  take(bytes: Buffer): void {
    const now = performance.now()
    this.bytes += bytes.length
    if (this.#head) this.#takeHead(bytes, now)
    this.#tail = (this.#tail + bytes.toString('latin1', Math.max(0, bytes.length - CHUNKED_END.length))).slice(
      -CHUNKED_END.length,
    )
    // JSON text holds no bare carriage return, so these bytes can only be the framing.
    if (this.#head || this.#tail !== CHUNKED_END) return
    this.last = now
    this.#finish()
  }

  #takeHead(bytes: Buffer, now: number): void {
    const head = Buffer.concat([this.#head as Buffer, bytes])
    this.#head = head
    const end = head.indexOf('\r\n\r\n')
    if (end === -1 || head.length === end + 4) return
    this.first = now
    this.#head = undefined
    const text = head.toString('latin1', 0, end)
    if (!text.startsWith('HTTP/1.1 200 ') || !/transfer-encoding: chunked/i.test(text)) {
      this.#fail(new Error(`not a chunked 200: ${head.toString('latin1', 0, 600)}`))
    }
  }
}

async function lost(socket: Socket): Promise<never> {
  await once(socket, 'close')
  throw new Error('the connection was closed before the body was whole')
}

function requestHead(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/x-ndjson\r\n\r\n`
}
