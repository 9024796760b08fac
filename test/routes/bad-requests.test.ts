// Bad requests: each is refused with its status, its code and the name of what is wrong; none is a 500, and none stores
// anything. (cases A6, E7, E8)

import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { newUserMessage, startService } from '../support/service.ts'

const NDJSON = { 'content-type': 'application/x-ndjson' }
const JSON_BODY = { 'content-type': 'application/json' }
const ZSTD = { 'content-type': 'application/zstd' }
const EVENT = '{"type":"note","data":1}\n'
const HEADER = '{"type":"session","version":0,"id":"imported","createdAt":1}\n'

interface Bad {
  readonly method?: string
  readonly path: string
  readonly headers?: Record<string, string>
  readonly body?: string | Uint8Array
  readonly status: number
  readonly code: string
  /** Members of the answer, such as the `path` that names the field. */
  readonly facts?: Record<string, unknown>
}

const invalid = (path: string, query: string): Bad => ({
  path: query,
  status: 400,
  code: 'request/invalid',
  facts: { path },
})

const page = (path: string, query: string) => invalid(path, `/v1/sessions/a/history?${query}`)
const range = (path: string, query: string) => invalid(path, `/v1/sessions/a/events?${query}`)

const append = (bad: Omit<Bad, 'path'> & { query?: string }): Bad => ({
  method: 'POST',
  path: `/v1/sessions/a/events${bad.query ?? ''}`,
  headers: NDJSON,
  ...bad,
})

const load = (bad: Omit<Bad, 'path'> & { query?: string }): Bad => ({
  method: 'POST',
  path: `/v1/sessions/import${bad.query ?? ''}`,
  headers: NDJSON,
  ...bad,
})

const create = (id: string, bad: Omit<Bad, 'path'>): Bad => ({
  method: 'PUT',
  path: `/v1/sessions/${id}`,
  headers: JSON_BODY,
  ...bad,
})

const LIMITS = { appendBytes: 2000, importBytes: 3000, lineBytes: 1000 }

