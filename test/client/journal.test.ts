import { getEventListeners } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import type { SessionEvent } from '../../codec/index.ts'
import type { HistoryClientOptions, JournalChange, JournalOptions } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import type { ServiceRequest } from '../../src/client/transport.ts'
import { Transport } from '../../src/client/transport.ts'
import { assistantMessage, userMessage as message, textDelta, textDeltas } from '../support/logs.ts'
import { until } from '../support/service.ts'
import type { ModelOptions } from './model-service.ts'
import { ModelService } from './model-service.ts'
import { eventLine } from './scripted-server.ts'
import { activeResources, Watch } from './watching.ts'

const QUICK = { firstDelay: 1, longestDelay: 4, silence: 5000 }

async function modelled(t: Test, options: ModelOptions = {}, client: Partial<HistoryClientOptions> = {}) {
  const service = await ModelService.start(t, options)
  const history = new HistoryClient({ baseUrl: service.url, reconnect: QUICK, retry: { firstDelay: 1 }, ...client })
  t.teardown(() => history.close())
  const session = history.session('s')
  const watch = (journal: JournalOptions = {}, log: () => readonly SessionEvent[] = () => service.events) => {
    const watched = new Watch(session.journal(journal), { log })
    t.teardown(() => watched.journal.close())
    return watched
  }
  return { service, client: history, session, watch }
}

/** Messages and tokens: a message at every tenth seq. */
function talk(from: number, to: number) {
  return Array.from({ length: to - from }, (_, at) => {
    const seq = from + at
    return seq % 10 === 9 ? message(seq) : textDelta(seq, `t${seq}`)
  })
}

t.test('a window is opened, told live, and grows', async (t) => {
  // B1: what was there stays as it was, and what is appended comes once.
  const { service, watch } = await modelled(t)
  service.append(...talk(0, 60))
  const watched = watch({ maxMessages: 2 })
  await watched.until(() => watched.journal.status === 'live')
  t.strictSame(
    watched.changes.map((change) => change.type),
    ['status', 'replace', 'status'],
  )
  t.match(watched.of('replace'), [{ from: 49, hasMore: true, reason: 'opened' }])
  t.match(watched.journal, { from: 49, to: 60, hasMore: true, epoch: 'e1' })
  service.append(...talk(60, 63))
  service.append(message(63))
  await watched.until(() => watched.journal.to === 64)
  t.strictSame(
    service.of('follow').map(({ query }) => query),
    [{ maxMessages: '2' }],
  )
  watched.journal.close()
  await watched.done
  t.equal(watched.journal.entries.length > 0, true, 'a closed window can still be read')
})

t.test('an empty session is followed from its beginning, with one held request', async (t) => {
  // B11
  const { service, watch } = await modelled(t, { heartbeat: 10 })
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  t.match(watched.journal, { from: 0, to: 0, hasMore: false, entries: [] })
  await delay(100)
  service.append(message(0))
  await watched.until(() => watched.journal.to === 1)
  t.equal(service.of('follow').length, 1)
})

t.test('a session that is not there is a failure, and nothing is tried again', async (t) => {
  const { service, watch } = await modelled(t)
  service.isThere = false
  const watched = watch()
  await watched.done
  t.strictSame(watched.statuses, ['connecting', 'failed'])
  t.match(watched.journal.error, { code: 'session/not-found', status: 404 })
  t.equal(service.asked.length, 1)
})

t.test('a session that is deleted while it is followed has ended', async (t) => {
  // C9: one typed end, and no more requests.
  const { service, watch } = await modelled(t)
  service.append(...talk(0, 20))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  service.delete()
  await watched.done
  t.strictSame(watched.statuses, ['connecting', 'live', 'ended'])
  t.equal(watched.journal.to, 20)
  await delay(30)
  t.equal(service.asked.length, 1)
})

t.test('a session that is gone when the journal comes back has ended', async (t) => {
  const { service, watch } = await modelled(t)
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  service.isThere = false
  service.drop()
  await watched.done
  t.strictSame(watched.statuses, ['connecting', 'live', 'reconnecting', 'ended'])
  t.equal(service.asked.length, 2)
})

