// A reader begins at the first event of a long session while a writer adds to it, and then is live: seq rises by one
// throughout, whether an event comes from the store or as it is committed. The long form is
// `FOLLOW_EVENTS=50000 FOLLOW_RUNS=10 node test/service/follow-under-write.test.ts`.

import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { SessionEvent } from '../../codec/index.ts'
import { expandRecord } from '../../codec/index.ts'
import type { SessionClient } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { assistantMessage, textDelta } from '../support/logs.ts'
import { until } from '../support/service.ts'
import { ServiceProcess, steadyPort } from './service-process.ts'

const EVENTS = Number(process.env.FOLLOW_EVENTS ?? 5_000)
const RUNS = Number(process.env.FOLLOW_RUNS ?? 1)
const EVENTS_A_SECOND = 500
/** Milliseconds that the writer goes on once a reader is live. */
const LIVE = RUNS > 1 ? 3_000 : 1_000

function eventAt(seq: number): SessionEvent {
  return seq % 50 === 49 ? assistantMessage(seq, [seq - 3, seq - 2, seq - 1]) : textDelta(seq, `${seq} é`)
}

const eventsAt = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => eventAt(from + at))

/** Appends at its pace until it is told to stop. Gives what the log is then, and the pace that it had. */
async function write(session: SessionClient, from: number, signal: AbortSignal) {
  const begun = performance.now()
  let next = from
  while (!signal.aborted) {
    const due = from + 1 + Math.floor(((performance.now() - begun) / 1000) * EVENTS_A_SECOND)
    if (due > next) {
      const { head } = await session.append(eventsAt(next, due))
      next = head + 1
    } else await delay(1)
  }
  return { to: next, pace: Math.round(((next - from) / (performance.now() - begun)) * 1000) }
}

if (RUNS > 1) t.setTimeout(RUNS * 60_000)

for (let run = 1; run <= RUNS; run++) {
  t.test(`run ${run}: from the first of ${EVENTS} events, with ${EVENTS_A_SECOND} more each second`, async (t) => {
    const service = await ServiceProcess.start({ data: join(t.testdir(), 'data'), port: await steadyPort() })
    t.teardown(() => service.end('SIGKILL'))
    const client = new HistoryClient({ baseUrl: service.url })
    t.teardown(() => client.close())
    await client.sessions.create('s')
    const session = client.session('s')
    for (let from = 0; from < EVENTS; from += 5_000) {
      await session.append(eventsAt(from, Math.min(from + 5_000, EVENTS)))
    }
    const stop = new AbortController()
    const written = write(session, EVENTS, stop.signal)
    await delay(50)

    const begun = performance.now()
    const leave = new AbortController()
    const statuses: string[] = []
    let liveAt = 0
    const log = session.follow({
      afterSeq: -1,
      signal: leave.signal,
      onStatus: (status) => {
        statuses.push(status)
        if (status === 'live') liveAt = performance.now()
      },
    })
    let next = 0
    let single = 0
    const wrong: string[] = []
    const reading = (async () => {
      for await (const record of log) {
        if (record.type === 'event') single++
        for (const event of expandRecord(record)) {
          if (event.seq !== next) wrong.push(`${event.seq} came, and ${next} was next`)
          else if (JSON.stringify(event) !== JSON.stringify(eventAt(next))) wrong.push(`${next} is another event`)
          next = event.seq + 1
        }
      }
    })().catch((error) => {
      if (!leave.signal.aborted) wrong.push(`${error}`)
    })
    await until(() => statuses.includes('live') || wrong.length > 0)
    await delay(LIVE)
    stop.abort()
    const { to, pace } = await written
    await until(() => next >= to || wrong.length > 0)
    leave.abort()
    await reading
    t.strictSame(wrong.slice(0, 3), [])
    t.equal(next, to, 'level with the head')
    t.strictSame(statuses, ['connecting', 'live'], 'on one connection')
    t.comment(
      `${to} events, ${pace} a second written; live after ${Math.round(liveAt - begun)} ms, ${single} came by themselves`,
    )
  })
}
