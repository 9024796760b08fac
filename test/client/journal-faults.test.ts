// What networks and services do to a journal, in every place where they can do it. Whatever happens, the window is at
// each moment a contiguous part of the log, and in the end it is level with the log's head.

import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { SessionEvent, SessionHistoryRecord } from '../../codec/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import type { Plan } from '../support/fault-proxy.ts'
import { faultProxy } from '../support/fault-proxy.ts'
import { assistantMessage, eventsOf, textDelta, textDeltas, userMessage } from '../support/logs.ts'
import { until } from '../support/service.ts'
import type { Fault } from './model-service.ts'
import { ModelService } from './model-service.ts'
import { activeResources, Watch } from './watching.ts'

/** A silence of 5 s is none of the faults here. */
const QUICK = { firstDelay: 0, longestDelay: 1, silence: 5000 }
const WATCHFUL = { ...QUICK, silence: 60 }

const note = (seq: number): SessionEvent => ({ type: 'n', seq, time: 1, data: 'é' })

/** Few bytes, with both kinds of record. */
const SMALL = [note(0), ...textDeltas(1, 4), note(4)]

async function pageEvents(client: HistoryClient): Promise<SessionEvent[]> {
  const records: SessionHistoryRecord[] = []
  for await (const record of (await client.session('s').page()).records) records.push(record)
  return eventsOf(records)
}

t.test('a page that is cut at any byte is never taken for a whole one', async (t) => {
  // D6, D7
  const service = await ModelService.start(t)
  service.append(...SMALL)
  const proxy = await faultProxy(t, service.url)
  const client = new HistoryClient({ baseUrl: service.url, retry: { tries: 1 } })
  t.teardown(() => client.close())
  const whole = await pageEvents(client)
  t.strictSame(whole, SMALL)
  const outcome = async (plan: Plan): Promise<'whole' | 'failed'> => {
    const each = new HistoryClient({ baseUrl: proxy.url, retry: { tries: 1 } })
    proxy.plan(() => plan)
    try {
      const events = await pageEvents(each)
      if (JSON.stringify(events) !== JSON.stringify(SMALL)) throw new RangeError('a part was taken for the whole')
      return 'whole'
    } catch (error) {
      if (error instanceof RangeError) throw error
      return 'failed'
    } finally {
      await each.close()
    }
  }
  t.equal(await outcome({ piece: 1 }), 'whole', 'a byte at a time')
  const length = proxy.passed.at(-1) as number
  const outcomes = new Map<string, number>()
  for (let after = 0; after < length; after++) {
    const told = await outcome({ after, how: after % 2 === 0 ? 'reset' : 'close' })
    outcomes.set(told, (outcomes.get(told) ?? 0) + 1)
    // The last chunk's own end is all that may be missing of what is known to be whole.
    if (told === 'whole') t.ok(after >= length - 7, `${after} of ${length}`)
  }
  t.ok((outcomes.get('failed') ?? 0) > length - 8)
})

t.test('a journal that is cut at any byte goes on where it was', async (t) => {
  const service = await ModelService.start(t)
  service.append(...SMALL)
  const proxy = await faultProxy(t, service.url)
  const watchOne = async (plan: Plan | undefined, fault?: Fault, reconnect = QUICK) => {
    const client = new HistoryClient({ baseUrl: proxy.url, reconnect })
    const first = proxy.count + 1
    const requests = service.of('follow').length
    proxy.plan((n) => (n === first ? plan : undefined))
    service.fault = ({ count }) => (count === requests + 1 ? fault : undefined)
    const watched = new Watch(client.session('s').journal(), { log: () => service.events })
    await watched.until(() => watched.journal.status === 'live' && watched.journal.to === SMALL.length)
    watched.journal.close()
    await client.close()
    return { watched, connections: proxy.count - first + 1, bytes: proxy.passed[first - 1] as number }
  }
  const { bytes } = await watchOne({ piece: 1 })
  const wrong: number[] = []
  for (let after = 0; after < bytes; after++) {
    const { watched, connections } = await watchOne({ after, how: after % 2 === 0 ? 'reset' : 'close' })
    if (connections > 2 || watched.of('replace').length !== 1) wrong.push(after)
  }
  for (let after = 0; after < 400; after += 13) {
    const { watched } = await watchOne(undefined, { after, how: 'end' })
    if (watched.of('replace').length !== 1) wrong.push(-after)
  }
  for (const after of [0, 1, 200, 500]) await watchOne({ after, how: 'silence' }, undefined, WATCHFUL)
  t.strictSame(wrong, [], 'one more connection, and one window')
})