t.test('whatever breaks the connection, the next one goes on at the end of the window', async (t) => {
  // B9, B18, B19, B21, B23: the cursor is the window's end, sent to the service; nothing comes twice.
  const { service, watch } = await modelled(t, { heartbeat: 5 })
  service.append(...talk(0, 15))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  const losses: [string, () => void][] = [
    ['a reset', () => service.drop()],
    ['draining', () => service.end('draining')],
    ['expired', () => service.end('expired')],
    ['a reason of a later version', () => service.end('moved')],
    ['an orderly end that says nothing', () => service.quit()],
  ]
  for (const [name, lose] of losses) {
    const asked = service.of('follow').length
    const { length } = service.events
    lose()
    // What is appended while nobody listens comes first when somebody does again.
    service.events.push(...talk(length, length + 5))
    await watched.until(() => watched.journal.to === length + 5 && watched.journal.status === 'live')
    t.strictSame(
      service
        .of('follow')
        .slice(asked)
        .map(({ query }) => query),
      [{ afterSeq: `${length - 1}`, epoch: 'e1', maxMessages: '50' }],
      name,
    )
  }
  t.equal(watched.of('replace').length, 1)
})

t.test('a connection whose end was announced is let go, also when the service does not close it', async (t) => {
  for (const reason of ['expired', 'deleted']) {
    const { service, watch } = await modelled(t, {
      fault: ({ count }) => (count === 1 ? { lie: () => [`{"type":"end","reason":"${reason}"}`] } : undefined),
    })
    const watched = watch()
    await watched.until(() => watched.journal.status === 'live')
    service.append(message(0))
    if (reason === 'deleted') await watched.done
    else await watched.until(() => watched.journal.to === 1)
    await until(() => service.followers === (reason === 'deleted' ? 0 : 1))
    t.equal(service.of('follow').length, reason === 'deleted' ? 1 : 2)
    watched.journal.close()
  }
})

t.test('errors that may pass are tried again from the cursor, others are final', async (t) => {
  // B9, C9
  for (const status of [408, 425, 429, 500, 502, 503, 507]) {
    let wrong = 2
    const { service, watch } = await modelled(t, {
      fault: ({ count }) => (count > 1 && wrong-- > 0 ? { status } : undefined),
    })
    service.append(...talk(0, 5))
    const watched = watch()
    await watched.until(() => watched.journal.status === 'live')
    service.drop()
    await watched.until(() => service.of('follow').length === 4 && watched.journal.status === 'live')
    t.ok(
      service
        .of('follow')
        .slice(1)
        .every(({ query }) => query.afterSeq === '4'),
      `${status}`,
    )
    t.equal(watched.of('replace').length, 1)
  }
  for (const status of [400, 401, 403, 410, 413, 418, 302]) {
    const { service, watch } = await modelled(t, { fault: ({ count }) => (count > 1 ? { status } : undefined) })
    const watched = watch()
    await watched.until(() => watched.journal.status === 'live')
    service.drop()
    await watched.done
    t.strictSame(watched.statuses, ['connecting', 'live', 'reconnecting', 'failed'], `${status}`)
    t.match(watched.journal.error, { name: 'ServiceError', status })
    t.equal(service.of('follow').length, 2)
  }
})

t.test('what the service asks for is waited for', async (t) => {
  const { service, watch } = await modelled(t, {
    fault: ({ count }) => (count === 1 ? { status: 503, headers: { 'retry-after': '1' } } : undefined),
  })
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  const [first, second] = service.of('follow')
  t.ok(second!.at - first!.at >= 990, 'a second')
  t.strictSame(watched.statuses, ['connecting', 'reconnecting', 'live'])
})

t.test('the waits grow', async (t) => {
  // C8
  const { service, watch } = await modelled(
    t,
    { fault: ({ count }) => (count > 1 && count < 8 ? { status: 503 } : undefined) },
    { reconnect: { firstDelay: 4, longestDelay: 64, silence: 1000 } },
  )
  t.intercept(Math, 'random', { value: () => 1 })
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  service.events.push(...talk(0, 5))
  service.drop()
  await watched.until(() => watched.journal.to === 5)
  const waits = service.of('follow').map(({ at }, n, all) => (n === 0 ? 0 : at - all[n - 1]!.at))
  const least = [4, 8, 16, 32, 64, 64]
  for (const [n, wait] of least.entries()) t.ok(waits[n + 2]! >= wait * 0.9, `${waits[n + 2]} of ${wait}`)
})

t.test('the waits are short again once something came, and a heartbeat is something', async (t) => {
  // C8: twenty losses in a row would have waited for a quarter of an hour in the end.
  const signs: [string, (service: ModelService) => void][] = [
    ['an event', (service) => service.append(message(service.events.length))],
    ['a heartbeat', (service) => service.beat()],
  ]
  for (const [name, come] of signs) {
    const reconnect = { firstDelay: 1, longestDelay: 2 ** 30, silence: 60_000 }
    const { service, watch } = await modelled(t, {}, { reconnect })
    const spread = t.intercept(Math, 'random', { value: () => 1 })
    const watched = watch()
    for (let losses = 0; losses < 20; losses++) {
      await until(() => service.of('follow').length === losses + 1 && service.followers === 1)
      come(service)
      // In order behind what came, so that it is a loss only after that.
      service.quit()
    }
    await until(() => service.of('follow').length === 21)
    t.equal(watched.statuses.filter((status) => status === 'reconnecting').length, 20, name)
    spread.restore()
  }
})

