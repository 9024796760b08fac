// Following: how late a live line is, what a thousand followers cost, and how fast a stored log is caught up with.

import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { LatencyResult, LatencyTarget, LatencyTask, LatencyTurn } from '../clients/live-latency.ts'
import { longSessionHeader, longSessionPieces } from '../fixtures/index.ts'
import { runChild } from '../measuring/child-task.ts'
import { LiveClient, Ticker } from '../measuring/live-client.ts'
import { MeasuredProcess } from '../measuring/measured-process.ts'
import type { Figure, Section } from '../measuring/report.ts'
import { single, spread } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'
import { importSession, startService } from '../measuring/service.ts'
import { percentile } from '../measuring/statistics.ts'

const LENGTHS = [10_000, 500_000]
/** Events a second of the latency. */
const RATE = 100
/** As fast as they go, before the pace: a service in use has long been compiled. */
const WARM_UP_EVENTS = 5_000
/** A client that collects its garbage would count its own pauses: this one is done before it has to. */
const CLIENT_FLAGS = ['--max-semi-space-size=64']
const FOLLOWERS = 1_000
const STORED = 50_000

export async function measureLive(bench: Bench): Promise<Section> {
  const service = await startService(bench, 'live')
  try {
    return {
      title: 'Following',
      figures: [
        ...(await latency(bench, service)),
        ...(await fanOut(bench, service)),
        ...(await catchUp(bench, service)),
      ],
    }
  } finally {
    await service.stop()
  }
}

/** One follower, 100 events a second, on sessions of two lengths; and what a plain server needs for the commit alone. */
async function latency(bench: Bench, service: MeasuredProcess): Promise<Figure[]> {
  const plain = await MeasuredProcess.startReference(new URL('../references/commit-server.ts', import.meta.url), [
    join(bench.directory, 'live-commits.db'),
  ])
  try {
    const alone = { port: plain.port, id: 'plain' }
    const fresh = await sessionTarget(service, 'fresh', 0)
    bench.progress('live latency of a fresh process')
    const [[first] = []] = await pace([fresh], { rate: RATE, seconds: 3, uncountedSeconds: 0, rounds: 1 })
    await pace([fresh, alone], { rate: WARM_UP_EVENTS, seconds: 1, uncountedSeconds: 0, rounds: 1 })
    const targets = [alone]
    for (const events of LENGTHS) targets.push(await sessionTarget(service, `latency-${events}`, events))
    const rounds = bench.quick ? 2 : 5
    bench.progress(`live latency, sessions of ${LENGTHS.map(count).join(' and ')} events`)
    const [commits = [], ...sessions] = await pace(targets, { rate: RATE, seconds: 6, uncountedSeconds: 1, rounds })
    return [
      ...delays('append to follower, the first 300 events of a fresh process', first?.followed ?? []),
      ...sessions.flatMap((turns, place) => [
        ...turnDelays(`append to follower, session of ${count(LENGTHS[place] as number)}`, turns, 'followed'),
        ...turnDelays(`append to acknowledgement, session of ${count(LENGTHS[place] as number)}`, turns),
      ]),
      ...turnDelays('append to acknowledgement, plain commit server', commits),
    ]
  } finally {
    await plain.stop()
  }
}

async function sessionTarget(service: MeasuredProcess, id: string, events: number): Promise<LatencyTarget> {
  await importSession(service, longSessionHeader(id), longSessionPieces(events))
  return { port: service.port, id, follow: `/v1/sessions/${id}/follow?afterSeq=${events - 1}` }
}

function pace(targets: readonly LatencyTarget[], options: Omit<LatencyTask, 'targets'>): Promise<LatencyResult> {
  return runChild('live-latency', { targets, ...options }, CLIENT_FLAGS)
}

function turnDelays(name: string, turns: readonly LatencyTurn[], of: keyof LatencyTurn = 'acknowledged'): Figure[] {
  return [50, 99].map((percent) =>
    spread(
      `${name}, p${percent}`,
      'ms',
      turns.map((turn) => percentile(turn[of], percent)),
    ),
  )
}

