// Request bodies: how they may be coded and sliced, the bounds of size, number and silence, and what becomes of a
// connection whose body was refused.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { newTextDelta, newUserMessage, received, replacing, startService, until } from '../support/service.ts'

const NDJSON = { 'content-type': 'application/x-ndjson' }

function lines(events: readonly object[]): string {
  return events.map((event) => `${JSON.stringify(event)}\n`).join('')
}

async function* slices(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** Bytes that do not compress. */
function noise(bytes: number): Buffer {
  return createHash('shake256', { outputLength: bytes }).update('noise').digest()
}

t.test('one append in every type and coding', async (t) => {
  const service = await startService(t)
  const events = [newUserMessage('hello ✓'), { type: 'note', data: { text: 'x'.repeat(5000) } }, newUserMessage('bye')]
  const text = lines(events)
  const codings = {
    identity: Buffer.from(text),
    gzip: gzipSync(text),
    GZIP: gzipSync(text),
    deflate: deflateSync(text),
    br: brotliCompressSync(text),
  }
  const types = [
    'application/x-ndjson',
    'application/ndjson',
    'application/jsonl',
    'Application/X-NDJSON; Charset="UTF-8"',
  ]
  let sessions = 0
  const store = async (headers: Record<string, string>, body: Uint8Array, size?: number) => {
    const path = `/v1/sessions/s${++sessions}`
    t.equal((await service.exchange('PUT', path)).status, 201)
    const answer = await service.exchange('POST', `${path}/events`, {
      headers,
      body: size === undefined ? body : slices(body, size),
    })
    t.has({ status: answer.status, ...answer.json() }, { status: 200, head: 2, appended: 3, duplicates: 0 })
    const messages = await (await service.request(`${path}/messages`)).text()
    t.match(messages, 'hello ✓')
  }
  for (const type of types) await store({ 'content-type': type }, codings.identity)
  for (const [coding, body] of Object.entries(codings)) {
    await store({ ...NDJSON, 'content-encoding': coding }, body)
    await store({ ...NDJSON, 'content-encoding': coding }, body, 500)
  }
  await store(NDJSON, codings.identity, 1)
  await store({ 'content-type': 'application/json' }, Buffer.from(JSON.stringify(events)))
  // Gzip may be of several members.
  await store(
    { ...NDJSON, 'content-encoding': 'gzip' },
    Buffer.concat([...text.matchAll(/.*\n/g)].map(([line]) => gzipSync(line))),
  )
})

t.test('a body of exactly the limit is taken, one byte more is not', async (t) => {
  const service = await startService(t, { config: { appendBytes: 1000 } })
  await service.append('a', [])
  const event = '{"type":"note","data":1}\n'
  const body = (bytes: number) => event + ' '.repeat(bytes - event.length)
  for (const [size, coding] of [
    [undefined, 'identity'],
    [100, 'identity'],
    [undefined, 'gzip'],
  ] as const) {
    for (const [bytes, status] of [
      [1000, 200],
      [1001, 413],
    ] as const) {
      const coded = coding === 'gzip' ? gzipSync(body(bytes)) : Buffer.from(body(bytes))
      const answer = await service.exchange('POST', '/v1/sessions/a/events', {
        headers: { ...NDJSON, 'content-encoding': coding },
        body: size === undefined ? coded : slices(coded, size),
      })
      t.equal(answer.status, status, `${bytes} bytes, ${coding}, ${size ?? 'whole'}`)
      if (status === 413) t.has(answer.json(), { code: 'request/too-large', limit: 1000 })
    }
  }
})

t.test('a refused body is let run out, and its connection serves on', async (t) => {
  const service = await startService(t, { config: { appendBytes: 1000 } })
  await service.append('a', ['note'])
  const large = noise(3_000_000)
  const append = 'POST /v1/sessions/a/events HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-ndjson\r\n'
  const load = 'POST /v1/sessions/import HTTP/1.1\r\nHost: h\r\nContent-Type: application'
  for (const [name, head, body] of [
    ['too large by its length', append, large],
    ['too large once decoded', `${append}Content-Encoding: gzip\r\n`, gzipSync(large)],
    ['not gzip', `${append}Content-Encoding: gzip\r\n`, large],
    ['damaged gzip', `${append}Content-Encoding: gzip\r\n`, Buffer.concat([gzipSync('short'), large])],
    ['not deflate', `${append}Content-Encoding: deflate\r\n`, large],
    ['no log', `${load}/x-ndjson\r\n`, Buffer.concat([Buffer.from('first\n'), large])],
    [
      'no log in gzip',
      `${load}/x-ndjson\r\nContent-Encoding: gzip\r\n`,
      gzipSync(Buffer.concat([Buffer.from('first\n'), large])),
    ],
    ['no log in a frame', `${load}/zstd\r\n`, zstdCompressSync(Buffer.concat([Buffer.from('first\n'), large]))],
    ['no frame', `${load}/zstd\r\n`, large],
    ['of no type', `${load}/octet-stream\r\n`, large],
    ['for no route', 'POST /v1/nothing HTTP/1.1\r\nHost: h\r\n', large],
  ] as const) {
    const socket = await service.socket()
    const answers = received(socket)
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n`)
    socket.write(body)
    socket.write('GET /v1/sessions/a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n')
    const text = (await answers).toString()
    t.match(text, /^HTTP\/1\.1 4\d\d [\s\S]*HTTP\/1\.1 200 OK[\s\S]*"head":0/, name)
  }
  t.same(service.log, [])
})

t.test('append bodies are counted while they are held', async (t) => {
  const waiting: (() => void)[] = []
  const service = await startService(t, {
    config: { heldBytes: 10_000, appendBytes: 8_000 },
    wrap: (store) =>
      replacing(store, 'append', async (...args) => {
        if (args[0] === 'a') await new Promise<void>((resolve) => waiting.push(resolve))
        return store.append(...args)
      }),
  })
  t.equal((await service.exchange('PUT', '/v1/sessions/a')).status, 201)
  const post = (bytes: number, id = 'a') =>
    service.exchange('POST', `/v1/sessions/${id}/events`, {
      headers: NDJSON,
      body: `{"type":"note","data":1}${' '.repeat(bytes - 25)}\n`,
    })

  const first = post(7_000)
  await until(() => waiting.length === 1)
  const refused = await post(4_000)
  t.equal(refused.status, 503)
  t.equal(refused.headers['retry-after'], '1')
  t.has(refused.json(), { code: 'server/busy', limit: 10_000 })

  // Half a body counts as well, until its client leaves.
  const socket = await service.socket()
  socket.write(
    'POST /v1/sessions/a/events HTTP/1.1\r\nHost: h\r\nContent-Type: application/jsonl\r\nContent-Length: 3000\r\n\r\n',
  )
  socket.write(' '.repeat(2_900))
  await until(async () => (await post(200, 'not-there')).status === 503)
  socket.destroy()
  const second = post(2_900)
  await until(() => waiting.length === 2)
  for (const go of waiting.splice(0)) go()
  t.equal((await first).status, 200)
  t.equal((await second).status, 200)
  const third = post(8_000)
  await until(() => waiting.length === 1)
  for (const go of waiting.splice(0)) go()
  t.equal((await third).status, 200, 'answered bodies are given back')
  t.same(service.log, [])
})

t.test('a silent client is told so, a slow one is not', async (t) => {
  const service = await startService(t, { config: { idleMs: 300 } })
  await service.append('a', [])
  for (const path of ['/v1/sessions/a/events', '/v1/sessions/import']) {
    for (const coding of ['', 'Content-Encoding: gzip\r\n']) {
      const socket = await service.socket()
      const answer = received(socket)
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-ndjson\r\n${coding}Content-Length: 100\r\n\r\n`,
      )
      if (coding !== '') socket.write(gzipSync('more than this').subarray(0, 12))
      const text = (await answer).toString()
      t.match(
        text,
        /^HTTP\/1\.1 408 [\s\S]*Connection: close\r\n[\s\S]*"code":"request\/timeout"/i,
        `${path} ${coding}`,
      )
    }
  }
  const body = Buffer.from('{"type":"note","data":1}\n')
  async function* slowly() {
    for (const piece of [body.subarray(0, 5), body.subarray(5, 10), body.subarray(10, 15), body.subarray(15)]) {
      yield piece
      await delay(200)
    }
  }
  const answer = await service.exchange('POST', '/v1/sessions/a/events', { headers: NDJSON, body: slowly() })
  t.equal(answer.status, 200)
  t.same(service.log, [])
})

