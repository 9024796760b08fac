// Pages over HTTP: headers, the walk back, validators, negotiation, and the same through a parent's path.

import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import t from 'tap'
import { expandRecord, validateRecord } from '../../codec/index.ts'
import { contentCoding } from '../../routes/index.ts'
import type { Exchange, Service } from '../support/service.ts'
import { newTextDelta, newUserMessage, startService } from '../support/service.ts'

/** Turns of a question, tokens, and the message that settles them. */
function conversation(turns: number, tokens = 5): object[] {
  const events: object[] = []
  for (let turn = 0; turn < turns; turn++) {
    events.push(newUserMessage(`question ${turn}`))
    const first = events.length
    for (let token = 0; token < tokens; token++) events.push(newTextDelta(`token ${token} `, { turn }))
    events.push({
      type: 'assistant/message',
      data: { turn, step: 0, message: { id: `m${turn}`, role: 'assistant', content: 'all', source: 'model' } },
      sourceEventSeqs: Array.from({ length: tokens }, (_, token) => first + token),
      surfaceOp: 'append',
    })
  }
  return events
}

const DECODE = {
  identity: (bytes: Buffer) => bytes,
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
}

function text({ headers, body }: Exchange): string {
  return DECODE[(headers['content-encoding'] ?? 'identity') as keyof typeof DECODE](body).toString()
}

function seqs(lines: string): number[] {
  const records = lines
    .trim()
    .split('\n')
    .map((line) => validateRecord(JSON.parse(line)))
  return records.flatMap((record) => expandRecord(record).map(({ seq }) => seq))
}

async function describe(service: Service, id: string): Promise<{ epoch: string; head: number }> {
  return (await service.request(`/v1/sessions/${id}`)).json() as Promise<{ epoch: string; head: number }>
}

t.test('the headers of a page, and the walk back by its links (cases A1, A5, A8)', async (t) => {
  const service = await startService(t)
  await service.append('a', conversation(20))
  const { epoch, head } = await describe(service, 'a')
  let path = '/v1/sessions/a/history?maxMessages=6&chunks=packed'
  let end = head + 1
  const seen: number[] = []
  for (let page = 0; ; page++) {
    const answer = await service.exchange('GET', path)
    const { headers } = answer
    const from = Number(headers['history-from'])
    t.match(headers, {
      'content-type': 'application/x-ndjson; charset=utf-8',
      'history-epoch': epoch,
      'history-to': `${end}`,
      'history-more': `${from > 0}`,
      'x-accel-buffering': 'no',
      vary: 'Accept, Accept-Encoding',
    })
    t.equal(headers['history-head'], page === 0 ? `${head}` : undefined, 'only where the end was not given')
    t.equal(headers['cache-control'], page === 0 ? 'no-cache' : 'private, max-age=31536000, immutable')
    seen.unshift(...seqs(text(answer)))
    // Something new arrives between any two pages.
    await service.append('a', [newUserMessage(`meanwhile ${page}`)])
    end = from
    if (from === 0) {
      t.equal(headers.link, undefined)
      break
    }
    const [, target = ''] = /^<(.*)>; rel="prev"$/.exec(`${headers.link}`) ?? []
    t.equal(target, `/v1/sessions/a/history?beforeSeq=${from}&maxMessages=6&chunks=packed&epoch=${epoch}`)
    const { pathname, search } = new URL(target, `${service.url}${path}`)
    path = pathname + search
  }
  t.same(
    seen,
    Array.from({ length: head + 1 }, (_, seq) => seq),
    'each event exactly once, in order',
  )
})

t.test('the range before a range has its size', async (t) => {
  const service = await startService(t)
  await service.append('a', conversation(3))
  const { epoch, head } = await describe(service, 'a')
  for (const [query, link] of [
    ['fromSeq=10&toSeq=14', `?fromSeq=6&toSeq=10&epoch=${epoch}`],
    ['fromSeq=3&toSeq=14&chunks=expanded', `?fromSeq=0&toSeq=3&chunks=expanded&epoch=${epoch}`],
    ['fromSeq=5', `?fromSeq=0&toSeq=5&epoch=${epoch}`],
    ['fromSeq=5&toSeq=5', `?fromSeq=0&toSeq=5&epoch=${epoch}`],
    ['toSeq=5', undefined],
    ['', undefined],
  ] as const) {
    const answer = await service.exchange('GET', `/v1/sessions/a/events?${query}`)
    t.equal(answer.status, 200)
    t.equal(answer.headers.link, link === undefined ? undefined : `</v1/sessions/a/events${link}>; rel="prev"`, query)
    t.equal(answer.headers['history-head'], query.includes('toSeq') ? undefined : `${head}`)
  }
})

