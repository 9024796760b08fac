// The client against the real service: everything it offers, and following over restarts.

import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import type { SessionEvent } from '../../codec/index.ts'
import { expandRecord } from '../../codec/index.ts'
import type { Journal } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { DEFAULT_CONFIG, startServer } from '../../src/server/index.ts'
import { faultProxy } from '../support/fault-proxy.ts'
import { assertGapless, eventsOf } from '../support/logs.ts'
import { startService, until } from '../support/service.ts'
import { Watch } from './watching.ts'

const QUICK = { firstDelay: 1, longestDelay: 20, silence: 5000 }

function clientOf(t: Test, baseUrl: string): HistoryClient {
  const client = new HistoryClient({ baseUrl, reconnect: QUICK, retry: { firstDelay: 1 } })
  t.teardown(() => client.close())
  return client
}

const message = (content: string) => ({
  type: 'user/message',
  data: { role: 'user', content },
  surfaceOp: 'append' as const,
})
const token = (text: string) => ({
  type: 'assistant/chunk',
  data: { turn: 0, step: 0, chunk: { type: 'text-delta', index: 0, text } },
})

async function allEvents(events: AsyncIterable<SessionEvent>): Promise<SessionEvent[]> {
  const all: SessionEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

/** The window's own single events, for a window whose place in the log is looked at in the end. */
function ownEvents(journal: Journal): SessionEvent[] {
  const events: SessionEvent[] = []
  for (const record of journal.entries)
    if (record.type !== 'omitted') for (const event of expandRecord(record)) events[event.seq] = event
  return events
}

t.test('sessions are made, found, described and deleted', async (t) => {
  const { url } = await startService(t)
  const { sessions } = clientOf(t, url)
  const made = await sessions.create('a', { cwd: '/work', agentPreset: { model: 'm' }, other: 1 })
  t.match(made, { id: 'a', head: -1, messages: 0, header: { cwd: '/work', other: 1 } })
  t.strictSame(await sessions.create('a', { cwd: '/work' }), made, 'again')
  await t.rejects(sessions.create('a', { cwd: '/else' }), { code: 'session/exists' })
  for (const id of ['b', 'c']) await sessions.create(id, { parentSession: 'a' })
  await sessions.create('child', { parentSession: 'a', origin: 'subagent' })
  t.strictSame((await sessions.get('a')).epoch, made.epoch)
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const part = await sessions.list({ limit: 2, cursor })
    ids.push(...part.sessions.map(({ id }) => id))
    cursor = part.nextCursor
  } while (cursor !== undefined)
  t.strictSame(ids.toSorted(), ['a', 'b', 'c', 'child'])
  t.strictSame(
    (await sessions.listSubagents('a')).sessions.map(({ id }) => id),
    ['child'],
  )
  await sessions.delete('b')
  await t.rejects(sessions.get('b'), { code: 'session/not-found' })
  await t.rejects(sessions.delete('b'), { code: 'session/not-found' })
})

t.test('what was appended comes back: pages walked, ranges, single events, the log', async (t) => {
  // A8
  const { url } = await startService(t)
  const client = clientOf(t, url)
  await client.sessions.create('s')
  const session = client.session('s')
  for (let n = 0; n < 12; n++) await session.append([message(`m${n}`), ...['a', 'b', 'c', 'd'].map(token)])
  const whole = await allEvents(session.events())
  t.equal(whole.length, 60)
  t.strictSame(await allEvents(session.events({ fromSeq: 13, toSeq: 21 })), whole.slice(13, 21))
  const records = []
  let pages = 0
  for await (const page of session.pages({ maxMessages: 2, chunks: 'packed' })) {
    const some = []
    for await (const record of page.records) some.push(record)
    records.unshift(...some)
    pages++
  }
  t.equal(pages, 6)
  t.equal(assertGapless(records, 0), 60)
  t.strictSame(await eventsOf(records), whole)
  t.equal((await session.describe()).messages, 12)
  const log = await session.export()
  let lines = 0
  for await (const some of log.lines()) lines += some.length
  t.ok(lines > 12)
})

