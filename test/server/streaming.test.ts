// Answers that are produced while they are sent: the first line leaves before the rest exists, large bodies are whole in
// every coding, and no failure after the first byte looks like an end. (cases D7, F1, F3, F5, F7)

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  brotliDecompressSync,
  createBrotliDecompress,
  createGunzip,
  createZstdDecompress,
  gunzipSync,
  zstdDecompressSync,
} from 'node:zlib'
import t from 'tap'
import { Problem } from '../../codec/index.ts'
import type { HistoryStore } from '../../src/history/index.ts'
import type { Service } from '../support/service.ts'
import { replacing, startService, until } from '../support/service.ts'

const CODINGS = ['identity', 'gzip', 'br', 'zstd'] as const
const MEDIA = ['application/x-ndjson', 'application/json'] as const

const DECODERS = {
  identity: () => new PassThrough(),
  gzip: createGunzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}
const DECODE = {
  identity: (bytes: Buffer) => bytes,
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
}

/** Text that hardly compresses, so that every coding sends about as much as it is given. */
function noise(bytes: number, seed: number): string {
  return createHash('shake256', { outputLength: (bytes / 4) * 3 })
    .update(`${seed}`)
    .digest('base64')
}

/** Events of about 8 KiB: a page's first batch is a few of them, the next ones many. */
async function fill(service: Service, events: number, bytes = 8_000): Promise<void> {
  const all = Array.from({ length: events }, (_, index) => ({ type: 'note', data: noise(bytes, index + 1) }))
  for (let at = 0; at < all.length; at += 500) await service.append('a', all.slice(at, at + 500))
}

/** Reads of records, counted, and what happens before each of them. */
class Reads {
  count = 0
  before: (count: number) => void | Promise<void> = () => {}

  wrap = (store: HistoryStore): HistoryStore =>
    replacing(store, 'read', async (...args) => {
      await this.before(++this.count)
      return store.read(...args)
    })

  /** Begin to count again. From the second read on, this happens first. */
  beforeSecond(first: () => void | Promise<void>): void {
    this.count = 0
    this.before = (count) => (count > 1 ? first() : undefined)
  }
}

t.test('the first line arrives, decodable, before the rest is read', async (t) => {
  const reads = new Reads()
  const service = await startService(t, reads)
  await fill(service, 20)
  for (const coding of CODINGS) {
    for (const accept of MEDIA) {
      const gate = Promise.withResolvers<void>()
      reads.beforeSecond(() => gate.promise)
      const socket = await service.socket()
      socket.write(
        `GET /v1/sessions/a/history HTTP/1.1\r\nHost: h\r\nAccept: ${accept}\r\nAccept-Encoding: ${coding}\r\nConnection: close\r\n\r\n`,
      )
      const decoder = DECODERS[coding]()
      let text = ''
      decoder.on('data', (piece) => {
        text += piece
      })
      let head: Buffer | undefined
      let raw: Buffer = Buffer.alloc(0)
      socket.on('data', (piece) => {
        raw = Buffer.concat([raw, piece])
        const end = raw.indexOf('\r\n\r\n')
        if (end === -1) return
        head ??= raw.subarray(0, end)
        raw = decodeChunks(raw, end + 4, (chunk) => decoder.write(chunk))
      })
      const firstRecord = () => text.includes('{"type":"event"') && text.includes('"seq":0') && text.length > 8_000
      await until(firstRecord)
      t.match(head?.toString().toLowerCase(), coding === 'identity' ? 'http/1.1 200' : `content-encoding: ${coding}`)
      t.notOk(text.includes('"seq":19,'), `${coding} ${accept}: the last line is not there yet`)
      gate.resolve()
      await once(socket, 'close')
      await until(() => text.includes('"seq":19,'))
      t.pass('the rest came')
    }
  }
})

