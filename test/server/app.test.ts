// What holds for every request: what is not HTTP, methods and paths, operations, and the end of serving.

import { once } from 'node:events'
import t from 'tap'
import { Problem } from '../../codec/index.ts'
import { received, replacing, startService, until } from '../support/service.ts'

t.test('what is not HTTP is answered all the same', async (t) => {
  const service = await startService(t)
  for (const [name, bytes, status, code] of [
    ['garbage', 'garbage\r\n\r\n', 400, 'request/invalid'],
    ['TLS', Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0, 13, 10]), 400, 'request/invalid'],
    ['a space in the path', 'GET /v1/a b HTTP/1.1\r\nHost: h\r\n\r\n', 400, 'request/invalid'],
    [
      'two lengths',
      'POST /v1/sessions/a/events HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
      'request/invalid',
    ],
    ['no host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 400, 'request/invalid'],
    [
      'large headers',
      `GET /livez HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      'request/headers-too-large',
    ],
    ['a large path', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: h\r\n\r\n`, 431, 'request/headers-too-large'],
    ['an unknown method', 'BREW /livez HTTP/1.1\r\nHost: h\r\n\r\n', 400, 'request/invalid'],
    [
      'a bad chunk',
      'POST /v1/sessions/a/events HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
      400,
      'request/invalid',
    ],
  ] as const) {
    const socket = await service.socket()
    const answer = received(socket)
    socket.write(bytes)
    const [head = '', body = ''] = (await answer).toString().split('\r\n\r\n')
    t.match(head, new RegExp(`^HTTP/1.1 ${status} [\\s\\S]*content-type: application/problem\\+json`, 'i'), name)
    t.match(JSON.parse(body), { code, status }, name)
  }
  t.same(service.log, [])
  t.equal((await service.request('/livez')).status, 200)
})

t.test('an answer needs no Host from HTTP/1.0', async (t) => {
  const service = await startService(t)
  const socket = await service.socket()
  const answer = received(socket)
  socket.write('GET /livez HTTP/1.0\r\n\r\n')
  t.match((await answer).toString(), /^HTTP\/1\.1 200 [\s\S]*{"status":"ok"}$/)
})

t.test('every path takes its methods, and names them to the others', async (t) => {
  const service = await startService(t)
  await service.append('a', ['note'])
  for (const [path, allow] of [
    ['/livez', 'GET, HEAD'],
    ['/readyz', 'GET, HEAD'],
    ['/openapi.yaml', 'GET, HEAD'],
    ['/docs', 'GET'],
    ['/v1/sessions', 'GET, HEAD'],
    ['/v1/sessions/a', 'DELETE, GET, HEAD, PUT'],
    ['/v1/sessions/import', 'DELETE, GET, HEAD, POST, PUT'],
    ['/v1/sessions/a/events', 'GET, HEAD, POST'],
    ['/v1/sessions/a/history', 'GET, HEAD'],
    ['/v1/sessions/a/follow', 'GET'],
    ['/v1/sessions/a/messages', 'GET, HEAD'],
    ['/v1/sessions/a/export', 'GET, HEAD'],
    ['/v1/sessions/a/subagents', 'GET, HEAD'],
    ['/v1/sessions/a/subagents/b/history', 'GET, HEAD'],
    ['/v1/sessions/a/subagents/b/events', 'GET, HEAD'],
    ['/v1/sessions/a/subagents/b/follow', 'GET'],
    ['/v1/sessions/a/subagents/b/messages', 'GET, HEAD'],
  ] as const) {
    const taken = allow.split(', ')
    for (const method of [
      'GET',
      'HEAD',
      'PUT',
      'POST',
      'PATCH',
      'DELETE',
      'OPTIONS',
      'TRACE',
      'QUERY',
      'SEARCH',
      'PURGE',
    ]) {
      if (taken.includes(method)) continue
      const answer = await service.exchange(method, path, { headers: { 'content-type': 'nonsense' } })
      t.match(answer, { status: 405, headers: { allow } }, `${method} ${path}`)
      if (method !== 'HEAD') t.match(answer.json(), { code: 'request/method', allow: taken })
    }
  }
  // An id may be a word of a path.
  for (const id of ['import', 'sessions', 'events']) {
    t.equal((await service.exchange('PUT', `/v1/sessions/${id}`)).status, 201)
    t.equal((await service.exchange('GET', `/v1/sessions/${id}/history`)).status, 200)
    t.equal((await service.exchange('DELETE', `/v1/sessions/${id}`)).status, 204)
  }
  const id = 'A.z_~:@-'.repeat(16)
  t.equal((await service.exchange('PUT', `/v1/sessions/${id}`)).status, 201)
  const coded = [...id].map((character) => `%${character.charCodeAt(0).toString(16)}`).join('')
  t.match((await service.exchange('GET', `/v1/sessions/${coded}`)).json(), { id })
})

