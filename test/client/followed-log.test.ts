import { getEventListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import { Agent, RetryAgent } from 'undici'
import type { FollowOptions, HistoryClientOptions } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { faultProxy } from '../support/fault-proxy.ts'
import { userMessage as message, textDeltas } from '../support/logs.ts'
import { until } from '../support/service.ts'
import type { ModelOptions } from './model-service.ts'
import { ModelService } from './model-service.ts'
import { activeResources } from './watching.ts'

const QUICK = { firstDelay: 1, longestDelay: 4, silence: 5000 }

async function modelled(t: Test, options: ModelOptions = {}, client: Partial<HistoryClientOptions> = {}) {
  const service = await ModelService.start(t, options)
  const history = new HistoryClient({ baseUrl: service.url, reconnect: QUICK, retry: { firstDelay: 1 }, ...client })
  t.teardown(() => history.close())
  return { service, client: history, session: history.session('s') }
}

/** Follows in the background: the seqs so far, the statuses, and how it ended. */
function following(client: HistoryClient, options: FollowOptions = {}) {
  const seqs: number[] = []
  const statuses: string[] = []
  const log = client.session('s').follow({ ...options, onStatus: (status) => statuses.push(status) })
  const done = (async () => {
    for await (const { event } of log) seqs.push(event.seq)
  })()
  done.catch(() => {})
  return { seqs, statuses, log, done }
}

const messages = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => message(from + at))
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at)

t.test('records from a cursor on, over as many connections as it takes', async (t) => {
  // B19, B21, B23: the cursor is sent, and what was missed comes first.
  const { service, client } = await modelled(t)
  service.append(...messages(0, 10))
  const { seqs, statuses, done, log } = following(client, { afterSeq: 4 })
  await until(() => seqs.length === 5 && statuses.includes('live'))
  for (const lose of [() => service.drop(), () => service.quit(), () => service.end('draining')]) {
    lose()
    service.events.push(...messages(service.events.length, service.events.length + 4000))
    await until(() => log.next === service.events.length)
  }
  service.append(message(12_010))
  await until(() => log.next === 12_011)
  service.delete()
  await done
  t.strictSame(seqs, range(5, 12_011))
  t.strictSame(
    service.of('follow').map(({ query }) => query),
    [
      { afterSeq: '4' },
      { afterSeq: '9', epoch: 'e1' },
      { afterSeq: '4009', epoch: 'e1' },
      { afterSeq: '8009', epoch: 'e1' },
    ],
  )
  t.strictSame([...new Set(statuses)], ['connecting', 'live', 'reconnecting', 'ended'])
})

t.test('without a cursor the newest page comes first; with both, only when more was missed', async (t) => {
  const { service, client } = await modelled(t)
  service.append(...messages(0, 100))
  const cases: [FollowOptions, number][] = [
    [{}, 50],
    [{ maxMessages: 3 }, 97],
    [{ afterSeq: -1, maxMessages: 3 }, 97],
    [{ afterSeq: 97, maxMessages: 3 }, 98],
    [{ afterSeq: -1 }, 0],
    [{ afterSeq: 99 }, 100],
  ]
  for (const [options, first] of cases) {
    const { seqs, log } = following(client, options)
    await until(() => log.next === 100)
    t.strictSame(seqs, range(first, 100), JSON.stringify(options))
  }
})

t.test('a reader who leaves goes on behind the last record that it was given', async (t) => {
  // `next` was behind all records that had arrived together, so whoever kept it as a place lost the rest of them.
  const { service, client } = await modelled(t)
  service.append(...messages(0, 30))
  const seqs: number[] = []
  for (let afterSeq = -1; seqs.length < 30; ) {
    const log = client.session('s').follow({ afterSeq })
    let left = 7
    for await (const { event } of log) {
      seqs.push(event.seq)
      t.equal(log.next, event.seq + 1)
      if (--left === 0 || seqs.length === 30) break
    }
    afterSeq = (log.next as number) - 1
  }
  t.strictSame(seqs, range(0, 30))
})

t.test('however much was missed, nothing is passed over', async (t) => {
  const { service, client } = await modelled(t)
  service.append(...messages(0, 10))
  const { seqs, log } = following(client, { maxMessages: 2 })
  await until(() => log.next === 10)
  service.drop()
  service.events.push(...messages(10, 60))
  await until(() => log.next === 60)
  t.strictSame(seqs, range(8, 60))
  t.strictSame(service.of('follow')[1]?.query, { afterSeq: '9', epoch: 'e1' })
  t.equal(service.of('events').length, 0, 'on the stream itself')
})