t.test('a log that is another one, or shorter, is started over', async (t) => {
  // B12, B13, B24
  const changes: [string, (service: ModelService) => void, Record<string, string>][] = [
    [
      'made again',
      (service) => Object.assign(service, { epoch: 'e2', events: talk(0, 35) }),
      { afterSeq: '49', epoch: 'e1' },
    ],
    ['shorter', (service) => Object.assign(service, { events: talk(0, 35) }), { afterSeq: '49', epoch: 'e1' }],
  ]
  for (const [name, change, cursor] of changes) {
    const { service, watch } = await modelled(t)
    service.append(...talk(0, 50))
    // All three logs begin alike.
    const watched = watch({ maxMessages: 2 }, () => talk(0, 50))
    await watched.until(() => watched.journal.status === 'live')
    change(service)
    service.drop()
    await watched.until(() => watched.of('replace').length === 2 && watched.journal.status === 'live')
    t.match(watched.of('replace')[1], { reason: 'reset', from: 19 }, name)
    t.strictSame(
      service
        .of('follow')
        .slice(1)
        .map(({ query }) => query),
      [{ ...cursor, maxMessages: '2' }, { maxMessages: '2' }],
    )
    t.equal(watched.journal.epoch, service.epoch)
  }
})

t.test('a start over waits for nothing, and one after another does', async (t) => {
  // The gap says that the log is another one; a log that goes on saying so must not be asked in a tight loop.
  const { service, watch } = await modelled(
    t,
    {
      fault: ({ what, count }) => {
        if (what === 'events') return { status: 409, code: 'session/replaced' }
        return count === 1 ? undefined : { lie: (lines) => lines.slice(1) }
      },
    },
    { reconnect: { firstDelay: 1e6, longestDelay: 1e6, silence: 1e6 } },
  )
  t.intercept(Math, 'random', { value: () => 1 })
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  service.events.push(message(0), message(1))
  service.append(message(2))
  await until(() => service.of('follow').length === 2)
  await watched.until(() => watched.statuses.filter((status) => status === 'reconnecting').length === 2)
  await delay(30)
  t.equal(service.of('follow').length, 2)
  t.strictSame(
    service.of('follow').map(({ query }) => query),
    [{}, {}],
  )
})

t.test('a service that does not look at the epoch is not believed to have the old log', async (t) => {
  const { service, watch } = await modelled(t, {
    fault: ({ count }) => (count === 2 ? { promise: { 'history-epoch': 'e9' } } : undefined),
  })
  service.append(...talk(0, 20))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  service.drop()
  await watched.until(() => watched.of('replace').length === 2)
  t.equal(watched.of('replace')[1]?.reason, 'reset')
})

t.test('after a long absence the newest page takes the place of the window', async (t) => {
  const { service, watch } = await modelled(t)
  service.append(...talk(0, 20))
  const watched = watch({ maxMessages: 2 })
  await watched.until(() => watched.journal.status === 'live')
  service.drop()
  service.events.push(...talk(20, 90))
  await watched.until(() => watched.journal.to === 90 && watched.journal.status === 'live')
  t.match(watched.of('replace')[1], { reason: 'resumed', from: 79, hasMore: true })
})

t.test('deliveries that come twice, late or not at all leave no trace in the window', async (t) => {
  // B16: the cursor is no counter of deliveries.
  const first = JSON.stringify({ type: 'event', event: textDelta(0, 't0') })
  const lies: [string, (lines: string[]) => string[]][] = [
    ['thrice', (lines) => lines.flatMap((line) => [line, line, line])],
    ['backwards', (lines) => lines.toReversed()],
    ['the first left out', (lines) => lines.slice(1)],
    ['the middle left out', (lines) => (lines.length < 3 ? lines : [lines[0]!, lines.at(-1)!])],
    ['an old one first', (lines) => (lines[0]?.includes('"chunks"') ? lines : [first, ...lines])],
  ]
  for (const [name, lie] of lies) {
    const { service, watch } = await modelled(t, { fault: ({ what }) => (what === 'follow' ? { lie } : undefined) })
    service.append(...talk(0, 30))
    const watched = watch()
    await watched.until(() => watched.journal.status === 'live' || name.startsWith('the first'))
    service.append(...talk(30, 36))
    service.append(message(36), message(37), message(38))
    service.append(...talk(39, 40))
    service.append(...talk(40, 43))
    await watched.until(() => watched.journal.to >= 42)
    service.drop()
    await until(() => service.of('follow').length === 2)
    t.equal(service.of('follow')[1]?.query.afterSeq, `${watched.journal.to - 1}`, name)
    const gaps = service.of('events').map(({ query }) => `${query.fromSeq}-${query.toSeq}`)
    t.equal(new Set(gaps).size, gaps.length, 'each gap is read once')
    if (name === 'the middle left out') t.ok(gaps.length > 0)
  }
})

