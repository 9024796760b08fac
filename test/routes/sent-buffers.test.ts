// The memory of a page's pieces is used again while the page is sent: what arrives must be the page all the same,
// however slowly it is read, and the memory must not grow with the page.

import { createServer, get } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import { SentBuffers } from '../../routes/sent-buffers.ts'
import { listening } from '../support/listening.ts'

const PIECES = 120

/** Piece k is full of its own number; sizes go up and down around the rounding and around the socket's buffer. */
const SIZES = Array.from(
  { length: PIECES },
  (_, k) => [1, 700, 16_384, 65_536, 131_072, 131_073, 300_000][k % 7] as number,
)

async function receive(t: Test, pause: (received: number) => Promise<void> | undefined) {
  const memory = new Set<ArrayBufferLike>()
  const server = createServer((_request, response) => {
    const buffers = new SentBuffers(response)
    async function* pieces() {
      for (const [k, size] of SIZES.entries()) {
        const piece = buffers.allocate(size).fill(k)
        memory.add(piece.buffer)
        yield piece
      }
    }
    const stream = Readable.from(pieces(), { objectMode: false, highWaterMark: 64 * 1024 })
    pipeline(buffers.through(stream), response, () => {})
  })
  const url = await listening(t, server)
  const answer = await new Promise<Readable>((resolve) => get(url, resolve))
  const parts: Buffer[] = []
  let received = 0
  for await (const part of answer) {
    parts.push(part)
    received += part.length
    await pause(received)
  }
  return { body: Buffer.concat(parts), memory }
}

const expected = Buffer.concat(SIZES.map((size, k) => Buffer.alloc(size, k)))

t.test('a reader gets every piece as it was made, and a few buffers serve them all', async (t) => {
  const { body, memory } = await receive(t, () => undefined)
  t.ok(body.equals(expected))
  t.ok(memory.size < 12, `${memory.size} buffers for ${PIECES} pieces`)
})

t.test('so does one that stops again and again', async (t) => {
  const { body, memory } = await receive(t, (received) => (received % 5 === 0 ? delay(3) : undefined))
  t.ok(body.equals(expected))
  t.ok(memory.size < 12, `${memory.size} buffers for ${PIECES} pieces`)
})

t.test('without a stream or a socket to count by, nothing is used twice', async (t) => {
  const buffers = new SentBuffers({ socket: null, writableLength: 0 } as never)
  buffers.through(Readable.from([]))
  const memory = new Set(Array.from({ length: 20 }, () => buffers.allocate(1000).buffer))
  t.equal(memory.size, 20)
})