t.test('live and ready', async (t) => {
  let broken = false
  const service = await startService(t, {
    wrap: (store) =>
      replacing(store, 'check', async () => {
        if (broken) throw new Problem('store/unavailable', 'the disk is gone', { retryAfter: 1 })
        return store.check()
      }),
  })
  t.match(await service.exchange('GET', '/readyz'), { status: 200 })
  broken = true
  const answer = await service.exchange('GET', '/readyz')
  t.match(answer, { status: 503, headers: { 'retry-after': '1' } })
  t.match(answer.json(), { code: 'store/unavailable' })
  const live = await service.exchange('GET', '/livez')
  t.same([live.status, live.json()], [200, { status: 'ok' }])
})

t.test('while draining, running answers finish and new ones are refused', async (t) => {
  const gate = Promise.withResolvers<void>()
  let reads = 0
  const service = await startService(t, {
    wrap: (store) =>
      replacing(store, 'read', async (...args) => {
        reads++
        await gate.promise
        return store.read(...args)
      }),
  })
  await service.append('a', ['note'])
  // A connection that is kept alive, idle at this moment.
  const idle = await service.socket()
  idle.write('GET /livez HTTP/1.1\r\nHost: h\r\n\r\n')
  await once(idle, 'data')
  const page = service.exchange('GET', '/v1/sessions/a/history')
  await until(() => reads === 1)

  const drained = service.app.drain.finish(60_000, new Promise(() => {}))
  const refusedOnIdle = received(idle)
  idle.write('GET /v1/sessions HTTP/1.1\r\nHost: h\r\n\r\n')
  t.match(
    (await refusedOnIdle).toString(),
    /^HTTP\/1\.1 503 [\s\S]*connection: close\r\n[\s\S]*"code":"server\/draining"/i,
  )
  for (const [method, path, status] of [
    ['GET', '/v1/sessions', 503],
    ['POST', '/v1/sessions/a/events', 503],
    ['GET', '/readyz', 503],
    ['GET', '/nothing', 503],
    ['GET', '/livez', 200],
  ] as const) {
    const answer = await service.exchange(method, path)
    t.match(answer, { status, headers: { connection: 'close' } }, path)
    if (status === 503) t.match(answer.json(), { code: 'server/draining' })
  }
  gate.resolve()
  const { status, complete, headers } = await page
  t.match({ status, complete, headers }, { status: 200, complete: true, headers: { connection: 'close' } })
  await drained
  t.same(service.log, [])
})

t.test('a drain waits no longer than it is given', async (t) => {
  const service = await startService(t, { wrap: (store) => replacing(store, 'read', () => new Promise(() => {})) })
  await service.append('a', ['note'])
  const socket = await service.socket()
  const gone = received(socket)
  socket.write('GET /v1/sessions/a/history HTTP/1.1\r\nHost: h\r\n\r\n')
  await until(async () => (await service.request('/livez')).ok)
  await service.app.drain.finish(100, new Promise(() => {}))
  await service.app.close()
  t.equal((await gone).length, 0, 'what is left is cut')
})

t.test('a parameter that is not there is refused with those that are', async (t) => {
  const service = await startService(t)
  const refused = async (path: string) => (await service.exchange('GET', path)).json()
  t.match(await refused('/v1/sessions/a/events?afterSeq=5'), {
    detail: 'there is no parameter afterSeq here; there is fromSeq, toSeq, chunks, epoch',
    offered: ['fromSeq', 'toSeq', 'chunks', 'epoch'],
  })
  t.match(await refused('/livez?a=1'), { detail: 'there is no parameter a here' })
})