const TABLE: readonly Bad[] = [
  // Ids
  invalid('id', '/v1/sessions/a%20b'),
  invalid('id', '/v1/sessions/a%2Fb'),
  invalid('id', '/v1/sessions/%00'),
  invalid('id', '/v1/sessions/%2E%2E'),
  invalid('id', `/v1/sessions/${'x'.repeat(129)}`),
  invalid('id', `/v1/sessions/${'%78'.repeat(129)}`),
  invalid('id', `/v1/sessions/${'x'.repeat(5000)}/history`),
  invalid('id', '/v1/sessions/%C3%A9/history'),
  invalid('parent', '/v1/sessions/a%20b/subagents'),
  invalid('parent', '/v1/sessions/a%20b/subagents/c/history'),
  invalid('child', '/v1/sessions/a/subagents/b%20c/history'),
  invalid('path', '/v1/sessions/%zz'),
  invalid('path', '/v1/sessions/%C3/history'),
  invalid('path', '/%'),

  // Query parameters of a page
  page('maxMessages', 'maxMessages=0'),
  page('maxMessages', 'maxMessages=501'),
  page('maxMessages', 'maxMessages=-1'),
  page('maxMessages', 'maxMessages=1e2'),
  page('maxMessages', 'maxMessages=0x10'),
  page('maxMessages', 'maxMessages=05'),
  page('maxMessages', 'maxMessages='),
  page('maxMessages', 'maxMessages=%2010'),
  page('maxMessages', 'maxMessages=10&maxMessages=20'),
  page('beforeSeq', 'beforeSeq=-1'),
  page('beforeSeq', 'beforeSeq=1.0'),
  page('beforeSeq', 'beforeSeq=1e400'),
  page('beforeSeq', 'beforeSeq=Infinity'),
  page('beforeSeq', 'beforeSeq=99999999999999999'),
  page('beforeSeq', 'beforeSeq=9007199254740993'),
  page('throughSeq', 'throughSeq=-2'),
  page('throughSeq', 'throughSeq=%2B1'),
  page('chunks', 'chunks=all'),
  page('chunks', 'chunks='),
  page('chunks', 'chunks=packed&chunks=packed'),
  page('epoch', 'epoch='),
  page('afterSeq', 'afterSeq=1'),
  page('before', 'before=1'),
  page('__proto__', '__proto__=1'),
  page('query', 'epoch=%zz'),
  page('query', 'epoch=%C3'),
  {
    path: '/v1/sessions/a/history?beforeSeq=4',
    status: 409,
    code: 'history/ahead',
    facts: { path: 'beforeSeq', head: 2 },
  },
  {
    path: '/v1/sessions/a/history?throughSeq=3',
    status: 409,
    code: 'history/ahead',
    facts: { path: 'throughSeq', head: 2 },
  },
  { path: '/v1/sessions/a/history?epoch=other', status: 409, code: 'session/replaced', facts: { head: 2 } },
  { path: '/v1/sessions/none/history', status: 404, code: 'session/not-found' },
  { path: '/v1/sessions/a/subagents/b/history', status: 404, code: 'subagent/not-found' },
  {
    path: '/v1/sessions/a/history',
    headers: { accept: 'text/csv' },
    status: 406,
    code: 'request/not-acceptable',
    facts: { offered: ['application/x-ndjson', 'application/json', 'application/ndjson', 'application/jsonl'] },
  },

  // Of a range, the surface, an export, a list
  range('fromSeq', 'fromSeq=-1'),
  range('fromSeq', 'fromSeq=2&toSeq=1'),
  range('toSeq', 'toSeq=one'),
  range('maxMessages', 'maxMessages=1'),
  { path: '/v1/sessions/a/events?fromSeq=4', status: 409, code: 'history/ahead', facts: { path: 'fromSeq' } },
  { path: '/v1/sessions/a/events?toSeq=4', status: 409, code: 'history/ahead', facts: { path: 'toSeq' } },
  invalid('chunks', '/v1/sessions/a/messages?chunks=packed'),
  { path: '/v1/sessions/a/messages?epoch=other', status: 409, code: 'session/replaced' },
  {
    path: '/v1/sessions/a/messages',
    headers: { accept: 'application/json' },
    status: 406,
    code: 'request/not-acceptable',
  },
  invalid('layout', '/v1/sessions/a/export?layout=csv'),
  { path: '/v1/sessions/none/export', status: 404, code: 'session/not-found' },
  invalid('limit', '/v1/sessions?limit=0'),
  invalid('limit', '/v1/sessions?limit=501'),
  invalid('cursor', '/v1/sessions?cursor=random'),
  invalid('cursor', '/v1/sessions?cursor='),
  invalid('parent', '/v1/sessions?parent=a%20b'),
  invalid('origin', '/v1/sessions?origin=subagent'),
  invalid('parent', '/v1/sessions/a/subagents?parent=a'),
  invalid('limit', '/v1/sessions/a?limit=1'),
  invalid('x', '/livez?x=1'),
  { method: 'DELETE', path: '/v1/sessions/none', status: 404, code: 'session/not-found' },
  { method: 'DELETE', path: '/v1/sessions/a?force=1', status: 400, code: 'request/invalid', facts: { path: 'force' } },

  // Creating
  create('new', { body: '{', status: 400, code: 'request/invalid' }),
  create('new', { body: '[]', status: 400, code: 'request/invalid' }),
  create('new', { body: '{"id":"other"}', status: 400, code: 'request/invalid', facts: { path: '/id' } }),
  create('new', { body: '{"version":1}', status: 400, code: 'request/invalid', facts: { path: '/version' } }),
  create('new', { body: '{"createdAt":1e400}', status: 400, code: 'request/invalid', facts: { path: '/createdAt' } }),
  create('new', { body: '{"cwd":1,"cwd":"b"}', status: 400, code: 'request/invalid', facts: { path: '/cwd' } }),
  create('new', {
    body: Buffer.from([0x7b, 0xff, 0x7d]),
    status: 400,
    code: 'request/invalid',
    facts: { path: 'body' },
  }),
  create('new', { body: ' '.repeat(65_537), status: 413, code: 'request/too-large', facts: { limit: 65_536 } }),
  create('new', {
    headers: { 'content-type': 'text/plain' },
    body: '{}',
    status: 415,
    code: 'request/unsupported-media-type',
  }),
  create('a%20b', { body: '{}', status: 400, code: 'request/invalid', facts: { path: 'id' } }),
  create('a', { body: '{"cwd":"/elsewhere"}', status: 409, code: 'session/exists', facts: { path: '/cwd' } }),

  // Appending
  append({ headers: {}, body: EVENT, status: 415, code: 'request/unsupported-media-type' }),
  append({
    headers: { 'content-type': 'text/plain' },
    body: EVENT,
    status: 415,
    code: 'request/unsupported-media-type',
  }),
  append({ headers: { 'content-type': '/' }, body: EVENT, status: 415, code: 'request/unsupported-media-type' }),
  append({
    headers: { 'content-type': 'application/x-ndjson; charset=latin1' },
    body: EVENT,
    status: 415,
    code: 'request/unsupported-media-type',
  }),
  append({
    headers: { ...NDJSON, 'content-encoding': 'zstd' },
    body: zstdCompressSync(EVENT),
    status: 415,
    code: 'request/unsupported-media-type',
    facts: { path: 'Content-Encoding', offered: ['gzip', 'deflate', 'br'] },
  }),
  append({
    headers: { ...NDJSON, 'content-encoding': 'gzip, gzip' },
    body: gzipSync(gzipSync(EVENT)),
    status: 415,
    code: 'request/unsupported-media-type',
    facts: { path: 'Content-Encoding' },
  }),
  ...(
    [
      ['gzip', Buffer.from(EVENT)],
      ['gzip', gzipSync(EVENT).subarray(0, -1)],
      ['gzip', Buffer.concat([gzipSync(EVENT), Buffer.from('more')])],
      ['deflate', deflateSync(EVENT).subarray(0, -1)],
      ['deflate', Buffer.concat([deflateSync(EVENT), deflateSync(EVENT)])],
      ['br', brotliCompressSync(EVENT).subarray(0, -1)],
      ['br', Buffer.concat([brotliCompressSync(EVENT), brotliCompressSync(EVENT)])],
    ] as const
  ).map(([coding, body]) =>
    append({
      headers: { ...NDJSON, 'content-encoding': coding },
      body,
      status: 400,
      code: 'request/invalid',
      facts: { path: 'Content-Encoding' },
    }),
  ),
  append({ body: EVENT.repeat(100), status: 413, code: 'request/too-large', facts: { limit: 2000 } }),
  append({
    headers: { ...NDJSON, 'content-encoding': 'gzip' },
    body: gzipSync(EVENT.repeat(100)),
    status: 413,
    code: 'request/too-large',
    facts: { limit: 2000 },
  }),
  append({
    body: `{"type":"${'x'.repeat(1100)}"}\n`,
    status: 413,
    code: 'request/too-large',
    facts: { line: 1, limit: 1000 },
  }),
  append({ body: `${EVENT}{"type":"note"\n`, status: 422, code: 'event/invalid', facts: { line: 2 } }),
  append({ body: `${EVENT}[]\n`, status: 422, code: 'event/invalid', facts: { line: 2 } }),
  append({
    body: '{"type":"session","data":1}\n',
    status: 422,
    code: 'record/malformed',
    facts: { line: 1, path: '/type' },
  }),
  append({
    body: `{"type":"note","seq":1e400,"time":1,"data":1}\n`,
    status: 422,
    code: 'event/invalid',
    facts: { path: '/seq' },
  }),
  append({
    body: `{"type":"note","seq":5,"time":1,"data":1}\n`,
    status: 409,
    code: 'append/gap',
    facts: { expectedSeq: 3, head: 2 },
  }),
  append({ body: `{"type":"note","seq":0,"time":1,"data":1}\n`, status: 409, code: 'append/conflict' }),
  append({ body: EVENT, query: '?expectedSeq=4', status: 409, code: 'append/gap', facts: { expectedSeq: 3 } }),
  append({
    body: EVENT,
    query: '?expectedSeq=-1',
    status: 400,
    code: 'request/invalid',
    facts: { path: 'expectedSeq' },
  }),
  append({ body: EVENT, query: '?epoch=other', status: 409, code: 'session/replaced' }),
  append({ body: EVENT, query: '?sync=1', status: 400, code: 'request/invalid', facts: { path: 'sync' } }),
  append({ headers: JSON_BODY, body: '[1]', status: 422, code: 'event/invalid' }),
  append({ headers: JSON_BODY, body: '{"type":"note","data":1', status: 422, code: 'event/invalid' }),
  { ...append({ body: EVENT, status: 404, code: 'session/not-found' }), path: '/v1/sessions/none/events' },

  // Importing
  load({ headers: JSON_BODY, body: HEADER, status: 415, code: 'request/unsupported-media-type' }),
  load({
    headers: { 'content-type': 'application/octet-stream' },
    body: zstdCompressSync(HEADER),
    status: 415,
    code: 'request/unsupported-media-type',
  }),
  load({ body: '', status: 422, code: 'log/invalid' }),
  load({ body: HEADER.replace('0', '7'), status: 422, code: 'log/invalid', facts: { line: 1, path: '/version' } }),
  load({ body: `${HEADER}{"type":"note","seq":0,"time":1`, status: 422, code: 'log/invalid', facts: { line: 2 } }),
  load({ body: HEADER, query: '?expectedHead=0', status: 422, code: 'log/invalid', facts: { head: -1 } }),
  load({
    body: HEADER,
    query: '?expectedHead=-2',
    status: 400,
    code: 'request/invalid',
    facts: { path: 'expectedHead' },
  }),
  load({ headers: ZSTD, body: HEADER, status: 422, code: 'log/invalid' }),
  load({ headers: ZSTD, body: zstdCompressSync(HEADER).subarray(0, -1), status: 422, code: 'log/invalid' }),
  load({
    headers: ZSTD,
    body: Buffer.concat([zstdCompressSync(HEADER), Buffer.from('garbage')]),
    status: 422,
    code: 'log/invalid',
  }),
  load({
    headers: { ...NDJSON, 'content-encoding': 'gzip' },
    body: gzipSync(HEADER).subarray(0, -2),
    status: 400,
    code: 'request/invalid',
    facts: { path: 'Content-Encoding' },
  }),
  load({ body: HEADER + ' '.repeat(3000), status: 413, code: 'request/too-large' }),
  load({
    headers: ZSTD,
    body: zstdCompressSync(HEADER + '\n'.repeat(3000)),
    status: 413,
    code: 'request/too-large',
    facts: { limit: 3000 },
  }),

  // Paths and methods
  invalid('x', '/?x=1'),
  { path: '/none', status: 404, code: 'route/not-found' },
  { path: '/v1', status: 404, code: 'route/not-found' },
  { path: '/v1/sessions/a/', status: 404, code: 'route/not-found' },
  { path: '/v2/sessions', status: 404, code: 'route/not-found' },
  { path: `/${'x'.repeat(5000)}`, status: 404, code: 'route/not-found' },
  { path: '/docs/static/none.js', status: 404, code: 'route/not-found' },
  { method: 'POST', path: '/v1/sessions', status: 405, code: 'request/method', facts: { allow: ['GET', 'HEAD'] } },
  {
    method: 'PATCH',
    path: '/v1/sessions/a',
    status: 405,
    code: 'request/method',
    facts: { allow: ['DELETE', 'GET', 'HEAD', 'PUT'] },
  },
  {
    method: 'PATCH',
    path: '/v1/sessions/import',
    status: 405,
    code: 'request/method',
    facts: { allow: ['DELETE', 'GET', 'HEAD', 'POST', 'PUT'] },
  },
  {
    method: 'DELETE',
    path: '/v1/sessions/a/history',
    status: 405,
    code: 'request/method',
    facts: { allow: ['GET', 'HEAD'] },
  },
  {
    method: 'PUT',
    path: '/v1/sessions/a/events',
    status: 405,
    code: 'request/method',
    facts: { allow: ['GET', 'HEAD', 'POST'] },
  },
  { method: 'QUERY', path: '/v1/sessions', status: 405, code: 'request/method' },
  { method: 'PROPFIND', path: '/v1/sessions', status: 405, code: 'request/method' },
  { method: 'OPTIONS', path: '/v1/sessions', status: 405, code: 'request/method' },
  { method: 'TRACE', path: '/livez', status: 405, code: 'request/method' },
]