t.test('a gap is repaired, and what came twice is dropped', async (t) => {
  // B16
  const { service, client } = await modelled(t, {
    fault: ({ what }) =>
      what === 'follow'
        ? { lie: (lines) => [...lines.slice(0, 1), ...lines.slice(3), ...lines.slice(0, 1)] }
        : undefined,
  })
  const { seqs, log } = following(client, { afterSeq: -1 })
  await until(() => service.followers === 1)
  service.append(...messages(0, 6))
  await until(() => log.next === 6)
  t.strictSame(seqs, range(0, 6))
  t.strictSame(
    service.of('events').map(({ query }) => query),
    [{ fromSeq: '1', toSeq: '3', epoch: 'e1' }],
  )
})

t.test('a log that is another one, or shorter, is told, not passed over', async (t) => {
  // B12, B13, B24
  const replaced = await modelled(t)
  replaced.service.append(...messages(0, 5))
  const first = following(replaced.client, { afterSeq: -1 })
  await until(() => first.seqs.length === 5)
  replaced.service.epoch = 'e2'
  replaced.service.drop()
  await t.rejects(first.done, { name: 'ServiceError', code: 'session/replaced' })
  t.equal(replaced.service.asked.length, 2)

  const ahead = following(replaced.client, { afterSeq: 1000 })
  await t.rejects(ahead.done, { code: 'history/ahead' })
  const other = following(replaced.client, { afterSeq: 1, epoch: 'e0' })
  await t.rejects(other.done, { code: 'session/replaced' })
})

t.test('a session that is not there is an error, one that has gone is an end', async (t) => {
  const { service, client } = await modelled(t)
  service.isThere = false
  await t.rejects(following(client).done, { code: 'session/not-found' })
  service.isThere = true
  const { statuses, done } = following(client)
  await until(() => statuses.includes('live'))
  service.isThere = false
  service.drop()
  await done
  t.equal(statuses.at(-1), 'ended')
})

t.test('what cannot be believed is tried once more', async (t) => {
  const { service, client } = await modelled(t, {
    fault: ({ what }) => (what === 'follow' ? { lie: () => ['nothing'] } : undefined),
  })
  service.append(message(0))
  await t.rejects(following(client).done, { code: 'answer/malformed' })
  t.equal(service.asked.length, 2)
})

t.test('a line over the limit is an error, however it comes', async (t) => {
  // D5
  const { service, client } = await modelled(
    t,
    { fault: () => ({ lie: () => ['x'.repeat(20_000)] }) },
    { lineBytes: 1000 },
  )
  service.append(message(0))
  await t.rejects(following(client).done, { code: 'answer/malformed', message: /line 1 takes more than 2024 bytes/ })
})

t.test('in pieces of one byte', async (t) => {
  // D1
  const { service } = await modelled(t)
  const texts = ['Привет', '漢字', '🦉🦉', 'a\u2028b\u0085c', '\ufeff', '\ud83d']
  service.append(...texts.map((content, seq) => ({ ...message(seq), data: { content } })))
  const proxy = await faultProxy(t, service.url)
  proxy.plan(() => ({ piece: 1 }))
  const client = new HistoryClient({ baseUrl: proxy.url, reconnect: { ...QUICK, silence: 5000 } })
  t.teardown(() => client.close())
  const seen: unknown[] = []
  for await (const { event } of client.session('s').follow()) if (seen.push(event.data) === texts.length) break
  t.strictSame(
    seen,
    texts.map((content) => ({ content })),
  )
})

t.test('a dispatcher that repeats requests by itself never splices a line', async (t) => {
  // G6
  const { service } = await modelled(t)
  service.append(...messages(0, 40))
  const proxy = await faultProxy(t, service.url)
  proxy.plan((n) => (n < 8 ? { after: 700 + n * 137, how: 'reset' } : undefined))
  const dispatcher = new RetryAgent(new Agent(), { minTimeout: 1, maxTimeout: 2 })
  t.teardown(() => dispatcher.destroy())
  const client = new HistoryClient({ baseUrl: proxy.url, dispatcher, reconnect: QUICK })
  t.teardown(() => client.close())
  const { seqs, done } = following(client, { afterSeq: -1 })
  await until(() => seqs.length >= 40)
  await client.close()
  await t.rejects(done, { code: 'client/closed' })
  t.strictSame(seqs, range(0, 40))
})

