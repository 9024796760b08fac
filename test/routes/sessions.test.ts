// Sessions over HTTP: creating again, descriptions that keep the header's text, lists, and lives.

import t from 'tap'
import { newUserMessage, startService } from '../support/service.ts'

const JSON_BODY = { 'content-type': 'application/json' }

t.test('creating again changes nothing, with other fields it is refused', async (t) => {
  const service = await startService(t)
  const put = (body?: string) =>
    service.exchange('PUT', '/v1/sessions/a', body === undefined ? {} : { headers: JSON_BODY, body })
  const first = await put('{"cwd":"/w","createdAt":5,"agentPreset":{"n":1.0,"big":9007199254740993}}')
  t.equal(first.status, 201)
  t.match(first.json(), { id: 'a', head: -1, messages: 0, bytes: 0, createdAt: 5, updatedAt: Number, epoch: String })
  t.match(first.body.toString(), '"agentPreset":{"n":1.0,"big":9007199254740993}', 'the text is kept')
  for (const [body, status] of [
    [undefined, 200],
    ['', 200],
    ['{}', 200],
    ['{"cwd":"/w"}', 200],
    ['{"type":"session","version":0,"id":"a"}', 200],
    ['{"cwd":"/other"}', 409],
    ['{"origin":"subagent"}', 409],
    ['{"agentPreset":{"n":1,"big":9007199254740993}}', 409],
  ] as const) {
    const again = await put(body)
    t.equal(again.status, status, body ?? 'no body')
    if (status === 200) t.same(again.body, first.body)
    else t.match(again.json(), { code: 'session/exists' })
  }
  // A body without a type is a body all the same; one without bytes is none.
  const untyped = await service.exchange('PUT', '/v1/sessions/b', { body: '{"cwd":"/w"}' })
  t.match(untyped.json(), { code: 'request/unsupported-media-type' })
  const empty = await service.exchange('PUT', '/v1/sessions/b', { headers: { 'content-type': 'text/plain' }, body: '' })
  t.equal(empty.status, 201)
})

t.test('a list is walked by its cursor, whatever is created meanwhile (case A15)', async (t) => {
  const service = await startService(t, {
    wrap: (store) =>
      new Proxy(store, {
        get(target, name: keyof typeof store) {
          if (name === 'read' || name === 'readSurface') throw new Error('a record was read')
          return target[name].bind(target)
        },
      }),
  })
  const created = Array.from({ length: 25 }, (_, index) => `s${index}`)
  for (const [index, id] of created.entries()) {
    const body = JSON.stringify({ createdAt: Math.floor(index / 5) })
    await service.exchange('PUT', `/v1/sessions/${id}`, { headers: JSON_BODY, body })
  }
  await service.append('s24', [newUserMessage('hi')])
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const query = new URLSearchParams({ limit: '4', ...(cursor === undefined ? {} : { cursor }) })
    const answer = await service.request(`/v1/sessions?${query}`)
    const page = (await answer.json()) as { sessions: { id: string; head: number }[]; nextCursor?: string }
    t.ok(page.sessions.length <= 4)
    seen.push(...page.sessions.map(({ id }) => id))
    cursor = page.nextCursor
    await service.exchange('PUT', `/v1/sessions/new${seen.length}`)
  } while (cursor !== undefined)
  t.same(seen, created.toReversed(), 'newest created first, each once')
  const all = await (await service.request('/v1/sessions?limit=500')).json()
  t.match(all, { sessions: { length: 32 }, nextCursor: undefined })
})

t.test('a session deleted and created again is another one', async (t) => {
  const service = await startService(t)
  await service.append('a', [newUserMessage('old')])
  const { epoch } = (await service.exchange('GET', '/v1/sessions/a')).json()
  const deleted = await service.exchange('DELETE', '/v1/sessions/a')
  t.match(deleted, { status: 204, body: { length: 0 } })
  for (const path of ['', '/history', '/events', '/messages', '/export']) {
    const answer = await service.exchange('GET', `/v1/sessions/a${path}`)
    t.match(answer.json(), { code: 'session/not-found' }, path)
  }
  t.equal((await service.exchange('DELETE', '/v1/sessions/a')).status, 404)
  await service.append('a', [newUserMessage('new')])
  const now = (await service.exchange('GET', '/v1/sessions/a')).json()
  t.not(now.epoch, epoch)
  for (const path of ['history', 'events', 'messages', 'export']) {
    const answer = await service.exchange('GET', `/v1/sessions/a/${path}?epoch=${epoch}`)
    t.match(answer.json(), { code: 'session/replaced', epoch: now.epoch, head: 0 }, path)
    t.equal((await service.exchange('GET', `/v1/sessions/a/${path}?epoch=${now.epoch}`)).status, 200)
  }
  t.notMatch(await (await service.request('/v1/sessions/a/export')).text(), 'old')
})
