// A cheap load of appends: raw keep-alive sockets, one request in flight on each, every request's bytes made before the
// clock starts, answers looked at no further than their status and their end.

import type { Socket } from 'node:net'
import { bareSocket } from './bare-socket.ts'

/** Events of one batch. */
export const BATCH_EVENTS = 20

/** Deltas of one block; a session is a row of blocks. */
const BLOCK_DELTAS = 600

const WORDS = [
  ' the',
  ' log',
  ' is',
  ' read',
  ' from',
  ' its',
  ' end',
  ',',
  ' so',
  ' a',
  ' page',
  ' costs',
  ' only',
  '.',
]

/** The NDJSON body of a session's nth batch: consecutive deltas, about 3 KB. */
export function tokenBatch(place: number): Buffer {
  const lines: string[] = []
  for (let seq = place * BATCH_EVENTS; seq < (place + 1) * BATCH_EVENTS; seq++) {
    const index = Math.floor(seq / BLOCK_DELTAS)
    const chunk = { type: 'text-delta', index, text: WORDS[seq % WORDS.length] }
    const data = { turn: 1, step: 1, chunk }
    lines.push(`${JSON.stringify({ type: 'assistant/chunk', seq, time: 1_763_000_000_000 + seq * 9, data })}\n`)
  }
  return Buffer.from(lines.join(''))
}

export interface LoadOptions {
  readonly port: number
  /** One session for each connection. */
  readonly ids: readonly string[]
  /** Batches made for each session; the load ends when one session has sent all of its own. */
  readonly batches: number
  readonly warmUpMs: number
  readonly measureMs: number
}

export interface LoadResult {
  /** Acknowledged while measured. */
  readonly batches: number
  /** Milliseconds measured. */
  readonly elapsed: number
  /** Milliseconds from request to acknowledgement, of each batch while measured. */
  readonly latencies: readonly number[]
  /** Bytes of all events acknowledged, those of the warm-up included. */
  readonly eventBytes: number
}

export async function appendLoad(options: LoadOptions): Promise<LoadResult> {
  const { port, ids, batches, warmUpMs, measureMs } = options
  const bodies = Array.from({ length: batches }, (_, place) => tokenBatch(place))
  const producers = await Promise.all(
    ids.map((id) =>
      Producer.connect(
        port,
        bodies.map((body) => requestBytes(id, body)),
      ),
    ),
  )
  const begun = performance.now()
  const from = begun + warmUpMs
  const end = { at: from + measureMs }
  try {
    await Promise.all(producers.map((producer) => producer.run(end)))
  } finally {
    for (const producer of producers) producer.close()
  }
  const until = end.at
  if (until <= from) throw new Error('the batches were used up during the warm-up: make more')
  const acknowledged = producers.flatMap(({ acknowledgements }) => acknowledgements)
  const measured = acknowledged.filter(({ at }) => at > from && at <= until)
  const sent = producers.map(({ acknowledgements }) => acknowledgements.length)
  return {
    batches: measured.length,
    elapsed: until - from,
    latencies: measured.map(({ latency }) => latency),
    // Each line without its newline.
    eventBytes: sent
      .flatMap((count) => bodies.slice(0, count))
      .reduce((sum, body) => sum + body.length - BATCH_EVENTS, 0),
  }
}

class Producer {
  readonly acknowledgements: { readonly at: number; readonly latency: number }[] = []
  readonly #requests: readonly Buffer[]
  #socket: Socket | undefined
  #take: (bytes: Buffer) => void = () => {}

  static async connect(port: number, requests: readonly Buffer[]): Promise<Producer> {
    const producer = new Producer(requests)
    producer.#socket = await bareSocket(port, (bytes) => producer.#take(bytes), 4 * 1024)
    return producer
  }

  private constructor(requests: readonly Buffer[]) {
    this.#requests = requests
  }

  /** Until the end, which the first session that has sent everything brings forward: from then on fewer are in flight. */
  run(end: { at: number }): Promise<void> {
    return new Promise((resolve, reject) => {
      let place = 0
      let sent = 0
      let answer = ''
      const send = () => {
        sent = performance.now()
        this.#socket?.write(this.#requests[place] as Buffer)
      }
      this.#socket?.on('close', () => reject(new Error('the server closed a connection')))
      this.#socket?.on('error', reject)
      this.#take = (bytes) => {
        answer += bytes.toString('latin1')
        if (!isWhole(answer)) return
        if (!answer.startsWith('HTTP/1.1 200 ')) return reject(new Error(`append refused: ${answer}`))
        answer = ''
        const at = performance.now()
        this.acknowledgements.push({ at, latency: at - sent })
        if (++place === this.#requests.length) end.at = Math.min(end.at, at)
        if (at >= end.at) resolve()
        else send()
      }
      send()
    })
  }

  close(): void {
    this.#socket?.removeAllListeners('close')
    this.#socket?.destroy()
  }
}

/** Whether an answer is there to its end. Answers are small JSON values, of a given length or in chunks. */
export function isWhole(answer: string): boolean {
  const end = answer.indexOf('\r\n\r\n')
  if (end === -1) return false
  const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(answer.slice(0, end + 2)) ?? []
  return length === undefined ? answer.endsWith('0\r\n\r\n') : answer.length >= end + 4 + Number(length)
}

function requestBytes(id: string, body: Buffer): Buffer {
  const head =
    `POST /v1/sessions/${id}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n` +
    `Content-Type: application/x-ndjson\r\nContent-Length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}