t.test('a gap is read once and bounded, and what came later is held until then', async (t) => {
  const { service, watch } = await modelled(t, {
    fault: ({ what }) =>
      what === 'follow' ? { lie: (lines) => lines.filter((line) => !/"seq":(12|13)\b/.test(line)) } : undefined,
  })
  service.append(...talk(0, 10))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  service.append(message(10), message(11), message(12), message(13), message(14), message(15))
  await watched.until(() => watched.journal.to === 16)
  t.strictSame(
    service.of('events').map(({ query }) => query),
    [{ fromSeq: '12', toSeq: '14', epoch: 'e1' }],
  )
  t.strictSame(
    watched.of('append').map(({ entries }) => entries.map(({ event }) => event.seq)),
    [
      [10, 11],
      [12, 13],
      [14, 15],
    ],
  )
  t.equal(service.of('follow').length, 1, 'on the same connection')
})

t.test('a gap that cannot be read is a lost connection', async (t) => {
  let holes = 1
  const { service, watch } = await modelled(t, {
    fault: ({ what, count }) => {
      if (what === 'events') return { status: 503 }
      return what === 'follow' && count === 1 ? { lie: (lines) => (holes-- > 0 ? lines : lines.slice(1)) } : undefined
    },
  })
  service.append(...talk(0, 10))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  service.append(message(10), message(11))
  await watched.until(() => watched.journal.to === 12)
  t.equal(service.of('events').length, 1, 'tried once')
  t.strictSame(service.of('follow')[1]?.query.afterSeq, '9')
})

t.test('a record that is in part old is an error of the service', async (t) => {
  const row = (seq: number) =>
    JSON.stringify({
      type: 'chunks',
      event: {
        type: 'chunkrow/text-chunks',
        seq,
        time: 1,
        data: { turn: 0, step: 0, index: 0, dt: [0, 0], texts: ['x', 'x', 'x'] },
      },
    })
  const lie = (lines: string[]) => (lines.length === 2 ? [row(8)] : lines)
  const once = await modelled(t, { fault: ({ count }) => (count === 1 ? { lie } : undefined) })
  once.service.append(...talk(0, 9))
  const recovered = once.watch()
  await recovered.until(() => recovered.journal.status === 'live')
  once.service.append(textDelta(9), textDelta(10))
  await recovered.until(() => recovered.journal.to === 11)
  t.match(recovered.of('status')[2], { status: 'reconnecting', error: { code: 'answer/malformed' } })

  const always = await modelled(t, {
    fault: ({ what, query }) => (what === 'follow' && query.afterSeq ? { lie: () => [row(7)] } : { lie }),
  })
  always.service.append(...talk(0, 9))
  const failed = always.watch()
  await failed.until(() => failed.journal.status === 'live')
  always.service.append(textDelta(9), textDelta(10))
  await failed.done
  t.strictSame(failed.statuses, ['connecting', 'live', 'reconnecting', 'failed'])
  t.match(failed.journal, { to: 9, error: { code: 'answer/malformed' } })
  t.equal(always.service.of('follow').length, 2)
})

t.test('a service whose log has become shorter without a word', async (t) => {
  const shorter = { 'history-from': '0', 'history-more': 'false', 'history-to': '5', 'history-head': '4' }
  const { service, watch } = await modelled(t, {
    fault: ({ count }) => (count === 2 ? { promise: shorter } : undefined),
  })
  service.append(...talk(0, 20))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  service.drop()
  await watched.until(() => service.of('follow').length === 3 && watched.journal.status === 'live')
  await until(() => service.followers === 1)
  t.match(watched.of('status').at(-2), { status: 'reconnecting', error: { code: 'answer/malformed' } })
  t.equal(watched.journal.to, 20)
})

t.test('a part of an opening part is progress', async (t) => {
  const { service, watch } = await modelled(t, {
    fault: ({ count }) => (count < 3 ? { lie: (lines) => [...lines.slice(0, (count - 1) * 2), 'nothing'] } : undefined),
  })
  service.append(message(0), message(1), message(2))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  t.strictSame(
    service.of('follow').map(({ query }) => query.afterSeq),
    [undefined, undefined, '1'],
  )
})