t.test('a client that leaves half way stores nothing and is no failure', async (t) => {
  const service = await startService(t)
  await service.append('a', [])
  const header = '{"type":"session","version":0,"id":"half","createdAt":1}\n'
  for (const [path, text] of [
    ['/v1/sessions/a/events', '{"type":"note","data":1}\n'],
    ['/v1/sessions/import', header],
  ] as const) {
    for (const coding of ['', 'Content-Encoding: gzip\r\n']) {
      for (const framing of ['Content-Length: 9999', 'Transfer-Encoding: chunked']) {
        const socket = await service.socket()
        const gone = received(socket)
        const body = coding === '' ? Buffer.from(text) : gzipSync(text)
        socket.write(
          `POST ${path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-ndjson\r\n${coding}${framing}\r\n\r\n`,
        )
        if (framing.startsWith('T')) socket.write(`${body.length.toString(16)}\r\n`)
        socket.write(body)
        if (framing.startsWith('T')) socket.write('\r\n')
        await delay(50)
        socket.destroy()
        await gone
      }
    }
  }
  await delay(100)
  t.has(await (await service.request('/v1/sessions/a')).json(), { head: -1 })
  t.equal((await service.request('/v1/sessions/half')).status, 404)
  t.same(service.log, [])
})

t.test('keys that mean something to JavaScript are data (case E8)', async (t) => {
  const service = await startService(t)
  const fields = '{"__proto__":{"a":1},"constructor":{"prototype":{"b":1e400}},"cwd":"/w"}'
  const put = await service.exchange('PUT', '/v1/sessions/p', {
    headers: { 'content-type': 'application/json' },
    body: fields,
  })
  t.equal(put.status, 201)
  t.match(put.body.toString(), `${fields.slice(1, -1)}`)
  t.match(await (await service.request('/v1/sessions')).text(), '"__proto__":{"a":1}')
  const data = '{"__proto__":{"x":1},"constructor":{"prototype":{"y":9007199254740993}},"toString":1.0}'
  await service.exchange('POST', '/v1/sessions/p/events', { headers: NDJSON, body: `{"type":"note","data":${data}}\n` })
  for (const accept of ['application/x-ndjson', 'application/json']) {
    t.match(await (await service.request('/v1/sessions/p/events', { headers: { accept } })).text(), data)
  }
})

