import { Buffer } from 'node:buffer'
import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import t from 'tap'
import type { SessionHistoryRecord } from '../../codec/index.ts'
import type { ExportedLog, HistoryClientOptions, HistoryPage } from '../../src/client/index.ts'
import { AnswerError, HistoryClient, NetworkError, ServiceError } from '../../src/client/index.ts'
import { reset } from '../support/fault-proxy.ts'
import { until } from '../support/service.ts'
import type { Script } from './scripted-server.ts'
import { eventLine, eventLines, pageHeaders, problem, scriptedServer, written } from './scripted-server.ts'

async function served(t: Test, script: Script, options: Partial<HistoryClientOptions> = {}) {
  const { url, exchanges } = await scriptedServer(t, script)
  const client = new HistoryClient({ baseUrl: url, retry: { firstDelay: 1 }, ...options })
  t.teardown(() => client.close())
  return { url, client, exchanges, session: client.session('s') }
}

async function read(page: HistoryPage): Promise<SessionHistoryRecord[]> {
  const records: SessionHistoryRecord[] = []
  for await (const record of page.records) records.push(record)
  return records
}

async function readLog(log: ExportedLog): Promise<string[]> {
  const lines: string[] = []
  for await (const some of log.lines()) lines.push(...some)
  return lines
}

/** Reads a page that fails: the seqs that were handed on before, and the error's code. */
async function readFailing(page: HistoryPage): Promise<{ seqs: number[]; code: string; error: Error }> {
  const seqs: number[] = []
  try {
    for await (const { event } of page.records) seqs.push(event.seq)
  } catch (error) {
    return { seqs, code: (error as { code: string }).code, error: error as Error }
  }
  throw new Error('the page was taken for whole')
}

function answers(headers: Record<string, string>, body: string | Uint8Array): Script {
  return (_exchange, response) => response.writeHead(200, headers).end(body)
}

t.test('a page in pieces of one byte, characters of two to four bytes among them', async (t) => {
  // D1: characters must not break where the network cuts.
  const texts = ['Привет', '漢字', '🦉🦉', 'a\u2028b\u0085c', '\ufeff', 'é\u0000']
  const body = texts.map((text, seq) => `${eventLine(seq + 4, text)}\n`).join('')
  const { session } = await served(t, async (_exchange, response) => {
    response.writeHead(200, pageHeaders({ from: 4, to: 10, head: 9 }))
    for (const byte of Buffer.from(body)) response.write(Uint8Array.of(byte))
    response.end()
  })
  const page = await session.page()
  t.match(page, { epoch: 'e1', from: 4, to: 10, head: 9, hasMore: true })
  t.strictSame(
    (await read(page)).map(({ event }) => event.data),
    texts,
  )
})

t.test('blank lines, CRLF and a missing last newline are read; texts come as they were', async (t) => {
  // D8
  const number = '{"type":"event","event":{"type":"n","seq":0,"time":1,"data":1.0}}'
  const body = `\n${number}\r\n \n${eventLine(1)}`
  const { session } = await served(t, answers(pageHeaders({ from: 0, to: 2 }), body))
  const texts: string[] = []
  for await (const lines of (await session.page()).lines()) texts.push(...lines.map(({ text }) => text))
  t.strictSame(texts, [number, eventLine(1)])
})

t.test('a query asks for what was asked', async (t) => {
  const { client, url, session, exchanges } = await served(t, answers(pageHeaders({ from: 9, to: 9 }), ''))
  await read(await session.page({ beforeSeq: 9, throughSeq: 20, maxMessages: 3, chunks: 'omit', epoch: 'e1' }))
  await read(await session.range({ fromSeq: 9, toSeq: 9, chunks: 'expanded' }))
  await read(await client.subagent('p:1', 'c@2').page())
  const prefixed = new HistoryClient({ baseUrl: `${url}/deep/er/`, token: () => 'secret' })
  await read(await prefixed.session('s').page())
  await prefixed.close()
  t.strictSame(
    exchanges.map(({ url }) => decodeURIComponent(`${url.pathname}${url.search}`)),
    [
      '/v1/sessions/s/history?beforeSeq=9&throughSeq=20&maxMessages=3&chunks=omit&epoch=e1',
      '/v1/sessions/s/events?fromSeq=9&toSeq=9&chunks=expanded',
      '/v1/sessions/p:1/subagents/c@2/history',
      '/deep/er/v1/sessions/s/history',
    ],
  )
  t.match(exchanges[0]?.headers, { accept: 'application/x-ndjson', 'accept-encoding': 'identity' })
  t.equal(exchanges[0]?.headers.authorization, undefined)
  t.equal(exchanges[3]?.headers.authorization, 'Bearer secret')
})