t.test('a service that names seqs which its log does not have', async (t) => {
  const { service, watch } = await modelled(t, {
    fault: ({ what }) => (what === 'follow' ? { lie: (lines) => [...lines, eventLine(1000)] } : undefined),
  })
  service.append(...talk(0, 9))
  const watched = watch()
  await watched.done
  t.match(watched.journal, { status: 'failed', to: 9, error: { code: 'answer/malformed' } })
})

t.test('silence is a loss, and a heartbeat is none', async (t) => {
  // C1, G1: undici's own limit must not end a quiet stream, and must not be needed to notice a dead one.
  const beating = await modelled(t, { heartbeat: 50 }, { reconnect: { ...QUICK, silence: 600 } })
  const watched = beating.watch()
  // undici looks at its own limit once a second.
  const quiet = await modelled(t, {}, { timeouts: { body: 30 }, reconnect: { ...QUICK, silence: 60_000 } })
  const waiting = quiet.watch()
  await delay(2500)
  for (const [{ service }, each] of [
    [beating, watched],
    [quiet, waiting],
  ] as const) {
    t.strictSame(each.statuses, ['connecting', 'live'])
    t.equal(service.of('follow').length, 1)
    service.append(message(0))
    await each.until(() => each.journal.to === 1)
  }

  const dead = await modelled(t, {}, { reconnect: { ...QUICK, silence: 40 } })
  const noticed = dead.watch()
  await noticed.until(() => dead.service.of('follow').length >= 2)
  await noticed.until(() => noticed.statuses.length >= 3)
  t.match(noticed.of('status')[2], { status: 'reconnecting', error: { name: 'NetworkError', code: 'network/timeout' } })
})

t.test('silence before an answer is a loss, and so is silence inside an error', async (t) => {
  // C1, G2: the transport's own limits are a minute, and for the body of what is followed there is none.
  const mute = await modelled(
    t,
    { fault: ({ count }) => (count === 1 ? { mute: true } : undefined) },
    { reconnect: { ...QUICK, silence: 40 } },
  )
  const stalled = await modelled(
    t,
    { fault: ({ count }) => (count === 1 ? { status: 409, how: 'silence' } : undefined) },
    { timeouts: { body: 40 } },
  )
  const cases = [
    [mute, 'network/timeout'],
    [stalled, 'network/lost'],
  ] as const
  for (const [{ service, watch }, code] of cases) {
    const watched = watch()
    await watched.until(() => watched.statuses.includes('live'))
    t.match(watched.of('status')[1], { status: 'reconnecting', error: { name: 'NetworkError', code } })
    t.equal(service.of('follow')[1]?.count, 2)
  }
})

t.test('an answer that stops in its middle is noticed', async (t) => {
  // G2
  const { service, watch } = await modelled(
    t,
    { fault: ({ count }) => (count === 1 ? { after: 700, how: 'silence' } : undefined) },
    { reconnect: { ...QUICK, silence: 40 } },
  )
  service.append(...Array.from({ length: 20 }, (_, seq) => message(seq)))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  t.equal(watched.journal.to, 20)
  t.ok(Number(service.of('follow')[1]?.query.afterSeq) >= 0, 'and what came of it is kept')
})

t.test('live is told once for each connection, when its opening part is complete', async (t) => {
  // B31
  const { service, watch } = await modelled(t, {
    fault: ({ what, count }) => (what === 'follow' && count <= 3 ? { after: 900, how: 'reset' } : undefined),
  })
  service.append(...Array.from({ length: 30 }, (_, seq) => message(seq)))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  t.strictSame(watched.statuses, ['connecting', 'reconnecting', 'reconnecting', 'reconnecting', 'live'])
  t.equal(watched.journal.to, 30)
  service.append(message(30))
  await watched.until(() => watched.journal.to === 31)
  t.equal(watched.statuses.filter((status) => status === 'live').length, 1)
})

