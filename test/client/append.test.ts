import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import t from 'tap'
import type { AppendItem, HistoryClientOptions, SessionClient } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { reset } from '../support/fault-proxy.ts'
import { packedRange, textDelta, textDeltas, userMessage } from '../support/logs.ts'
import { until } from '../support/service.ts'
import type { Exchange, Script } from './scripted-server.ts'
import { problem, scriptedServer } from './scripted-server.ts'

async function served(t: Test, script: Script, options: Partial<HistoryClientOptions> = {}) {
  const { url, exchanges } = await scriptedServer(t, script)
  const client = new HistoryClient({ baseUrl: url, retry: { firstDelay: 1 }, ...options })
  t.teardown(() => client.close())
  return { session: client.session('s'), exchanges }
}

function json(response: ServerResponse, value: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}

/** A log of `head + 1` events in memory that answers as the service does, appends of unnumbered events only. */
function logOf(head: number, lose: (count: number) => boolean = () => false): Script {
  const lines: string[] = Array.from({ length: head + 1 }, () => '?')
  return ({ method, url, body }, response, count) => {
    if (method === 'GET') return json(response, { id: 's', epoch: 'e1', head: lines.length - 1 })
    const first = Number(url.searchParams.get('expectedSeq'))
    if (first > lines.length) return problem(response, 409, 'append/gap', { expectedSeq: lines.length })
    const sent = body.split('\n').slice(0, -1)
    if (sent.some((line, at) => (lines[first + at] ?? line) !== line)) return problem(response, 409, 'append/conflict')
    const duplicates = Math.max(0, Math.min(sent.length, lines.length - first))
    lines.push(...sent.slice(duplicates))
    // Stored, and the answer is lost.
    if (lose(count)) return reset(response.socket)
    return json(response, { head: lines.length - 1, appended: sent.length - duplicates, duplicates, epoch: 'e1' })
  }
}

const note = (data: number) => ({ type: 'note', data })
const asked = ({ method, url, body }: Exchange) => [
  method,
  url.searchParams.get('expectedSeq'),
  url.searchParams.get('epoch'),
  body.trim(),
]

t.test('events without seq are numbered after the head, and a lost answer doubles nothing', async (t) => {
  // G3, H14
  const { session, exchanges } = await served(
    t,
    logOf(6, (count) => count === 2 || count === 4),
  )
  t.strictSame(await session.append([note(1), note(2)]), { head: 8, appended: 0, duplicates: 2, epoch: 'e1' })
  t.strictSame(await session.append([note(3)]), { head: 9, appended: 0, duplicates: 1, epoch: 'e1' })
  const two = '{"type":"note","data":1}\n{"type":"note","data":2}'
  t.strictSame(exchanges.map(asked), [
    ['GET', null, null, ''],
    ['POST', '7', 'e1', two],
    ['POST', '7', 'e1', two],
    ['POST', '9', 'e1', '{"type":"note","data":3}'],
    ['POST', '9', 'e1', '{"type":"note","data":3}'],
  ])
})

t.test('appends that are called together keep their order', async (t) => {
  const { session, exchanges } = await served(t, logOf(-1))
  const results = await Promise.all([1, 2, 3, 4].map((data) => session.append([note(data)])))
  t.strictSame(
    results.map(({ head }) => head),
    [0, 1, 2, 3],
  )
  t.equal(exchanges.filter(({ method }) => method === 'GET').length, 1, 'the head is asked for once')
})

t.test('what waits behind an append that fails is not sent: all come again in their order', async (t) => {
  // They went on in the place of the one that had failed. When that came again nobody knew it any more: it was stored
  // twice where its answer had been lost, and behind them where its request had.
  for (const lost of ['answer', 'request'] as const) {
    const log = logOf(-1, (count) => lost === 'answer' && count === 3)
    const script: Script = (exchange, response, count) =>
      lost === 'request' && count === 3 ? reset(response.socket) : log(exchange, response, count)
    const { session, exchanges } = await served(t, script, { retry: { tries: 1 } })
    await session.append([note(0)])
    const codes: string[] = []
    const stubborn = (data: number) =>
      session.append([note(data)]).catch(({ code }) => {
        codes.push(code)
        return session.append([note(data)])
      })
    t.match(await Promise.all([1, 2, 3].map(stubborn)), [{ head: 1 }, { head: 2 }, { head: 3 }], lost)
    t.strictSame(codes, ['network/lost', 'append/behind', 'append/behind'])
    t.strictSame(
      exchanges.filter(({ method }) => method === 'POST').map((exchange) => asked(exchange).slice(1)),
      [0, 1, 1, 2, 3].map((data) => [`${data}`, 'e1', `{"type":"note","data":${data}}`]),
    )
  }
})