t.test('a body that ends early, cleanly and at a line edge, is not whole', async (t) => {
  // D6: nothing in NDJSON tells a cut body from a short one.
  const { session } = await served(t, answers(pageHeaders({ from: 0, to: 9 }), eventLines(0, 4)))
  t.match(await readFailing(await session.page()), {
    seqs: [0, 1, 2, 3],
    code: 'answer/incomplete',
    error: AnswerError,
  })
  const empty = await served(t, answers(pageHeaders({ from: 0, to: 9 }), ''))
  t.match(await readFailing(await empty.session.page()), { seqs: [], code: 'answer/incomplete' })
})

t.test('a body that ends inside a line hands on the lines before it, then fails', async (t) => {
  const body = eventLines(0, 4).slice(0, -20)
  const { session } = await served(t, answers(pageHeaders({ from: 0, to: 4 }), body))
  t.match(await readFailing(await session.page()), { seqs: [0, 1, 2], code: 'answer/malformed' })
})

t.test('a connection that breaks inside a body', async (t) => {
  // D7
  const { session, exchanges } = await served(t, async (_exchange, response) => {
    response.writeHead(200, pageHeaders({ from: 0, to: 9 }))
    await written(response, eventLines(0, 4))
    reset(response.socket)
  })
  t.match(await readFailing(await session.page()), { code: 'network/lost', error: NetworkError })
  t.equal(exchanges.length, 1, 'a body that has begun is never glued to another')
})

t.test('a body that stops in the middle fails at its deadline', async (t) => {
  // G2
  const { session } = await served(
    t,
    (_exchange, response) => response.writeHead(200, pageHeaders({ from: 0, to: 9 })).write(`${eventLine(0)}\n{"ty`),
    { timeouts: { body: 200 } },
  )
  t.match(await readFailing(await session.page()), { seqs: [0], code: 'network/timeout' })
})

t.test('lines in the wrong place or of the wrong shape end the page', async (t) => {
  const cases: [string, string, number[]][] = [
    ['a gap', eventLines(0, 2) + eventLines(3, 5), [0, 1]],
    ['a repetition', eventLines(0, 2) + eventLines(1, 4), [0, 1]],
    ['a later start', eventLines(1, 4), []],
    ['too much', eventLines(0, 5), [0, 1, 2, 3]],
    ['an unknown record', `${eventLines(0, 1)}{"type":"more","event":{}}\n`, [0]],
    ['a control line', `${eventLines(0, 4)}{"type":"end","reason":"draining"}\n`, [0, 1, 2, 3]],
    ['no JSON', `${eventLines(0, 2)}nothing\n${eventLines(2, 4)}`, [0, 1]],
    ['a mark inside', `${eventLines(0, 2)}\ufeff${eventLines(2, 4)}`, [0, 1]],
  ]
  for (const [name, body, seqs] of cases) {
    const { session } = await served(t, answers(pageHeaders({ from: 0, to: 4 }), body))
    t.match(await readFailing(await session.page()), { seqs, code: 'answer/malformed', error: AnswerError }, name)
  }
  const notUtf8 = Buffer.concat([Buffer.from(eventLines(0, 3)), Buffer.from('"\xff"\n', 'latin1')])
  const { session } = await served(t, answers(pageHeaders({ from: 0, to: 4 }), notUtf8))
  t.match(await readFailing(await session.page()), { seqs: [0, 1, 2], code: 'answer/malformed' }, 'no UTF-8')
})