t.test('the token is asked for at each try, and a refused one is asked for once more', async (t) => {
  // C10
  let asked = 0
  const fresh = await modelled(
    t,
    { fault: ({ authorization }) => (authorization === 'Bearer t3' ? { status: 401 } : undefined) },
    { token: async () => `t${++asked}` },
  )
  const watched = fresh.watch()
  await watched.until(() => watched.journal.status === 'live')
  fresh.service.drop()
  await watched.until(() => fresh.service.of('follow').length === 2 && watched.journal.status === 'live')
  fresh.service.drop()
  await watched.until(() => fresh.service.of('follow').length === 4 && watched.journal.status === 'live')
  t.strictSame(
    fresh.service.of('follow').map(({ authorization }) => authorization?.slice(7)),
    ['t1', 't2', 't3', 't4'],
  )

  const stale = await modelled(t, { fault: () => ({ status: 401, code: 'auth/missing' }) }, { token: () => 'same' })
  const refused = stale.watch()
  await refused.done
  t.match(refused.journal, { status: 'failed', error: { code: 'auth/missing', status: 401 } })
  t.equal(stale.service.asked.length, 1)

  let failures = 2
  const flaky = await modelled(
    t,
    {},
    {
      token: () => {
        if (failures-- > 0) throw new Error('the vault is closed')
        return 'open'
      },
    },
  )
  const patient = flaky.watch()
  await patient.until(() => patient.journal.status === 'live')
  t.match(patient.of('status')[1], { error: { code: 'token/unavailable', message: /the vault is closed/ } })
})

t.test('older pages join in front of the window', async (t) => {
  const { service, watch } = await modelled(t)
  service.append(...talk(0, 100))
  const watched = watch({ maxMessages: 2 })
  t.equal(await watched.journal.loadOlder(), false, 'nothing is there yet')
  await watched.until(() => watched.journal.status === 'live')
  const [first, second] = [watched.journal.loadOlder(), watched.journal.loadOlder()]
  t.equal(first, second, 'calls that overlap share one page')
  t.equal(await first, true)
  while (await watched.journal.loadOlder());
  t.match(watched.journal, { from: 0, to: 100, hasMore: false })
  await watched.until(() => watched.of('prepend').at(-1)?.from === 0)
  t.equal(await watched.journal.loadOlder(), false)
  t.strictSame(
    service
      .of('history')
      .slice(0, 2)
      .map(({ query }) => query),
    [
      { beforeSeq: '89', maxMessages: '2', epoch: 'e1' },
      { beforeSeq: '69', maxMessages: '2', epoch: 'e1' },
    ],
  )
})

t.test('an older page is read and told also after the journal has failed', async (t) => {
  const { service, session } = await modelled(t, {
    fault: ({ what, count }) => (what === 'follow' && count > 1 ? { status: 403 } : undefined),
  })
  service.append(...talk(0, 60))
  const journal = session.journal({ maxMessages: 2 })
  const changes = journal[Symbol.asyncIterator]()
  for (let told = await changes.next(); !told.done; told = await changes.next())
    if (journal.status === 'live') service.drop()
  t.match(journal, { status: 'failed', from: 49 })
  t.equal(await journal.loadOlder(), true)
  t.match(journal, { status: 'failed', from: 29, to: 60 })
  t.match(await changes.next(), { done: false, value: { type: 'prepend', from: 29 } })
  t.match(await changes.next(), { done: true })
  journal.close()
  await t.rejects(journal.loadOlder(), { code: 'journal/closed' })
})

t.test('an older page that does not join is an error, and the window stands', async (t) => {
  const cases: [string, Record<string, string>][] = [
    ['another end', { 'history-to': '20' }],
    ['another epoch', { 'history-epoch': 'e7' }],
    ['nothing', { 'history-from': '49' }],
  ]
  for (const [name, promise] of cases) {
    const { service, watch } = await modelled(t, {
      fault: ({ what }) => (what === 'history' ? { promise } : undefined),
    })
    service.append(...talk(0, 50))
    const watched = watch({ maxMessages: 1 })
    await watched.until(() => watched.journal.status === 'live')
    await t.rejects(watched.journal.loadOlder(), { name: 'AnswerError' }, name)
    t.match(watched.journal, { status: 'live', from: 49, to: 50 })
    service.append(message(50))
    await watched.until(() => watched.journal.to === 51)
  }
})

t.test('an older page that comes after the window was replaced is dropped', async (t) => {
  const { service, client, watch } = await modelled(t)
  service.append(...talk(0, 50))
  const watched = watch({ maxMessages: 1 })
  await watched.until(() => watched.journal.status === 'live')
  // The page is asked for, and answered only when the window is another one.
  const held = Promise.withResolvers<void>()
  const original = Transport.prototype.request
  t.intercept(Transport.prototype, 'request', {
    value: async function (this: Transport, request: ServiceRequest) {
      const answer = await original.call(this, request)
      if (request.path.endsWith('/history')) await held.promise
      return answer
    },
  })
  const older = watched.journal.loadOlder()
  older.catch(() => {})
  await until(() => service.of('history').length === 1)
  service.epoch = 'e2'
  service.drop()
  await watched.until(() => watched.of('replace').length === 2)
  held.resolve()
  await t.rejects(older, { code: 'journal/moved' })
  t.match(watched.journal, { from: 49, to: 50 })
  await client.close()
})