t.test('a journal is level with a session that is written to, whatever the network does', async (t) => {
  // B4, B6: nothing falls between what was there and what comes.
  const service = await startService(t)
  const proxy = await faultProxy(t, service.url)
  const writer = clientOf(t, service.url).session('s')
  await clientOf(t, service.url).sessions.create('s')
  for (let n = 0; n < 20; n++)
    await writer.append([message(`m${n}`), ...Array.from({ length: 30 }, (_, at) => token(`${at} `))])
  proxy.plan(
    (n) =>
      [undefined, { after: 3000, how: 'reset' as const }, { piece: 900 }, { after: 9000, how: 'close' as const }][
        n % 4
      ],
  )
  const journal = clientOf(t, proxy.url).session('s').journal({ maxMessages: 3 })
  const known: SessionEvent[] = await allEvents(writer.events())
  const watched = new Watch(journal, { log: () => ownEvents(journal) })
  for (let n = 0; n < 40; n++) {
    const { head } = await writer.append([
      ...Array.from({ length: 20 }, (_, at) => token(`${n}.${at} `)),
      message(`n${n}`),
    ])
    for await (const event of writer.events({ fromSeq: known.length, toSeq: head + 1 })) known.push(event)
    if (n % 10 === 5) proxy.now('reset')
    if (n === 20) await journal.loadOlder().catch(() => {})
  }
  await watched.until(() => journal.status === 'live' && journal.to === known.length)
  t.strictSame(await eventsOf(journal.entries), known.slice(journal.from))
  while (await journal.loadOlder().catch(() => true));
  t.equal(journal.from, 0)
  t.strictSame(await eventsOf(journal.entries), known)
  journal.close()
  await watched.done
})

t.test('a subagent is followed through its parent, and its deletion ends it', async (t) => {
  const { url } = await startService(t)
  const client = clientOf(t, url)
  await client.sessions.create('child', { parentSession: 'p', origin: 'subagent' })
  await client.session('child').append([message('hello')])
  const journal = client.subagent('p', 'child').journal()
  const watched = new Watch(journal, { log: () => ownEvents(journal) })
  await watched.until(() => journal.status === 'live')
  await client.session('child').append([message('again')])
  await watched.until(() => journal.to === 2)
  await client.sessions.delete('child')
  await watched.done
  t.equal(journal.status, 'ended')
  const lost = client.subagent('q', 'child').journal()
  for await (const _ of lost);
  t.match(lost, { status: 'failed', error: { code: 'subagent/not-found' } })
})

t.test('a session that is made again under its id resets the journal', async (t) => {
  // B13
  const { url } = await startService(t)
  const proxy = await faultProxy(t, url)
  const client = clientOf(t, url)
  await client.sessions.create('s')
  await client.session('s').append(Array.from({ length: 30 }, (_, n) => message(`old ${n}`)))
  const journal = clientOf(t, proxy.url).session('s').journal()
  const watched = new Watch(journal, { log: () => ownEvents(journal) })
  await watched.until(() => journal.status === 'live')
  // While it is not connected: a follower that is would be told of the deletion.
  proxy.plan(() => ({ after: 0, how: 'reset' }))
  proxy.now('reset')
  await watched.until(() => journal.status === 'reconnecting')
  await client.sessions.delete('s')
  await client.sessions.create('s')
  await client.session('s').append(Array.from({ length: 20 }, (_, n) => message(`new ${n}`)))
  proxy.plan(() => undefined)
  await watched.until(() => journal.status === 'live' && journal.to === 20)
  t.equal(watched.of('replace').at(-1)?.reason, 'reset')
})

t.test('a service that is stopped and started again is followed on', async (t) => {
  // B28, C3
  const data = t.testdir()
  const config = { ...DEFAULT_CONFIG, host: '127.0.0.1', port: 0, data, logLevel: 'silent' as const, graceMs: 200 }
  let server = await startServer(config)
  const port = Number(new URL(server.url).port)
  t.teardown(() => server.close())
  const client = clientOf(t, server.url)
  await client.sessions.create('s')
  const session = client.session('s')
  const seqs: number[] = []
  const statuses = new Set<string>()
  const stop = new AbortController()
  const following = (async () => {
    const log = session.follow({ afterSeq: -1, signal: stop.signal, onStatus: (status) => statuses.add(status) })
    for await (const { event } of log) seqs.push(event.seq)
  })()
  following.catch(() => {})
  await until(() => statuses.has('live'))
  await session.append([message('before')])
  await until(() => seqs.length === 1)
  await server.close()
  await delay(30)
  server = await startServer({ ...config, port })
  await session.append([message('after')])
  await until(() => seqs.length === 2)
  t.strictSame(seqs, [0, 1])
  t.ok(statuses.has('reconnecting'))
  stop.abort(new Error('enough'))
  await t.rejects(following, { message: 'enough' })
})
