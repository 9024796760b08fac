// Two hundred readers over a restart of the service (cases C3, C8, C9): they come back spread over time, end level with
// the log, have missed nothing, and can be stopped at any moment of it.

import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import { Random } from '../../bench/fixtures/random.ts'
import type { SessionEvent } from '../../codec/index.ts'
import type { ReconnectOptions } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { activeResources, Watch } from '../client/watching.ts'
import { assistantMessage, textDeltas, userMessage } from '../support/logs.ts'
import { until } from '../support/service.ts'
import { Gate } from './gate.ts'
import { ServiceProcess, steadyPort } from './service-process.ts'

const READERS = 200

function talk(from: number): SessionEvent[] {
  return [userMessage(from), ...textDeltas(from + 1, from + 8), assistantMessage(from + 8, [from + 1, from + 7])]
}

/** A service with a session, a gate before it, and two clients: one through the gate, one past it. */
async function served(t: Test, reconnect: Partial<ReconnectOptions>) {
  const place = { data: join(t.testdir(), 'data'), port: await steadyPort() }
  let service = await ServiceProcess.start(place)
  t.teardown(() => service.end('SIGKILL'))
  const gate = await Gate.before(t, place.port)
  const through = new HistoryClient({ baseUrl: gate.url, reconnect })
  const past = new HistoryClient({ baseUrl: service.url })
  const close = () => Promise.all([through.close(), past.close()])
  t.teardown(close)
  await past.sessions.create('s')
  const log: SessionEvent[] = []
  return {
    gate,
    through,
    log,
    close,
    end: (signal: NodeJS.Signals) => service.end(signal),
    async start() {
      service = await ServiceProcess.start(place)
    },
    async append() {
      const events = talk(log.length)
      // A reader may have them before their writer hears that they are stored.
      log.push(...events)
      await past.session('s').append(events)
    },
  }
}

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  t.test(`${READERS} readers come back after ${signal} in their own time, and have missed nothing`, async (t) => {
    const WINDOW = 2000
    const { gate, through, log, end, start, append } = await served(t, { firstDelay: WINDOW, longestDelay: 8 * WINDOW })
    for (let count = 0; count < 4; count++) await append()
    const readers = Array.from({ length: READERS }, () => {
      return new Watch(through.session('s').journal({ maxMessages: 2 }), { log: () => log })
    })
    const areLevel = () => readers.every(({ journal }) => journal.status === 'live' && journal.to === log.length)
    await until(areLevel)

    const random = new Random(8)
    const drawn: number[] = []
    t.intercept(Math, 'random', {
      value: () => {
        const value = random.next()
        drawn.push(value)
        return value
      },
    })
    const lag = monitorEventLoopDelay({ resolution: 10 })
    lag.enable()
    // Each comes once, and waits there until the service is back.
    gate.shut()
    const before = gate.arrivals.length
    const since = performance.now()
    const [code, by] = await end(signal)
    t.strictSame([code, by], signal === 'SIGTERM' ? [0, null] : [null, 'SIGKILL'])
    const arrivals = () => gate.arrivals.slice(before)
    await until(() => arrivals().length >= READERS)
    lag.disable()
    const times = arrivals().map((at) => at - since)
    await start()
    await append()
    gate.open()
    await until(areLevel)
    await append()
    await until(areLevel)

    const waits = drawn.map((value) => value * WINDOW).sort((a, b) => a - b)
    t.ok(waits.length >= READERS, 'each has drawn its wait')
    // Whatever the machine does meanwhile, nobody comes before the wait is over. Timers know whole milliseconds.
    const early = times.toSorted((a, b) => a - b).filter((time, at) => time < (waits[at] as number) - 2)
    t.strictSame(early, [])
    const share = (all: readonly number[], slice: number) => {
      return Math.max(
        ...Object.values(Object.groupBy(all, (time) => Math.floor(time / slice))).map((of) => of?.length ?? 0),
      )
    }
    t.ok(
      share(
        drawn.slice(0, READERS).map((value) => value * WINDOW),
        100,
      ) <=
        READERS / 10,
      'and the waits are spread',
    )
    const busiest = share(times, 100)
    const longest = Math.round(lag.max / 1e6)
    const first = Math.round(Math.min(...times))
    const last = Math.round(Math.max(...times))
    t.comment(`attempts from ${first} to ${last} ms, at most ${busiest} in 100 ms; a turn took up to ${longest} ms`)
    // A process that is held up for long does all that was due at once.
    if (longest < 200) t.ok(busiest <= READERS / 3, `${busiest} in 100 ms`)
    for (const { journal, changes, statuses } of readers) {
      const errors = changes.flatMap((change) => (change.type === 'status' && change.error ? [change.error] : []))
      if (signal === 'SIGTERM') t.match(errors[0], { code: 'stream/ended', reason: 'draining' })
      t.strictSame([statuses[0], statuses.at(-1)], ['connecting', 'live'])
      t.equal(changes.filter(({ type }) => type === 'replace').length, 1, 'the window was not lost')
      journal.close()
    }
    await Promise.all(readers.map(({ done }) => done))
  })
}

t.test('stopped at any moment of a restart, nothing is left', async (t) => {
  const before = activeResources()
  const { gate, through, close, end, start, append } = await served(t, { firstDelay: 50, longestDelay: 400 })
  await append()
  const random = new Random(9)
  const stops: AbortController[] = []
  const ended = Array.from({ length: READERS }, async (_, at) => {
    const stop = new AbortController()
    stops.push(stop)
    const { signal } = stop
    const session = through.session('s')
    try {
      for await (const _ of at % 2 === 0 ? session.journal({ signal }) : session.follow({ signal }));
      t.ok(at % 2 === 0, 'a journal ends without a word')
    } catch (error) {
      t.ok(at % 2 === 1 && error === signal.reason, 'a followed log throws the reason')
    }
  })
  await until(() => gate.requests.length === READERS)
  // From before the end of the service to after it is back.
  const stopping = stops.map(async (stop) => {
    await delay(random.next() * 2500)
    stop.abort(new Error('enough'))
  })
  await delay(200)
  await end('SIGKILL')
  await delay(300)
  await start()
  await append()
  await Promise.all([...stopping, ...ended])
  t.ok(gate.arrivals.length > READERS, 'some had come back, or tried to')
  // A connection that stood when nobody wanted it any more is kept for the next request, until the client is closed.
  await close()
  await until(() => gate.count === 0)
  await until(() => activeResources().length <= before.length)
  t.same(activeResources(), before, 'timers and sockets')
  // One that was made just before may be taken just after.
  await delay(100)
  const attempts = gate.arrivals.length
  await delay(500)
  t.equal(gate.arrivals.length, attempts, 'requests')
})