t.test('a line over the limit is refused without keeping it', async (t) => {
  // D5
  const { session } = await served(
    t,
    (_exchange, response) => {
      response.writeHead(200, pageHeaders({ from: 0, to: 4 }))
      response.write(eventLines(0, 1))
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      }
      response.on('drain', more)
      more()
    },
    { lineBytes: 50_000 },
  )
  const { code, error } = await readFailing(await session.page())
  t.equal(code, 'answer/malformed')
  t.match(error.message, /line 2 takes more than 51024 bytes/)
})

t.test('headers that contradict themselves or the question are refused', async (t) => {
  const good = pageHeaders({ from: 2, to: 4, head: 3 })
  const cases: [string, Record<string, string | undefined>][] = [
    ['no epoch', { ...good, 'history-epoch': undefined }],
    ['no start', { ...good, 'history-from': undefined }],
    ['no end', { ...good, 'history-to': undefined }],
    ['nothing about more', { ...good, 'history-more': undefined }],
    ['more before the beginning', { ...good, 'history-from': '0' }],
    ['nothing more before the middle', { ...good, 'history-more': 'false' }],
    ['an end before the start', { ...good, 'history-to': '1' }],
    ['another head', { ...good, 'history-head': '4' }],
    ['no number', { ...good, 'history-to': '4.0' }],
    ['no safe number', { ...good, 'history-to': '9007199254740993' }],
    ['a negative start', { ...good, 'history-from': '-1' }],
  ]
  for (const [name, headers] of cases) {
    const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
    const { session } = await served(t, answers(given as Record<string, string>, eventLines(2, 4)))
    await t.rejects(session.page(), { code: 'answer/malformed' }, name)
  }
  const { session } = await served(t, answers(good, eventLines(2, 4)))
  const questions = [{ beforeSeq: 3 }, { throughSeq: 4 }, { beforeSeq: 9, throughSeq: 2 }, { epoch: 'e2' }]
  for (const asked of questions) {
    await t.rejects(session.page(asked), { code: 'answer/malformed' }, JSON.stringify(asked))
  }
  for (const asked of [{}, { fromSeq: 1 }, { fromSeq: 2, toSeq: 5 }]) {
    await t.rejects(session.range(asked), { code: 'answer/malformed' }, JSON.stringify(asked))
  }
  t.equal((await read(await session.page({ throughSeq: 3, epoch: 'e1' }))).length, 2)
  t.equal((await read(await session.range({ fromSeq: 2, toSeq: 4 }))).length, 2)
})

t.test('a content coding that was not asked for is refused', async (t) => {
  const headers = { ...pageHeaders({ from: 0, to: 4 }), 'content-encoding': 'gzip' }
  const { session } = await served(t, answers(headers, gzipSync(eventLines(0, 4))))
  await t.rejects(session.page(), { code: 'answer/malformed' })
})

t.test('errors of the service are thrown with their facts', async (t) => {
  const { session, exchanges } = await served(t, (_exchange, response) =>
    problem(response, 409, 'session/replaced', { epoch: 'e2', head: 4 }),
  )
  await t.rejects(session.page({ epoch: 'e1' }), {
    code: 'session/replaced',
    status: 409,
    message: 'about session/replaced',
    facts: { epoch: 'e2', head: 4 },
  })
  t.equal(exchanges.length, 1)
})

t.test('half an error is no error of the service: it does not say which', async (t) => {
  const body = '{"type":"urn:x","title":"T.","status":409,"detail":"d","code":"session/replaced"}'
  for (const [sent, code] of [
    [body.slice(0, 40), 'network/lost'],
    [body, 'session/replaced'],
  ] as const) {
    const { session } = await served(
      t,
      async (_exchange, response) => {
        response.writeHead(409, { 'content-type': 'application/problem+json', 'content-length': `${body.length + 1}` })
        await written(response, sent)
        reset(response.socket)
      },
      { retry: { tries: 1 } },
    )
    await t.rejects(session.page(), { code })
  }
  const stalled = await served(t, (_exchange, response) => response.writeHead(409).write('{'), {
    retry: { tries: 1 },
    timeouts: { body: 100 },
  })
  await t.rejects(stalled.session.page(), { name: 'NetworkError' }, 'nor is one that stops')
})