t.test('an empty range is a page', async (t) => {
  const service = await startService(t)
  await service.append('empty', [])
  await service.append('a', ['note', 'note'])
  for (const [path, at] of [
    ['empty/history', 0],
    ['empty/history?beforeSeq=0', 0],
    ['empty/history?throughSeq=-1', 0],
    ['empty/events', 0],
    ['a/events?fromSeq=2', 2],
    ['a/events?fromSeq=1&toSeq=1', 1],
    ['a/history?beforeSeq=0', 0],
  ] as const) {
    for (const coding of ['identity', 'gzip', 'br', 'zstd']) {
      const answer = await service.exchange('GET', `/v1/sessions/${path}`, { headers: { 'accept-encoding': coding } })
      t.match(answer, { status: 200, headers: { 'history-from': `${at}`, 'history-to': `${at}` } }, `${path} ${coding}`)
      t.equal(text(answer), '')
    }
    const document = await (
      await service.request(`/v1/sessions/${path}`, { headers: { accept: 'application/json' } })
    ).json()
    t.has(document, { from: at, to: at, hasMore: at > 0, records: [] })
  }
})

t.test('every chunks mode, as lines and as one document', async (t) => {
  const service = await startService(t)
  await service.append('a', conversation(4, 30))
  const { epoch, head } = await describe(service, 'a')
  for (const chunks of ['packed', 'expanded', 'omit']) {
    const path = `/v1/sessions/a/history?chunks=${chunks}`
    const lines = await (await service.request(path)).text()
    t.match(lines, /\n$/)
    const records = lines
      .trimEnd()
      .split('\n')
      .map((line) => validateRecord(JSON.parse(line)))
    const document = await (await service.request(path, { headers: { accept: 'application/json' } })).json()
    t.same(document, { epoch, from: 0, to: head + 1, hasMore: false, records }, chunks)
  }
})

t.test('what is accepted, and what is sent', async (t) => {
  const service = await startService(t)
  await service.append('a', ['note'])
  for (const [accept, sent] of [
    [undefined, 'ndjson'],
    ['*/*', 'ndjson'],
    ['application/*', 'ndjson'],
    ['application/x-ndjson', 'ndjson'],
    ['application/x-ndjson; charset=utf-8', 'ndjson'],
    ['application/ndjson', 'ndjson'],
    ['application/jsonl', 'ndjson'],
    ['APPLICATION/X-NDJSON', 'ndjson'],
    ['text/html, application/xhtml+xml, */*;q=0.8', 'ndjson'],
    ['application/json', 'json'],
    ['application/json; charset=utf-8', 'json'],
    ['application/json, */*', 'json'],
    ['application/json;q=0.5, application/x-ndjson', 'ndjson'],
    ['application/x-ndjson;q=0, */*', 'json'],
    ['text/*', undefined],
    ['application/xml', undefined],
    ['application/json;q=0', undefined],
    ['nonsense', undefined],
  ] as const) {
    const headers = accept === undefined ? {} : { accept }
    const answer = await service.exchange('GET', '/v1/sessions/a/history', { headers })
    const type = { ndjson: 'application/x-ndjson; charset=utf-8', json: 'application/json; charset=utf-8' }
    t.equal(answer.headers['content-type'], sent ? type[sent] : 'application/problem+json', `Accept: ${accept}`)
    t.equal(answer.status, sent ? 200 : 406)
  }
})