t.test('a message of 300 events, cut and resumed at every single position, is always the same', async (t) => {
  // B3
  const events = [userMessage(0), ...textDeltas(1, 299), assistantMessage(299, [1])]
  const service = await ModelService.start(t)
  const client = new HistoryClient({ baseUrl: service.url, reconnect: QUICK })
  t.teardown(() => client.close())
  const wrong: number[] = []
  for (let cut = 0; cut <= events.length; cut++) {
    service.events = []
    const requests = service.of('follow').length
    let left = cut
    service.fault = ({ count }) =>
      count === requests + 1 ? { lie: (lines) => lines.slice(0, Math.max(0, left)) } : undefined
    const watched = new Watch(client.session('s').journal(), { log: () => service.events })
    await watched.until(() => watched.journal.status === 'live')
    left = cut
    service.append(...events)
    await watched.until(() => watched.journal.to === cut)
    if (cut % 2 === 0) service.drop()
    else service.quit()
    await watched.until(() => watched.journal.to === events.length)
    const window = await eventsOf(watched.journal.entries)
    const asked = service.of('follow').slice(requests)
    const right =
      JSON.stringify(window) === JSON.stringify(events) &&
      (cut === events.length || (asked.length === 2 && asked[1]?.query.afterSeq === `${cut - 1}`))
    if (!right) wrong.push(cut)
    watched.journal.close()
  }
  t.strictSame(wrong, [])
})

// ---- any faults in any order --------------------------------------------------------------------------------------

/** Lies that a journal must see through without a word. */
const LIES: Record<string, (lines: string[]) => string[]> = {
  twice: (lines) => lines.flatMap((line) => [line, line]),
  backwards: (lines) => lines.toReversed(),
  'every other one': (lines) => lines.filter((_, at) => at % 2 === 1 || at === lines.length - 1),
  'the first again': (lines) => [...lines, ...lines.slice(0, 1)],
}

const requestFault: fc.Arbitrary<Fault | undefined> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  fc.constantFrom(408, 425, 429, 500, 503).map((status) => ({ status })),
  fc.constant({ status: 503, headers: { 'retry-after': '0' } }),
  fc.record({ after: fc.nat(1500), how: fc.constantFrom('end' as const, 'reset' as const) }),
  fc.constantFrom(...Object.values(LIES)).map((lie) => ({ lie })),
)

const connectionPlan: fc.Arbitrary<Plan | undefined> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  fc.record({ piece: fc.integer({ min: 1, max: 40 }) }),
  fc.record({ after: fc.nat(2500), how: fc.constantFrom('reset' as const, 'close' as const) }),
)

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('append' as const),
      kinds: fc.array(fc.nat(5), { minLength: 1, maxLength: 12 }),
    }),
  },
  ...(['drop', 'drain', 'quit', 'older', 'wait', 'reset'] as const).map((does) =>
    fc.record({ does: fc.constant(does) }),
  ),
)

function made(seq: number, kind: number): SessionEvent {
  if (kind === 0) return userMessage(seq)
  return kind === 1 && seq > 2 ? assistantMessage(seq, [seq - 2]) : textDelta(seq, `t${seq}`, kind % 2)
}

t.test('whatever happens, the window is a contiguous part of the log, and level with it in the end', async (t) => {
  const property = fc.asyncProperty(
    fc.array(requestFault, { maxLength: 12 }),
    fc.array(connectionPlan, { maxLength: 8 }),
    fc.array(step, { minLength: 1, maxLength: 14 }),
    fc.integer({ min: 1, max: 4 }),
    fc.constantFrom('packed' as const, 'expanded' as const),
    async (faults, plans, steps, maxMessages, chunks) => {
      const service = await ModelService.start(t, { heartbeat: 20 })
      const proxy = await faultProxy(t, service.url)
      proxy.plan((n) => plans[n - 1])
      service.fault = () => faults.shift()
      const logs = new Map([['e1', service.events]])
      const client = new HistoryClient({
        baseUrl: proxy.url,
        reconnect: WATCHFUL,
        retry: { firstDelay: 0, longestDelay: 1 },
      })
      const journal = client.session('s').journal({ maxMessages, chunks })
      const watched = new Watch(journal, { log: () => logs.get(journal.epoch ?? 'e1') ?? [] })
      try {
        for (const each of steps) {
          if (each.does === 'append') {
            const { length } = service.events
            service.append(...each.kinds.map((kind, at) => made(length + at, kind)))
          }
          if (each.does === 'drop') proxy.now('reset')
          if (each.does === 'drain') service.end('draining')
          if (each.does === 'quit') service.quit()
          if (each.does === 'wait') await delay(3)
          // It may fail as any request may; what it does to the window is watched.
          if (each.does === 'older') journal.loadOlder().catch(() => {})
          if (each.does === 'reset') {
            service.epoch = `e${logs.size + 1}`
            service.events = []
            logs.set(service.epoch, service.events)
            service.end('expired')
          }
          await delay(0)
        }
        await watched.until(
          () => journal.status === 'live' && journal.epoch === service.epoch && journal.to === service.events.length,
        )
      } finally {
        journal.close()
        await watched.done
        await client.close()
        service.close()
      }
    },
  )
  await fc.assert(property, { numRuns: 400, interruptAfterTimeLimit: 3000, markInterruptAsFailure: false })
  await until(() => activeResources().filter((name) => name === 'Timeout').length <= 1)
  t.pass('and no timer is left')
})