t.test('an import takes text, coded text, and Zstandard frames', async (t) => {
  const service = await startService(t)
  await service.append('source', [
    newUserMessage('hi'),
    ...'abcdef'.split('').map((text) => newTextDelta(text)),
    newUserMessage('more'),
  ])
  const log = await (await service.request('/v1/sessions/source/export')).text()
  const pieces = [...log.matchAll(/.*\n/g)].map(([line]) => line)
  const zstd = { 'content-type': 'application/zstd' }
  const bodies: [string, Record<string, string>, (text: string) => Uint8Array][] = [
    ['text', NDJSON, (text) => Buffer.from(text)],
    ['gzip', { ...NDJSON, 'content-encoding': 'gzip' }, (text) => gzipSync(text)],
    ['one frame', zstd, (text) => zstdCompressSync(text)],
    [
      'a frame a line',
      zstd,
      (text) => Buffer.concat([...text.matchAll(/.*\n/g)].map(([line]) => zstdCompressSync(line))),
    ],
    ['frames in gzip', { ...zstd, 'content-encoding': 'gzip' }, (text) => gzipSync(zstdCompressSync(text))],
  ]
  for (const [index, [name, headers, make]] of bodies.entries()) {
    const id = `copy${index}`
    const body = make(log.replace('"id":"source"', `"id":"${id}"`))
    const answer = await service.exchange('POST', '/v1/sessions/import?expectedHead=7', {
      headers,
      body: slices(body, 33),
    })
    t.has({ status: answer.status, ...answer.json() }, { status: 201, id, head: 7 }, name)
    const again = await service.exchange('POST', '/v1/sessions/import', { headers, body })
    t.has(
      { status: again.status, ...again.json() },
      { status: 200, id, head: 7, epoch: answer.json().epoch },
      `${name}, again`,
    )
    const copy = await (await service.request(`/v1/sessions/${id}/export`)).text()
    t.equal(copy.split('\n').slice(1).join('\n'), log.split('\n').slice(1).join('\n'), 'the same events come out')
  }
  // The cut at a frame's edge is a cut at a line's edge: only the expected head tells.
  const cut = zstdCompressSync(pieces.slice(0, 2).join('').replace('"id":"source"', '"id":"cut"'))
  const answer = await service.exchange('POST', '/v1/sessions/import?expectedHead=7', { headers: zstd, body: cut })
  t.has(answer.json(), { code: 'log/invalid', head: 0 })
  t.equal((await service.request('/v1/sessions/cut')).status, 404)
})

t.test('an import is pulled no faster than it is stored', async (t) => {
  let taken = 0
  const go = Promise.withResolvers<void>()
  const service = await startService(t, {
    wrap: (store) =>
      replacing(store, 'importLog', (source, options) => {
        const slow = async function* () {
          for await (const piece of source) {
            taken += piece.length
            await go.promise
            yield piece
          }
        }
        return store.importLog(slow(), options)
      }),
  })
  const socket = await service.socket()
  const answer = received(socket)
  const header = Buffer.from('{"type":"session","version":0,"id":"big","createdAt":1}\n')
  const bytes = 16 * 1024 * 1024
  socket.write(
    `POST /v1/sessions/import HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\nContent-Length: ${header.length + bytes}\r\n\r\n`,
  )
  socket.write(header)
  const blank = Buffer.alloc(1024 * 1024, '\n')
  let sent = 0
  const pump = async () => {
    for (; sent < bytes; sent += blank.length) if (!socket.write(blank)) await once(socket, 'drain')
  }
  const pumped = pump()
  await delay(500)
  t.ok(taken <= 65_536 + header.length, `${taken} bytes taken`)
  t.ok(sent < bytes, `${sent} bytes of ${bytes} could be sent`)
  go.resolve()
  await pumped
  t.match((await answer).toString(), /^HTTP\/1\.1 201 /)
})