t.test('so it is behind one that is aborted on its way, and the error says why', async (t) => {
  const stop = new AbortController()
  const { session } = await served(t, logOf(-1))
  const reason = new Error('enough')
  const first = session.append([note(1)], { signal: stop.signal })
  const second = session.append([note(2)])
  // Both are heard: one that nobody waits for would end the process.
  const outcomes = Promise.allSettled([first, second])
  stop.abort(reason)
  t.match(await outcomes, [{ reason }, { reason: { name: 'AppendError', code: 'append/behind', cause: reason } }])
  t.match(await session.append([note(3)]), { appended: 1 })
})

t.test('after an outcome that is not known the same events are recognised', async (t) => {
  const { session } = await served(
    t,
    logOf(4, (count) => count === 2),
    { retry: { tries: 1 } },
  )
  await t.rejects(session.append([note(1)]), { code: 'network/lost' })
  t.match(await session.append([note(1)]), { head: 5, appended: 0, duplicates: 1 })
  t.match(await session.append([note(2)]), { head: 6, appended: 1 })
})

t.test('after an outcome that is not known other events come after those', async (t) => {
  // The writer is alone: what stands at its number is its own.
  const { session } = await served(
    t,
    logOf(4, (count) => count === 2),
    { retry: { tries: 1 } },
  )
  await t.rejects(session.append([note(1)]), { code: 'network/lost' })
  t.match(await session.append([note(2)]), { head: 6, appended: 1 })
  t.match(await session.append([note(3)]), { head: 7, appended: 1 })
})

t.test('an outcome that is not known stays so when the tries after it are refused', async (t) => {
  let posts = 0
  const log = logOf(-1, () => posts === 2)
  const script: Script = (exchange, response, count) => {
    // The second is stored and its answer lost; the service has no time for its repetition.
    if (exchange.method === 'POST' && ++posts === 3) return problem(response, 429, 'rate/limited')
    return log(exchange, response, count)
  }
  const { session } = await served(t, script, { retry: { firstDelay: 1, tries: 2 } })
  await session.append([note(1)])
  await t.rejects(session.append([note(2)]), { code: 'rate/limited' })
  t.match(await session.append([note(2)]), { head: 1, appended: 0, duplicates: 1 })
  t.match(await session.append([note(3)]), { head: 2, appended: 1 })
})

/** Two clients of one log, before which each request may be answered by `before`; the first one's options besides. */
async function twoWriters(
  t: Test,
  before: (exchange: Exchange, response: ServerResponse) => boolean = () => false,
  mine: Partial<HistoryClientOptions> = {},
) {
  const log = logOf(-1)
  const { url } = await scriptedServer(t, (exchange, response, count) => {
    if (!before(exchange, response)) return log(exchange, response, count)
  })
  return [mine, {}].map((options) => {
    const client = new HistoryClient({ baseUrl: url, retry: { firstDelay: 1 }, ...options })
    t.teardown(() => client.close())
    return client.session('s')
  }) as [SessionClient, SessionClient]
}

t.test('where another writer was faster it is a conflict, and the next append goes on after it', async (t) => {
  const [mine, other] = await twoWriters(t)
  await mine.append([note(1)])
  await other.append([note(9)])
  await t.rejects(mine.append([note(2)]), { code: 'append/conflict' })
  t.match(await mine.append([note(2)]), { head: 2, appended: 1 })
  await t.rejects(mine.append([note(5)], { expectedSeq: 9 }), { code: 'append/gap', facts: { expectedSeq: 3 } })
})

t.test('equal events of another writer are not taken for what was appended here', async (t) => {
  // Two writers appended the same tick two hundred times each, all were acknowledged, and half of them were stored.
  const [mine, other] = await twoWriters(t)
  await mine.append([note(1)])
  await other.append([note(2)])
  await t.rejects(mine.append([note(2)]), { code: 'append/conflict', status: 409, facts: { seq: 1, head: 1 } })
  t.match(await mine.append([note(2)]), { head: 2, appended: 1, duplicates: 0 })
})