/** A thousand followers, 50 events a second. */
async function fanOut(bench: Bench, service: MeasuredProcess): Promise<Figure[]> {
  bench.progress(`${count(FOLLOWERS)} followers`)
  await importSession(service, longSessionHeader('fan-out'), longSessionPieces(1_000))
  await delay(500)
  const before = service.memory()
  const clients: LiveClient[] = []
  for (let k = 0; k < FOLLOWERS; k++) {
    clients.push(await LiveClient.open(service.port, '/v1/sessions/fan-out/follow?afterSeq=999'))
  }
  await delay(500)
  const idle = service.memory()
  const ticker = await Ticker.open(service.port, 'fan-out')
  const pings = new Pings(service.port)
  const cpu = service.cpu()
  const seconds = bench.quick ? 4 : 15
  const sent = await ticker.run(50, seconds)
  await settled(() => clients.reduce((sum, { lines }) => sum + lines, 0))
  const busy = service.cpu() - cpu
  const waits = await pings.stop()
  const live = service.memory()
  const lines = clients.reduce((sum, client) => sum + client.lines, 0)
  const faults = clients.reduce((sum, client) => sum + client.faults, 0)
  const all = clients.flatMap((client) => client.delays)
  for (const client of clients) client.close()
  ticker.close()
  const name = `${count(FOLLOWERS)} followers, 50 events/s`
  return [
    single(`${name}, lines received`, '', lines, `of ${count(sent * FOLLOWERS)}, ${faults} out of order`),
    ...delays(`${name}, append to follower`, all),
    ...delays(`${name}, /livez beside it`, waits),
    single(`${name}, processor`, '', busy / 1000 / seconds, 'cores'),
    single('memory of a follower, idle', 'bytes', ((idle - before) * 1024 * 1024) / FOLLOWERS, 'resident'),
    single('memory of a follower, after live lines', 'bytes', ((live - before) * 1024 * 1024) / FOLLOWERS, 'resident'),
  ]
}

/** From the first event of a stored session to its end. */
async function catchUp(bench: Bench, service: MeasuredProcess): Promise<Figure[]> {
  bench.progress(`catching up with ${count(STORED)} events`)
  await importSession(service, longSessionHeader('stored'), longSessionPieces(STORED))
  const figures: Figure[] = []
  for (const chunks of ['packed', 'expanded']) {
    const rates: number[] = []
    for (let round = 0; round < (bench.quick ? 3 : 7); round++) {
      const ticker = await Ticker.open(service.port, 'stored')
      const started = performance.now()
      const client = await LiveClient.open(service.port, `/v1/sessions/stored/follow?afterSeq=-1&chunks=${chunks}`)
      // The first live line comes after all that was stored.
      const appended = ticker.run(1, 1)
      while (client.lines === 0) await delay(1)
      rates.push(STORED / ((performance.now() - started) / 1000))
      await appended
      client.close()
      ticker.close()
    }
    figures.push(spread(`catching up with ${count(STORED)} events, ${chunks}`, '/s', rates, 'events'))
  }
  return figures
}

/** The server's event loop, seen from outside: how long a request that needs nothing waits. */
class Pings {
  readonly #waits: number[] = []
  readonly #running: Promise<void>
  #stopped = false

  constructor(port: number) {
    this.#running = this.#run(`http://127.0.0.1:${port}/livez`)
  }

  async stop(): Promise<number[]> {
    this.#stopped = true
    await this.#running
    return this.#waits
  }

  async #run(url: string): Promise<void> {
    while (!this.#stopped) {
      const started = performance.now()
      await (await fetch(url)).arrayBuffer()
      this.#waits.push(performance.now() - started)
      await delay(5)
    }
  }
}

function delays(name: string, values: readonly number[]): Figure[] {
  return [50, 99].map((percent) => single(`${name}, p${percent}`, 'ms', percentile(values, percent)))
}

function count(things: number): string {
  return things.toLocaleString('en')
}

/** Until a count has not moved for a while. */
async function settled(count: () => number): Promise<void> {
  for (let before = -1; before !== count(); await delay(200)) before = count()
}