t.test('an older page is told before a change that was not made yet', async (t) => {
  const held = Promise.withResolvers<string>()
  let asked = 0
  const { service, session } = await modelled(t, {}, { token: () => (++asked === 2 ? held.promise : 't') })
  service.append(...talk(0, 60))
  const journal = session.journal({ maxMessages: 1 })
  const changes = journal[Symbol.asyncIterator]()
  const statuses: string[] = []
  while (statuses.at(-1) !== 'reconnecting') {
    const { value } = await changes.next()
    if (value?.type === 'status' && statuses.push(value.status) === 2) service.drop()
  }
  service.events.push(...talk(60, 100))
  // A reader who waits for the connection is told of the page, and the connection goes on behind its back.
  const told = changes.next()
  await until(() => asked === 2)
  await journal.loadOlder()
  t.match(await told, { value: { type: 'prepend', from: 49 } })
  held.resolve('t')
  await until(() => service.followers === 1)
  await delay(30)
  await journal.loadOlder()
  t.match(await changes.next(), { value: { type: 'prepend', from: 39 } })
  t.match(journal, { from: 39, to: 60 }, 'not replaced before that is told')
  const both = await Promise.all([changes.next(), changes.next()])
  t.match(both, [{ value: { type: 'replace', reason: 'resumed', from: 99 } }, { value: { status: 'live' } }])
  journal.close()
})

t.test('live tokens of a closed run become one row in their place', async (t) => {
  const { service, watch } = await modelled(t)
  service.append(message(0))
  const watched = watch()
  await watched.until(() => watched.journal.status === 'live')
  for (const delta of textDeltas(1, 7)) service.append(delta)
  await watched.until(() => watched.journal.to === 7)
  t.strictSame(watched.of('compact'), [], 'not while the run is open')
  service.append(textDelta(7, 'y', 1), textDelta(8, 'y', 1), assistantMessage(9, [1, 2]))
  await watched.until(() => watched.journal.to === 10 && watched.of('compact').length > 0)
  t.match(watched.of('compact'), [{ from: 1, to: 7, entries: [{ type: 'chunks', event: { seq: 1 } }] }])
  t.strictSame(
    watched.journal.entries.map(({ type, event }) => [type, event.seq]),
    [
      ['event', 0],
      ['chunks', 1],
      ['event', 7],
      ['event', 8],
      ['event', 9],
    ],
  )
  const plain = watch({ chunks: 'expanded' })
  await plain.until(() => plain.journal.status === 'live')
  service.append(...textDeltas(10, 15), message(15))
  await plain.until(() => plain.journal.to === 16)
  t.strictSame([plain.of('compact').length, plain.journal.entries.length], [0, 16])
})

t.test('a window that is open all day holds rows, not tokens', async (t) => {
  const { service, session } = await modelled(t)
  const journal = session.journal()
  const reading = (async () => {
    for await (const _ of journal) if (journal.to === 9001 && journal.entries.length === 4) break
  })()
  await until(() => journal.status === 'live')
  for (let at = 0; at < 9000; at += 100) {
    service.append(...textDeltas(at, at + 100))
    await delay(0)
  }
  service.append(message(9000))
  await reading
  t.same(
    journal.entries.map((record) => record.type),
    ['chunks', 'chunks', 'chunks', 'event'],
    'two full rows, the rest, the message',
  )
})

t.test('who asks again before the answer is told the next change', async (t) => {
  const { service, session } = await modelled(t)
  const journal = session.journal()
  const changes = journal[Symbol.asyncIterator]()
  while (journal.status !== 'live') await changes.next()
  const told: [string, unknown][] = []
  for (const name of ['first', 'second']) void changes.next().then(({ value }) => told.push([name, value]))
  for (const [seq, name] of ['first', 'second'].entries()) {
    service.append(message(seq))
    await until(() => told.length === seq + 1)
    t.match(told[seq], [name, { type: 'append', entries: [{ event: { seq } }] }])
  }
  journal.close()
})

t.test('only one reader, and nothing before it reads', async (t) => {
  const { service, session } = await modelled(t)
  const journal = session.journal()
  await delay(20)
  t.equal(service.asked.length, 0)
  const first = journal[Symbol.asyncIterator]()
  t.throws(() => journal[Symbol.asyncIterator](), TypeError)
  t.match(await first.next(), { value: { type: 'status', status: 'connecting' } })
  await first.return?.()
  t.match(await first.next(), { done: true })
})