t.test('every bad request is named, and none stores anything', async (t) => {
  const service = await startService(t, { config: LIMITS })
  await service.append('a', [newUserMessage('one'), 'note', newUserMessage('two')])
  const state = async () => [
    await service.request('/v1/sessions').then((answer) => answer.text()),
    await service.request('/v1/sessions/a/events').then((answer) => answer.text()),
  ]
  const before = await state()
  t.ok(TABLE.length >= 60, `${TABLE.length} of them`)
  for (const { method = 'GET', path, headers = {}, body, status, code, facts = {} } of TABLE) {
    const name = `${method} ${path.slice(0, 60)} ${JSON.stringify(headers)} ${`${body ?? ''}`.slice(0, 40)}`
    const answer = await service.exchange(method, path, { headers, ...(body === undefined ? {} : { body }) })
    const { status: got, headers: gotHeaders } = answer
    t.match({ status: got, type: gotHeaders['content-type'] }, { status, type: 'application/problem+json' }, name)
    t.has(answer.json(), { code, status, type: `urn:scrollback:problem:${code}`, ...facts }, name)
    if (status === 405) t.equal(gotHeaders.allow, (answer.json().allow as string[]).join(', '))
  }
  t.same(await state(), before, 'the store is as it was')
  t.same(service.log, [], 'and nothing is worth a line in the log')
})