/** Hand over the whole chunks of a chunked body, and keep what is left behind the head. */
function decodeChunks(raw: Buffer, start: number, take: (chunk: Buffer) => void): Buffer {
  let at = start
  for (;;) {
    const lineEnd = raw.indexOf('\r\n', at)
    if (lineEnd === -1) break
    const size = Number.parseInt(raw.toString('latin1', at, lineEnd), 16)
    if (Number.isNaN(size) || raw.length < lineEnd + 2 + size + 2) break
    if (size > 0) take(raw.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
  return Buffer.concat([raw.subarray(0, start), raw.subarray(at)])
}

t.test('large bodies are whole in every coding, also many at a time', async (t) => {
  const service = await startService(t)
  await fill(service, 600)
  const plain = await service.exchange('GET', '/v1/sessions/a/history', { headers: { 'accept-encoding': 'identity' } })
  t.ok(plain.body.length > 4_500_000)
  const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  for (const accept of MEDIA) {
    const expected = await service.exchange('GET', '/v1/sessions/a/history', { headers: { accept } })
    for (const coding of CODINGS) {
      const answers = await Promise.all(
        Array.from({ length: 5 }, () =>
          service.exchange('GET', '/v1/sessions/a/history', { headers: { accept, 'accept-encoding': coding } }),
        ),
      )
      for (const { complete, body, headers } of answers) {
        t.ok(complete)
        t.equal(headers['content-encoding'] ?? 'identity', coding)
        t.equal(digest(DECODE[coding](body)), digest(expected.body), `${coding} ${accept}`)
      }
    }
  }
})

t.test('a failure after the first byte breaks the connection, never ends the body', async (t) => {
  const reads = new Reads()
  const service = await startService(t, reads)
  await fill(service, 20)
  for (const coding of CODINGS) {
    for (const accept of MEDIA) {
      const arrived = Promise.withResolvers<void>()
      reads.beforeSecond(async () => {
        await arrived.promise
        throw new Problem('store/unavailable', 'the disk is gone')
      })
      service.log.length = 0
      const answer = await service.exchange('GET', '/v1/sessions/a/history', {
        headers: { accept, 'accept-encoding': coding },
        onFirstByte: arrived.resolve,
      })
      const name = `${coding} ${accept}`
      t.equal(answer.status, 200)
      t.notOk(answer.complete, `${name}: HTTP tells`)
      t.ok(answer.body.length > 0)
      if (coding !== 'identity') t.throws(() => DECODE[coding](answer.body), `${name}: so does the coding`)
      await until(() => service.log.length > 0)
      t.match(service.log, [{ level: 50, msg: 'an answer broke off', err: { message: 'the disk is gone' } }], name)
      t.equal(service.log.length, 1, 'one line')
      reads.before = () => {}
      const next = await service.exchange('GET', '/v1/sessions/a/history', { headers: { accept } })
      t.ok(next.complete, 'and the service goes on')
    }
  }
})

t.test('a failure before the first byte is an ordinary error', async (t) => {
  const service = await startService(t, {
    wrap: (store) =>
      replacing(store, 'read', async () => {
        throw new Problem('store/unavailable', 'the disk is gone', { retryAfter: 2 })
      }),
  })
  await service.append('a', ['note'])
  for (const path of ['history', 'events', 'events?chunks=expanded']) {
    const answer = await service.exchange('GET', `/v1/sessions/a/${path}`, { headers: { 'accept-encoding': 'gzip' } })
    t.match(answer, {
      status: 503,
      headers: { 'content-type': 'application/problem+json', 'retry-after': '2', 'cache-control': 'no-store' },
    })
    for (const name of ['etag', 'history-from', 'link', 'content-encoding'])
      t.equal(answer.headers[name], undefined, name)
    t.match(answer.json(), { code: 'store/unavailable' })
  }
  await until(() => service.log.length === 3)
})

t.test('an error that nobody foresaw is a 500 that tells nothing', async (t) => {
  const service = await startService(t, {
    wrap: (store) =>
      replacing(store, 'describe', async () => {
        throw new TypeError('secret of the inside')
      }),
  })
  const answer = await service.exchange('GET', '/v1/sessions/a')
  t.equal(answer.status, 500)
  t.match(answer.json(), { code: 'internal', status: 500 })
  t.notMatch(answer.body.toString(), 'secret')
  t.match(service.log, [{ level: 50, err: { message: 'secret of the inside' } }])
  t.equal(service.log.length, 1)
})

t.test('a session deleted while it is read breaks off, and is no failure of ours', async (t) => {
  const gate = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  const reads = new Reads()
  const service = await startService(t, reads)
  await fill(service, 20)
  reads.beforeSecond(() => gate.promise)
  const reading = service.exchange('GET', '/v1/sessions/a/history', { onFirstByte: arrived.resolve })
  await arrived.promise
  t.equal((await service.exchange('DELETE', '/v1/sessions/a')).status, 204)
  gate.resolve()
  const answer = await reading
  t.equal(answer.status, 200)
  t.notOk(answer.complete)
  t.same(service.log, [])
})

t.test('nothing is read for a client that left', async (t) => {
  const reads = new Reads()
  const service = await startService(t, reads)
  await fill(service, 1000, 24_000)
  for (const coding of CODINGS) {
    reads.count = 0
    const socket = await service.socket()
    socket.write(`GET /v1/sessions/a/events HTTP/1.1\r\nHost: h\r\nAccept-Encoding: ${coding}\r\n\r\n`)
    await once(socket, 'data')
    socket.pause()
    const settled = async () => {
      for (let before = -1; before !== reads.count; await delay(300)) before = reads.count
      return reads.count
    }
    const paused = await settled()
    t.ok(paused < 60, `${coding}: ${paused} reads of about 95 for a client that takes nothing`)
    socket.destroy()
    await delay(100)
    t.ok(reads.count <= paused + 1, 'nor when it has left')
    t.same(service.log, [])
  }
})

t.test('a client that takes nothing for too long is let go', async (t) => {
  const service = await startService(t, { config: { stallMs: 300 } })
  await fill(service, 1000, 24_000)
  const accepted = once(service.app.server, 'connection')
  const socket = await service.socket()
  const [served] = await accepted
  const closed = once(served, 'close')
  socket.write('GET /v1/sessions/a/events HTTP/1.1\r\nHost: h\r\n\r\n')
  await once(socket, 'data')
  socket.pause()
  await closed
  t.ok(socket.bytesRead < 1_000_000, 'its connection is closed')
  t.same(service.log, [])
})