t.test('a slow reader slows the connection down, and loses nothing', async (t) => {
  // G8, G9: nothing is gathered for a reader who does not come.
  const { service, session } = await modelled(t)
  const big = (seq: number) => ({ ...message(seq), data: { content: 'x'.repeat(100_000) } })
  const journal = session.journal()
  const changes = journal[Symbol.asyncIterator]()
  while (journal.status !== 'live') await changes.next()
  const count = 400
  for (let seq = 0; seq < count; seq++) service.append(big(seq))
  await changes.next()
  await delay(150)
  t.ok(journal.to < 20, `${journal.to} of ${count} messages were taken for one change`)
  while (journal.to < count) await changes.next()
  journal.close()
})

t.test('a journal leaves nothing behind, at whatever moment it is closed', async (t) => {
  // C5, C9: also while it waits for its next try, for its token, for an answer, for a line, for its reader.
  const moments: [
    string,
    ModelOptions,
    Partial<HistoryClientOptions>,
    (watched: Watch, service: ModelService) => unknown,
    /** the change after which the reader asks for no more */
    ((change: JournalChange) => boolean)?,
  ][] = [
    ['at once', {}, {}, () => {}],
    ['connecting', {}, { token: () => new Promise<string>(() => {}) }, () => delay(10)],
    ['without an answer', { fault: () => ({ mute: true }) }, {}, (_w, s) => until(() => s.asked.length === 1)],
    [
      'asked for patience',
      { fault: () => ({ status: 503, headers: { 'retry-after': '1000' } }) },
      {},
      (w) => w.until(() => w.statuses.length === 2),
    ],
    [
      'in the middle of the opening part',
      { fault: () => ({ after: 50, how: 'silence' }) },
      {},
      (_w, s) => until(() => s.of('follow').length === 1),
    ],
    ['live', { heartbeat: 5 }, {}, (w) => w.until(() => w.journal.status === 'live')],
    [
      'waiting',
      {},
      { reconnect: { firstDelay: 1e6, longestDelay: 1e6, silence: 1e6 } },
      async (w, s) => {
        await w.until(() => w.journal.status === 'live')
        s.drop()
        await w.until(() => w.journal.status === 'reconnecting')
      },
    ],
    [
      'after a loss',
      { fault: ({ count }) => (count > 1 ? { after: 0, how: 'silence' } : undefined) },
      {},
      async (w, s) => {
        await w.until(() => w.journal.status === 'live')
        s.drop()
        await until(() => s.of('follow').length > 1)
      },
    ],
    [
      'before its reader looks at the log',
      { fault: () => ({ promise: { 'history-to': '0', 'history-head': '-1' } }) },
      {},
      (w, s) => until(() => w.changes.length === 2 && s.followers === 1),
      ({ type }) => type === 'replace',
    ],
    [
      'its reader in the middle of the log',
      {},
      {},
      async (w, s) => {
        await w.until(() => w.journal.status === 'live')
        s.append(message(5), textDelta(6), textDelta(7))
        await until(() => w.changes.at(-1)?.type === 'append')
      },
      ({ type }) => type === 'append',
    ],
  ]
  const endings: [string, (watched: Watch, stop: AbortController, client: HistoryClient) => unknown][] = [
    ['closed', (watched) => watched.journal.close()],
    ['aborted', (_watched, stop) => stop.abort(new Error('enough'))],
    ['the client closed', (_watched, _stop, client) => client.close()],
  ]
  for (const [moment, model, options, reach, stops = () => false] of moments) {
    for (const [ending, end] of endings) {
      await t.test(`${ending}: ${moment}`, async (t) => {
        const before = activeResources()
        const service = await ModelService.start(t, model)
        service.append(...talk(0, 5))
        const client = new HistoryClient({ baseUrl: service.url, reconnect: QUICK, ...options })
        const stop = new AbortController()
        const away = Promise.withResolvers<void>()
        const watched = new Watch(client.session('s').journal({ signal: stop.signal }), {
          log: () => service.events,
          onChange: (change) => (stops(change) ? away.promise : undefined),
        })
        await reach(watched, service)
        await end(watched, stop, client)
        await until(() => service.followers === 0)
        await client.close()
        await until(async () => (await service.connections()) === 0)
        // Only now does a reader who has stopped come back.
        away.resolve()
        await watched.done
        t.equal(getEventListeners(stop.signal, 'abort').length, 0, 'listeners')
        const asked = service.asked.length
        service.close()
        await until(() => activeResources().length <= before.length)
        t.same(activeResources(), before, 'timers and sockets')
        await delay(10)
        t.equal(service.asked.length, asked, 'requests')
      })
    }
  }
})

t.test('a change handler that throws ends the journal', async (t) => {
  const { service, session } = await modelled(t)
  await t.rejects(
    async () => {
      for await (const _ of session.journal()) throw new Error('mine')
    },
    { message: 'mine' },
  )
  t.equal(service.followers, 0)
})