t.test('a dead link is noticed, and nothing is lost', async (t) => {
  // C1
  const { service } = await modelled(t, { heartbeat: 10 })
  const proxy = await faultProxy(t, service.url)
  const client = new HistoryClient({ baseUrl: proxy.url, reconnect: { ...QUICK, silence: 60 } })
  t.teardown(() => client.close())
  const { seqs, statuses } = following(client)
  await until(() => statuses.includes('live'))
  proxy.now('silence')
  service.append(...messages(0, 20))
  await until(() => seqs.length === 20)
  t.strictSame(seqs, range(0, 20))
  t.ok(statuses.includes('reconnecting'))
})

t.test('many followers that lose their service come back one by one', async (t) => {
  // C8
  const { service } = await modelled(t)
  const client = new HistoryClient({
    baseUrl: service.url,
    reconnect: { firstDelay: 1000, longestDelay: 1000, silence: 5000 },
  })
  t.teardown(() => client.close())
  const all = Array.from({ length: 100 }, () => following(client))
  await until(() => service.followers === all.length)
  const before = service.asked.length
  const lost = performance.now()
  service.end('draining')
  await until(() => service.asked.length === before + all.length)
  const waits = service.asked.slice(before).map(({ at }) => at - lost)
  const buckets = [0, 250, 500, 750].map((from) => waits.filter((wait) => wait >= from && wait < from + 250).length)
  t.ok(
    buckets.every((count) => count < 80),
    `spread: ${buckets}`,
  )
})

t.test('a slow reader slows the connection down', async (t) => {
  // G9
  const { service } = await modelled(t)
  for (let seq = 0; seq < 300; seq++) service.events.push({ ...message(seq), data: { content: 'x'.repeat(100_000) } })
  const proxy = await faultProxy(t, service.url)
  const client = new HistoryClient({ baseUrl: proxy.url, reconnect: QUICK })
  t.teardown(() => client.close())
  let seen = 0
  for await (const _ of client.session('s').follow({ afterSeq: -1 })) {
    if (++seen === 1) {
      await delay(150)
      t.ok(proxy.passed[0]! < 15_000_000, `${proxy.passed[0]} of 30,000,000 bytes were taken for one record`)
    }
    if (seen === 300) break
  }
  t.equal(seen, 300)
})

t.test('it leaves nothing behind, however it is left', async (t) => {
  // C5
  const ways: [
    string,
    (options: { stop: AbortController; iterator: AsyncGenerator<unknown>; client: HistoryClient }) => unknown,
  ][] = [
    ['aborted', ({ stop }) => stop.abort(new Error('enough'))],
    ['left while it waits', ({ iterator }) => iterator.return(undefined)],
    ['the client closed', ({ client }) => client.close()],
  ]
  for (const [way, leave] of ways) {
    await t.test(way, async (t) => {
      const before = activeResources()
      const service = await ModelService.start(t, { heartbeat: 5 })
      service.append(...textDeltas(0, 5))
      const client = new HistoryClient({ baseUrl: service.url, reconnect: QUICK })
      const stop = new AbortController()
      const log = client.session('s').follow({ signal: stop.signal })
      const iterator = log[Symbol.asyncIterator]()
      await iterator.next()
      const waiting = iterator.next()
      await delay(10)
      const [outcome] = await Promise.allSettled([waiting, leave({ stop, iterator, client })])
      if (way === 'aborted') t.match(outcome, { status: 'rejected', reason: { message: 'enough' } })
      if (way === 'left while it waits') t.match(outcome, { status: 'fulfilled', value: { done: true } })
      if (way === 'the client closed') t.match(outcome, { status: 'rejected', reason: { code: 'client/closed' } })
      t.equal(getEventListeners(stop.signal, 'abort').length, 0)
      await until(() => service.followers === 0)
      await client.close()
      await until(async () => (await service.connections()) === 0)
      service.close()
      await until(() => activeResources().length <= before.length)
    })
  }
})

t.test('it is read once', async (t) => {
  const { session } = await modelled(t)
  const log = session.follow()
  log.lines()
  t.throws(() => log.lines(), TypeError)
  t.throws(() => log[Symbol.asyncIterator](), TypeError)
})