const ACCEPT_ENCODINGS = [
  undefined,
  '',
  'identity',
  'gzip',
  'x-gzip',
  'GZIP',
  'br',
  'zstd',
  'deflate',
  'compress, deflate',
  'gzip, deflate',
  'gzip, deflate, br',
  'gzip, deflate, br, zstd',
  'br;q=0.5, gzip;q=0.9',
  'zstd;q=0, br;q=0, gzip',
  'gzip;q=0',
  '*',
  '*;q=0.1, br',
  '*;q=0',
  'identity;q=1, gzip;q=0.5',
  'identity;q=0',
  'identity;q=0, br',
  'gzip;q=1.0, identity; q=0.5, *;q=0',
  'nonsense;;q=,,',
]

t.test('the validator names the coding that is sent, and so does HEAD', async (t) => {
  const service = await startService(t)
  await service.append('a', conversation(2, 100))
  const { epoch, head } = await describe(service, 'a')
  const plain = text(await service.exchange('GET', '/v1/sessions/a/history'))
  for (const accepted of ACCEPT_ENCODINGS) {
    for (const extra of [{}, { 'x-no-compression': '1' }]) {
      const headers = { ...(accepted === undefined ? {} : { 'accept-encoding': accepted }), ...extra }
      const name = JSON.stringify(headers)
      for (const [method, path] of [
        ['GET', 'history'],
        ['HEAD', 'history'],
        ['HEAD', 'events'],
      ] as const) {
        const answer = await service.exchange(method, `/v1/sessions/a/${path}`, { headers })
        const coding = answer.headers['content-encoding'] ?? 'identity'
        t.equal(answer.headers.etag, `"${epoch}.0.${head + 1}.packed.ndjson.${coding}"`, `${method} ${path} ${name}`)
        t.equal(answer.headers.vary, 'Accept, Accept-Encoding')
        t.equal(coding, contentCoding(headers))
        if (method === 'GET') t.equal(text(answer), plain)
        else t.equal(answer.body.length, 0)
      }
    }
  }
})

t.test('HEAD gives the headers of GET and reads no record', async (t) => {
  const service = await startService(t, {
    wrap: (store) =>
      new Proxy(store, {
        get(target, name: keyof typeof store) {
          if (name === 'read' || name === 'readSurface') throw new Error('a record was read')
          return target[name].bind(target)
        },
      }),
  })
  await service.append('a', conversation(3))
  for (const path of ['history?maxMessages=2', 'events?fromSeq=1', 'messages', 'export']) {
    const answer = await service.exchange('HEAD', `/v1/sessions/a/${path}`)
    t.match(answer, { status: 200, headers: { 'history-to': '21', 'content-type': /ndjson/ } }, path)
  }
  t.match(await service.exchange('HEAD', '/v1/sessions/a/history?beforeSeq=99'), { status: 409 })
  t.match(await service.exchange('HEAD', '/v1/sessions'), { status: 200, headers: { 'content-length': /\d+/ } })
  t.match(await service.exchange('HEAD', '/livez'), { status: 200 })
})

t.test('when a page may be kept', async (t) => {
  const service = await startService(t)
  await service.append('a', conversation(3))
  const { epoch } = await describe(service, 'a')
  for (const [path, kept] of [
    ['history', false],
    [`history?epoch=${epoch}`, false],
    ['history?beforeSeq=7', false],
    [`history?beforeSeq=7&epoch=${epoch}`, true],
    [`history?throughSeq=20&epoch=${epoch}`, true],
    [`events?fromSeq=1&epoch=${epoch}`, false],
    ['events?toSeq=5', false],
    [`events?toSeq=21&epoch=${epoch}`, true],
  ] as const) {
    for (const method of ['GET', 'HEAD']) {
      const { headers } = await service.exchange(method, `/v1/sessions/a/${path}`)
      t.equal(headers['cache-control'], kept ? 'private, max-age=31536000, immutable' : 'no-cache', `${method} ${path}`)
      t.equal(headers['history-head'], /beforeSeq|throughSeq|toSeq/.test(path) ? undefined : '20')
    }
  }
})

