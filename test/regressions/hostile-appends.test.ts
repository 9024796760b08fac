// Requests that were small and allowed, and held everything up: each test tells what was wrong.

import { once } from 'node:events'
import t from 'tap'
import { startService } from '../support/service.ts'

const NDJSON = { 'Content-Type': 'application/x-ndjson' }

function row(seq: number, members: number, id: string): string {
  const data = { turn: 1, step: 1, index: 0, id, dt: Array(members - 1).fill(0), args: Array(members).fill('') }
  return JSON.stringify({ type: 'chunks', event: { type: 'chunkrow/tool-call-chunks', seq, time: 1, data } })
}

t.test('a row whose id stands for gigabytes is refused, and an ordinary long one is not', async (t) => {
  // One line of 1.1 MB, with 460 members of an id of 1.1 MB, wrote 500 MB in one transaction.
  const service = await startService(t)
  await service.append('a', [])
  const post = (body: string) => service.exchange('POST', '/v1/sessions/a/events', { headers: NDJSON, body })
  const refused = await post(row(0, 460, 'x'.repeat(1_100_000)))
  t.equal(refused.status, 413)
  t.match(refused.json(), { code: 'request/too-large', line: 1, limit: 64 * 1024 * 1024 })
  t.equal((await post(row(0, 4_096, 'x'.repeat(4_000)))).status, 200)
})

t.test('expanding a row with a long id goes in small pieces', async (t) => {
  // 560 members of a 900 KB id were put into one string: the thread stood still for seconds, and took gigabytes.
  const service = await startService(t)
  await service.append('a', [])
  const body = row(0, 60, 'x'.repeat(900_000))
  t.equal((await service.exchange('POST', '/v1/sessions/a/events', { headers: NDJSON, body })).status, 200)
  const { log } = (await service.store.describe('a')) as { log: number }
  t.equal((await service.store.read(log, 0, 60, { maxBytes: 1, chunkLines: true })).length, 1, 'it is one row')
  const lines = await service.exchange('GET', '/v1/sessions/a/history?chunks=expanded')
  t.equal(lines.body.toString().trimEnd().split('\n').length, 60)
})

t.test('the pieces of an open run with a long id do not repeat it', async (t) => {
  // Each append of one delta stored the id again, and each page read all of them: a second for a page of one line.
  const service = await startService(t)
  await service.append('a', [])
  for (let seq = 0; seq < 12; seq++) {
    const chunk = { type: 'tool-call-delta', index: 0, id: 'x'.repeat(100_000), argumentsDelta: `${seq}` }
    const data = { turn: 1, step: 1, chunk }
    await service.append('a', [{ type: 'assistant/chunk', data }])
  }
  const page = await service.exchange('GET', '/v1/sessions/a/history')
  t.equal(page.body.toString().trimEnd().split('\n').length, 1)
  const { log } = (await service.store.describe('a')) as { log: number }
  const read = await service.store.read(log, 0, 12, { maxBytes: 1e9, chunkLines: true })
  t.ok((read[0]?.line?.length ?? 0) < 110_000)
})

t.test('a large body is applied without keeping its events as objects', async (t) => {
  // Two bodies of tiny events at once took the writer's whole heap, and with it every later append.
  const service = await startService(t)
  await service.append('a', [])
  const count = 150_000
  const body = '{"type":"x","data":0}\n'.repeat(count)
  const answers = await Promise.all(
    ['a', 'a'].map((id) => service.exchange('POST', `/v1/sessions/${id}/events`, { headers: NDJSON, body })),
  )
  for (const answer of answers) t.match(answer.json(), { appended: count })
  const bad = await service.exchange('POST', '/v1/sessions/a/events', { headers: NDJSON, body: `${body}{"type":1}\n` })
  t.match(bad.json(), { code: 'event/invalid', line: count + 1, path: '/type' })
  t.equal((await service.store.describe('a'))?.head, 2 * count - 1)
})

t.test('a body in a coding that is refused, and that never ends, takes nothing with it', async (t) => {
  // The request was answered with 415; five seconds later its connection was closed, and the error of a body that nobody
  // read ended the process.
  const service = await startService(t)
  const client = await service.socket()
  client.write('POST /v1/sessions/a/events HTTP/1.1\r\nHost: a\r\nContent-Encoding: zstd\r\nContent-Length: 9\r\n\r\nx')
  const [answer] = await once(client, 'data')
  t.match(String(answer), /^HTTP\/1\.1 415 /)
  client.resume()
  await once(client, 'close')
  t.equal((await service.exchange('GET', '/livez')).status, 200)
})