t.test('nothing listens to a signal once the answer is read, left, refused or failed', async (t) => {
  const { signal } = new AbortController()
  const answering: Script[] = [
    answers(pageHeaders({ from: 0, to: 2 }), eventLines(0, 2)),
    answers(pageHeaders({ from: 0, to: 2 }), eventLines(0, 1)),
    answers({}, ''),
    (_exchange, response) => problem(response, 404, 'session/not-found'),
    (_exchange, response) => reset(response.socket),
  ]
  for (const script of answering) {
    const { session } = await served(t, script, { retry: { tries: 2, firstDelay: 1 }, token: async () => 't' })
    for (const use of [read, (page: HistoryPage) => page.cancel()]) {
      try {
        await use(await session.page({ signal }))
      } catch {
        // That it is told is not the matter here.
      }
    }
    await until(() => getEventListeners(signal, 'abort').length === 0)
  }
  t.pass()
})

t.test('a redirect is not followed: the token is for this service', async (t) => {
  const { session } = await served(t, (_exchange, response) =>
    response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
  )
  await t.rejects(session.page(), { code: 'http/302' })
})

t.test('nobody listens', async (t) => {
  const client = new HistoryClient({ baseUrl: 'http://127.0.0.1:9', retry: { tries: 2, firstDelay: 1 } })
  await t.rejects(client.session('s').page(), { name: 'NetworkError', code: 'network/unreachable' })
  await client.close()
})

t.test('no answer comes', async (t) => {
  const { session } = await served(t, () => {}, { timeouts: { headers: 200 }, retry: { tries: 1 } })
  await t.rejects(session.page(), { code: 'network/timeout' })
})

t.test('a base that is no URL of a service is refused at once', async (t) => {
  for (const baseUrl of ['nowhere', 'ftp://host', 'http://host?x=1', 'http://host#x']) {
    t.throws(() => new HistoryClient({ baseUrl }), TypeError, baseUrl)
  }
})

t.test('everything ends when it is aborted, with the reason of whoever aborted it', async (t) => {
  const reason = new Error('enough')
  const stop = new AbortController()
  const { session } = await served(t, (_exchange, response) => {
    response.writeHead(200, pageHeaders({ from: 0, to: 9 })).write(eventLines(0, 1))
  })
  const page = await session.page({ signal: stop.signal })
  const seen: number[] = []
  await t.rejects(async () => {
    for await (const { event } of page.records) {
      seen.push(event.seq)
      stop.abort(reason)
    }
  }, reason)
  t.strictSame(seen, [0])
  await t.rejects(session.page({ signal: stop.signal }), reason, 'before it began')
})

t.test('a reader may leave in the middle', async (t) => {
  const { session } = await served(t, answers(pageHeaders({ from: 0, to: 5000 }), eventLines(0, 5000)))
  for await (const { event } of (await session.page()).records) {
    t.equal(event.seq, 0)
    break
  }
  const unread = await session.page()
  unread.cancel()
  t.equal((await read(await session.page())).length, 5000, 'and come again')
})

t.test('leaving in the middle lets go of the connection, and a reader whose page is wrong does too', async (t) => {
  let open = 0
  const { session } = await served(t, async ({ url }, response) => {
    open++
    response.once('close', () => open--)
    response.writeHead(200, pageHeaders({ from: 0, to: 50 }))
    // It does not end by itself.
    await written(response, url.searchParams.has('maxMessages') ? eventLines(7, 9) : eventLines(0, 4))
  })
  const ways: [string, () => Promise<AsyncIterable<unknown>>][] = [
    ['records', async () => (await session.page()).records],
    ['lines', async () => (await session.page()).lines()],
    ['events', async () => session.events()],
    ['a wrong page', async () => (await session.page({ maxMessages: 5 })).records],
  ]
  for (const [way, ask] of ways) {
    const reading = (async () => {
      for await (const _ of await ask()) break
    })()
    if (way === 'a wrong page') await t.rejects(reading, { code: 'answer/malformed' })
    else await reading
    await until(() => open === 0)
    t.pass(way)
  }
})