t.test('a page that the reader has is not sent again', async (t) => {
  const service = await startService(t)
  await service.append('a', conversation(3))
  const { epoch } = await describe(service, 'a')
  for (const path of ['history', `history?beforeSeq=7&maxMessages=1&epoch=${epoch}`, 'events?fromSeq=2']) {
    const first = await service.exchange('GET', `/v1/sessions/a/${path}`, { headers: { 'accept-encoding': 'gzip' } })
    const { etag = '' } = first.headers
    for (const [given, status] of [
      [etag, 304],
      [`W/${etag}`, 304],
      [`"other", ${etag}`, 304],
      [`"a,b" , W/${etag},"c"`, 304],
      ['*', 304],
      ['"other"', 200],
      [etag.slice(1, -1), 200],
      [etag.replace('gzip', 'br'), 200],
      [`"x${etag.slice(1)}`, 200],
      ['', 200],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const headers = { 'accept-encoding': 'gzip', 'if-none-match': given }
        const again = await service.exchange(method, `/v1/sessions/a/${path}`, { headers })
        t.equal(again.status, status, `${method} ${path}, If-None-Match: ${given}`)
        if (status !== 304) continue
        t.equal(again.body.length, 0)
        for (const name of [
          'etag',
          'cache-control',
          'vary',
          'link',
          'history-epoch',
          'history-from',
          'history-to',
          'history-more',
          'history-head',
        ]) {
          t.equal(again.headers[name], first.headers[name], name)
        }
      }
    }
  }
  // What was appended changes the page whose end was not given.
  const before = await service.exchange('GET', '/v1/sessions/a/history')
  await service.append('a', ['note'])
  const headers = { 'if-none-match': before.headers.etag }
  t.equal((await service.exchange('GET', '/v1/sessions/a/history', { headers })).status, 200)
})

t.test('a child is read through its direct parent, with the same answers', async (t) => {
  const service = await startService(t)
  const put = (id: string, fields: object) =>
    service.exchange('PUT', `/v1/sessions/${id}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    })
  t.equal((await put('child', { origin: 'subagent', parentSession: 'parent' })).status, 201)
  t.equal((await put('fork', { parentSession: 'parent' })).status, 201)
  t.equal((await put('plain', {})).status, 201)
  for (const id of ['child', 'fork', 'plain']) await service.append(id, conversation(2))
  for (const path of ['history', 'events', 'messages', 'history?maxMessages=1', 'events?fromSeq=3&toSeq=9']) {
    const plain = await service.exchange('GET', `/v1/sessions/plain/${path}`)
    const child = await service.exchange('GET', `/v1/sessions/parent/subagents/child/${path}`)
    t.equal(child.status, 200)
    // The bytes differ in the times that the server gave.
    t.equal(text(child).replace(/\d{13}/g, 'T'), text(plain).replace(/\d{13}/g, 'T'), path)
    for (const name of ['history-from', 'history-to', 'history-more', 'vary', 'content-type']) {
      t.equal(child.headers[name], plain.headers[name])
    }
    t.equal((await service.exchange('HEAD', `/v1/sessions/parent/subagents/child/${path}`)).status, 200)
    t.match((await service.exchange('GET', `/v1/sessions/child/${path}`)).json(), { code: 'session/not-found' })
    for (const wrong of [
      'other/subagents/child',
      'parent/subagents/fork',
      'parent/subagents/plain',
      'parent/subagents/none',
    ]) {
      const answer = await service.exchange('GET', `/v1/sessions/${wrong}/${path}`)
      t.match(answer.json(), { code: 'subagent/not-found', status: 404 }, `${wrong}/${path}`)
    }
    t.equal((await service.exchange('GET', `/v1/sessions/fork/${path}`)).status, 200)
  }
  for (const [path, ids] of [
    ['/v1/sessions/parent/subagents', ['child']],
    ['/v1/sessions/unknown/subagents', []],
    ['/v1/sessions?parent=parent', ['fork', 'child']],
  ] as const) {
    const { sessions } = (await (await service.request(path)).json()) as { sessions: { id: string }[] }
    t.same(
      sessions.map(({ id }) => id),
      ids,
      path,
    )
  }
  // A host does the rest by the child's own id.
  t.equal((await service.exchange('GET', '/v1/sessions/child')).status, 200)
  t.equal((await service.exchange('GET', '/v1/sessions/child/export')).status, 200)
  t.equal((await service.exchange('DELETE', '/v1/sessions/child')).status, 204)
})