t.test('a try that was refused is none that may have stored something', async (t) => {
  const refusals: [string, (response: ServerResponse) => void][] = [
    ['too many', (response) => problem(response, 429, 'rate/limited')],
    ['too slow', (response) => problem(response, 408, 'request/timeout')],
  ]
  for (const [name, refuse] of refusals) {
    let refuses = false
    const [mine, other] = await twoWriters(t, (_exchange, response) => {
      if (!refuses) return false
      refuses = false
      refuse(response)
      return true
    })
    await mine.append([note(1)])
    await other.append([note(2)])
    refuses = true
    await t.rejects(mine.append([note(2)]), { code: 'append/conflict', facts: { seq: 1, head: 1 } }, name)
    t.equal(refuses, false)
    t.match(await mine.append([note(2)]), { head: 2, appended: 1, duplicates: 0 })
  }
})

t.test('nor is one that a token provider failed before', async (t) => {
  let failures = 0
  const token = () => {
    if (failures-- > 0) throw new Error('the vault is closed')
    return 'open'
  }
  const [mine, other] = await twoWriters(t, undefined, { token })
  await mine.append([note(1)])
  await other.append([note(2)])
  failures = 2
  await t.rejects(mine.append([note(2)]), { code: 'append/conflict' })
})

t.test('appends that say where their events go move the end for those that do not', async (t) => {
  const [mine] = await twoWriters(t)
  await mine.append([note(1)])
  await mine.append([note(1)], { expectedSeq: 1 })
  t.match(await mine.append([note(1)]), { head: 2, appended: 1, duplicates: 0 })
  t.match(await mine.append([note(1)], { expectedSeq: 2 }), { head: 2, duplicates: 1 }, 'repeated on purpose')
})

t.test('what is no list of events is refused, and nothing is sent', async (t) => {
  const { session, exchanges } = await served(t, logOf(-1))
  const events = async function* () {
    yield note(1)
  }
  for (const wrong of [events(), note(1), 'abc', null, undefined, 5]) {
    await t.rejects(session.append(wrong as unknown as AppendItem[]), { name: 'TypeError', message: /takes an array/ })
  }
  t.equal(exchanges.length, 0)
})

t.test('another epoch than the one that was numbered for is asked about, and is the guard', async (t) => {
  const log = logOf(-1)
  const { session, exchanges } = await served(t, (exchange, response, count) => {
    if (exchange.url.searchParams.get('epoch') === 'other') return problem(response, 409, 'session/replaced')
    return log(exchange, response, count)
  })
  await session.append([note(1)])
  await t.rejects(session.append([note(2)], { epoch: 'other' }), { code: 'session/replaced' })
  t.strictSame(exchanges.slice(2).map(asked), [
    ['GET', null, null, ''],
    ['POST', '1', 'other', '{"type":"note","data":2}'],
  ])
  t.match(await session.append([note(2)]), { head: 1, appended: 1, epoch: 'e1' })
})

t.test('an append that gives up its turn lets nobody pass those before it', async (t) => {
  const log = logOf(-1)
  const held = Promise.withResolvers<void>()
  const { session, exchanges } = await served(t, async (exchange, response, count) => {
    if (count === 2) await held.promise
    return log(exchange, response, count)
  })
  const posts = () => exchanges.filter(({ method }) => method === 'POST')
  const first = session.append([note(1)])
  await until(() => posts().length === 1)
  const stop = new AbortController()
  const second = session.append([note(2)], { signal: stop.signal })
  stop.abort(new Error('not any more'))
  await t.rejects(second, { message: 'not any more' })
  const third = session.append([note(3)])
  // Time enough for it to be sent.
  await session.head()
  t.equal(posts().length, 1, 'not while the first has no answer')
  held.resolve()
  t.match(await Promise.all([first, third]), [{ head: 0 }, { head: 1 }])
  t.strictSame(
    posts().map(({ url }) => url.searchParams.get('expectedSeq')),
    ['0', '1'],
  )
})