t.test('pages up to a seq are walked to the beginning', async (t) => {
  const { session, exchanges } = await served(t, ({ url }, response) => {
    const to = Number(url.searchParams.get('beforeSeq') ?? Number(url.searchParams.get('throughSeq')) + 1)
    const from = Math.max(0, to - 4)
    response.writeHead(200, pageHeaders({ from, to })).end(eventLines(from, to))
  })
  const seqs: number[] = []
  for await (const page of session.pages({ throughSeq: 9 })) {
    seqs.unshift(...(await read(page)).map(({ event }) => event.seq))
  }
  t.strictSame(
    seqs,
    Array.from({ length: 10 }, (_, seq) => seq),
  )
  t.strictSame(
    exchanges.map(({ url }) => [url.searchParams.get('beforeSeq'), url.searchParams.get('throughSeq')]),
    [
      [null, '9'],
      ['6', null],
      ['2', null],
    ],
    'the ones behind the first are those of every walk',
  )
})

t.test('a slow reader slows the body down', async (t) => {
  // G9: the body is pulled, not gathered.
  const count = 2000
  let sent = 0
  const { session } = await served(t, (_exchange, response) => {
    response.writeHead(200, pageHeaders({ from: 0, to: count }))
    const more = () => {
      while (sent < count) if (!response.write(`${eventLine(sent++, 'x'.repeat(32_000))}\n`)) return
      response.end()
    }
    response.on('drain', more)
    more()
  })
  let seen = 0
  for await (const _ of (await session.page()).records) {
    if (seen++ > 0) continue
    // Until nothing moves any more: then everything between the two is full.
    for (let before = -1; before !== sent; ) {
      before = sent
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    t.ok(sent < count, `${sent} of ${count} lines were taken for one that was read`)
  }
  t.equal(seen, count)
})

// Appending

const LINES = '{"type":"note","data":1}\n{"type":"note","data":2}\n'
const appended = (response: ServerResponse, facts: object = {}) =>
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ head: 8, appended: 2, duplicates: 0, epoch: 'e1', ...facts }))

t.test('an append that can be repeated is sent again, byte for byte', async (t) => {
  // G3: the answer may be lost after the events were stored.
  const failures: ((response: ServerResponse) => unknown)[] = [
    (response) => problem(response, 503, 'server/busy', {}, { 'retry-after': '0' }),
    (response) => reset(response.socket),
    (response) => response.writeHead(429).end(),
    (response) => response.writeHead(200).end('{"head":8,'),
  ]
  const batches = [
    { lines: LINES, events: 2, numbered: false, expectedSeq: 7 },
    { lines: LINES, events: 2, numbered: true },
  ]
  for (const batch of batches) {
    const { session, exchanges } = await served(t, (_exchange, response, count) => {
      const fail = failures.slice(0, 3)[count - 1]
      return fail ? fail(response) : appended(response, { appended: 0, duplicates: 2 })
    })
    t.strictSame(await session.append(batch, { epoch: 'e1' }), { head: 8, appended: 0, duplicates: 2, epoch: 'e1' })
    t.equal(exchanges.length, 4)
    for (const { method, url, headers, body } of exchanges) {
      t.equal(method, 'POST')
      t.equal(url.searchParams.get('expectedSeq'), batch.expectedSeq === undefined ? null : '7')
      t.equal(url.searchParams.get('epoch'), 'e1')
      t.equal(headers['content-type'], 'application/x-ndjson')
      t.equal(body, LINES)
    }
  }
  const { session, exchanges } = await served(t, (_exchange, response) => failures[3]?.(response))
  await t.rejects(
    session.append(batches[0]!),
    { code: 'answer/malformed' },
    'an answer that cannot be read is no reason',
  )
  t.equal(exchanges.length, 1)
})

t.test('an append that the service refuses is not repeated', async (t) => {
  const { session, exchanges } = await served(t, (_exchange, response) =>
    problem(response, 409, 'append/gap', { expectedSeq: 3 }),
  )
  const failed = session.append({ lines: LINES, events: 2, numbered: true })
  await t.rejects(failed, { name: 'ServiceError', code: 'append/gap', facts: { expectedSeq: 3 } })
  t.equal(exchanges.length, 1)
})