t.test('what a parameter takes is said in words, with its limit', async (t) => {
  const service = await startService(t)
  await service.append('a', ['note'])
  const SEQ = 'an integer from 0 to 9007199254740991'
  const INCLUSIVE = 'an integer from -1 to 9007199254740991'
  const ID = 'a session id: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, not . or ..'
  const rows: [method: string, path: string, name: string, expected: string, came: string, limit?: number][] = [
    ['GET', 'a/history?maxMessages=501', 'maxMessages', 'an integer from 1 to 500', '501', 500],
    ['GET', 'a/follow?maxMessages=0', 'maxMessages', 'an integer from 1 to 500', '0', 500],
    ['GET', '?limit=1e2', 'limit', 'an integer from 1 to 500', '1e2', 500],
    ['GET', 'a/history?beforeSeq=-1', 'beforeSeq', SEQ, '-1'],
    ['GET', 'a/history?beforeSeq=9007199254740992', 'beforeSeq', SEQ, '9007199254740992'],
    ['GET', 'a/history?throughSeq=-2', 'throughSeq', INCLUSIVE, '-2'],
    ['GET', 'a/history?throughSeq=9007199254740992', 'throughSeq', INCLUSIVE, '9007199254740992'],
    ['GET', 'a/follow?afterSeq=x', 'afterSeq', INCLUSIVE, 'x'],
    ['GET', 'a/events?fromSeq=01', 'fromSeq', SEQ, '01'],
    ['GET', 'a/events?toSeq=', 'toSeq', SEQ, ''],
    ['POST', 'a/events?expectedSeq=-1', 'expectedSeq', SEQ, '-1'],
    ['POST', 'import?expectedHead=-2', 'expectedHead', INCLUSIVE, '-2'],
    ['GET', 'a/history?chunks=all', 'chunks', 'one of packed, expanded, omit', 'all'],
    ['GET', 'a/export?layout=csv', 'layout', 'one of packed, events', 'csv'],
    ['GET', 'a/history?epoch=', 'epoch', 'an epoch, as History-Epoch names it, of 1 to 200 characters', '', 200],
    ['GET', '?cursor=', 'cursor', 'the nextCursor of the answer before, of 1 to 1024 characters', '', 1024],
    ['GET', '?parent=a%20b', 'parent', ID, 'a b', 128],
    ['GET', 'a%20b', 'id', ID, 'a b', 128],
    ['GET', '%2E%2E', 'id', ID, '..', 128],
    ['GET', 'a/subagents/b%20c/history', 'child', ID, 'b c', 128],
  ]
  for (const [method, rest, name, expected, came, limit] of rows) {
    const path = `/v1/sessions${rest.startsWith('?') ? rest : `/${rest}`}`
    const answer = await service.exchange(method, path, method === 'POST' ? { headers: NDJSON, body: EVENT } : {})
    const { status, detail, path: named, limit: told } = answer.json()
    const said = `${name} must be ${expected}, got ${JSON.stringify(came)}`
    t.same({ status, detail, named, told }, { status: 400, detail: said, named: name, told: limit }, path)
  }
})