t.test('an append that waits for its turn can be given up', async (t) => {
  const { session, exchanges } = await served(t, ({ method }, response) => {
    if (method === 'GET') json(response, { id: 's', epoch: 'e1', head: -1 })
  })
  const stop = new AbortController()
  const first = session.append([note(1)], { signal: stop.signal })
  const second = session.append([note(2)], { signal: AbortSignal.abort(new Error('not any more')) })
  await t.rejects(second, { message: 'not any more' })
  stop.abort(new Error('enough'))
  await t.rejects(first, { message: 'enough' })
  t.ok(exchanges.length <= 2)
})

t.test('events with their seq go as they are; rows too', async (t) => {
  const { session, exchanges } = await served(t, (_exchange, response) =>
    json(response, { head: 9, appended: 7, duplicates: 0, epoch: 'e1' }),
  )
  const row = packedRange(textDeltas(0, 9), 4, 8)[0] as AppendItem
  const events = [userMessage(3), row, { type: 'event', event: userMessage(8) } as const, textDelta(9, 'é', -0)]
  await session.append(events)
  const { url, body } = exchanges[0]!
  t.equal(url.search, '')
  const sent = body.trim().split('\n')
  t.strictSame(
    sent.slice(0, 3).map((line) => JSON.parse(line)),
    [userMessage(3), row, userMessage(8)],
  )
  t.match(sent[3], /"index":-0/, 'as it was')
})

t.test('what cannot be sent as it is, is refused before anything is sent', async (t) => {
  const { session, exchanges } = await served(t, () => {})
  const cases: [unknown[], string, object][] = [
    [[note(1), note(Number.NaN)], 'event/invalid', { line: 2, path: '/data' }],
    [[{ type: 'note', data: { f: () => 1 } }], 'event/invalid', { line: 1, path: '/data/f' }],
    [[{ type: 'note', data: new Date(0) }], 'event/invalid', { line: 1, path: '/data' }],
    [[{ type: 'note' }], 'event/invalid', { line: 1, path: '/data' }],
    [[{ type: 'end', data: 1 }], 'event/invalid', { line: 1, path: '/type' }],
    [[null], 'event/invalid', { line: 1 }],
    [[userMessage(3), userMessage(5)], 'event/invalid', { line: 2, path: '/seq' }],
    [[userMessage(3), note(1)], 'event/invalid', { line: 2, path: '/seq' }],
    [[{ type: 'note', seq: 3, data: 1 }], 'event/invalid', { line: 1, path: '/time' }],
    [[{ type: 'chunks', event: { type: 'chunkrow/text-chunks' } }], 'record/malformed', { line: 1 }],
  ]
  for (const [events, code, facts] of cases) {
    await t.rejects(session.append(events as AppendItem[]), { name: 'InputError', code, facts }, JSON.stringify(events))
  }
  t.equal(exchanges.length, 0)
})

t.test('what JSON.stringify would change on the way arrives as it is', async (t) => {
  const { session, exchanges } = await served(t, logOf(-1))
  const data = JSON.parse('{"__proto__":1,"2":-0,"1":"\\ud800"}')
  await session.append(
    [{ type: 'note', time: 5, data: { ...data, z: -0 } }, textDelta(0, 'x')].map(({ type, data }) => ({ type, data })),
  )
  const lines = exchanges.at(-1)!.body.trim().split('\n')
  t.equal(lines[0], '{"type":"note","data":{"1":"\\ud800","2":-0,"__proto__":1,"z":-0}}')
  t.equal(
    lines[1],
    '{"type":"assistant/chunk","data":{"turn":0,"step":0,"chunk":{"type":"text-delta","index":0,"text":"x"}}}',
  )
})

t.test('a refused token is asked for once more, also for what may not be repeated otherwise', async (t) => {
  // C10
  let token = 0
  const { session, exchanges } = await served(
    t,
    ({ method, headers }, response) => {
      if (headers.authorization === 'Bearer t2') return problem(response, 401, 'auth/missing')
      return method === 'GET'
        ? json(response, { id: 's', epoch: 'e1', head: -1 })
        : json(response, { head: 0, appended: 1, duplicates: 0, epoch: 'e1' })
    },
    { token: async () => `t${++token}` },
  )
  await session.append([note(1)])
  t.strictSame(
    exchanges.map(({ headers }) => headers.authorization),
    ['Bearer t1', 'Bearer t2', 'Bearer t3'],
  )
})