t.test('an acknowledgement that does not count what was sent is not believed', async (t) => {
  for (const facts of [
    { appended: 1 },
    { duplicates: 1 },
    { head: -2 },
    { head: '8' },
    { epoch: 1 },
    { appended: null },
  ]) {
    const { session } = await served(t, (_exchange, response) => appended(response, facts))
    const result = session.append({ lines: LINES, events: 2, numbered: true })
    await t.rejects(result, { code: 'answer/malformed' }, JSON.stringify(facts))
  }
})

// Session logs

const HEADER = '{"type":"session","version":0,"id":"s","createdAt":1}'
const logHeaders = (head: number) => ({ 'history-epoch': 'e1', 'history-head': `${head}`, 'history-to': `${head + 1}` })
const storedEvent = (seq: number) => `{"type":"note","seq":${seq},"time":1,"data":1e400}`
const ROW =
  '{"type":"text-chunks","seq0":1,"time0":5,"data":{"turn":1,"step":1,"index":0,"dt":[0,1],"texts":["a","b","c"]}}'

t.test('an exported log is whole when it covers all that was announced', async (t) => {
  const whole = [HEADER, storedEvent(0), ROW, storedEvent(4)]
  const { session } = await served(t, answers(logHeaders(4), `${whole.join('\n')}\n`))
  const log = await session.export({ layout: 'packed' })
  t.match(log, { epoch: 'e1', head: 4 })
  t.strictSame(await readLog(log), whole, 'as they came')

  const cases: [string, string[], string][] = [
    ['cut at a line edge', whole.slice(0, 3), 'answer/incomplete'],
    ['no line', [], 'answer/incomplete'],
    ['a header alone', [HEADER], 'answer/incomplete'],
    ['cut inside a line', [...whole.slice(0, 3), storedEvent(4).slice(0, 9)], 'answer/malformed'],
    ['a hole', [HEADER, storedEvent(0), storedEvent(4)], 'answer/malformed'],
    ['more than announced', [...whole, storedEvent(5)], 'answer/malformed'],
    ['no header', whole.slice(1), 'answer/malformed'],
    ['two headers', [HEADER, ...whole], 'answer/malformed'],
    ['another session', [HEADER.replace('"s"', '"z"'), ...whole.slice(1)], 'answer/malformed'],
    ['a record', [HEADER, eventLine(0)], 'answer/malformed'],
  ]
  for (const [name, lines, code] of cases) {
    const { session } = await served(t, answers(logHeaders(4), lines.join('\n')))
    const log = await session.export()
    await t.rejects(readLog(log), { code }, name)
  }
  const lying = await served(t, answers({ ...logHeaders(4), 'history-to': '4' }, ''))
  await t.rejects(lying.session.export(), { code: 'answer/malformed' }, 'headers that contradict each other')
})

t.test('an import is streamed once, and fails with the error of its own body', async (t) => {
  const { client, exchanges } = await served(t, (_exchange, response) =>
    response.end('{"id":"s","epoch":"e1","head":4}'),
  )
  async function* body() {
    yield Buffer.from('one\n')
    yield Buffer.from('two\n')
  }
  const result = await client.sessions.import(body(), { zstd: true, expectedHead: 4 })
  t.strictSame(result, { id: 's', epoch: 'e1', head: 4 })
  t.match(exchanges[0], { body: 'one\ntwo\n', headers: { 'content-type': 'application/zstd' } })
  t.equal(exchanges[0]?.url.search, '?expectedHead=4')
  await t.rejects(client.sessions.import(body(), { expectedHead: 5 }), { code: 'answer/malformed' })

  const broken = new Error('the disk is gone')
  async function* failing() {
    yield Buffer.from('one\n')
    throw broken
  }
  await t.rejects(client.sessions.import(failing()), broken)

  const refusing = await served(t, (_exchange, response) => response.writeHead(503).end())
  await t.rejects(refusing.client.sessions.import(body()), ServiceError)
  t.equal(refusing.exchanges.length, 1)
})
