// Following: how late a live line is, what a thousand followers cost, and how fast a stored log is caught up with.

import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { longSessionHeader, longSessionPieces } from '../fixtures/index.ts'
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
/** Not counted: processes that were idle find their memory cold. */
const WARM_UP_SECONDS = 3
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
  const figures: Figure[] = []
  const seconds = bench.quick ? 4 : 15
  for (const events of LENGTHS) {
    const id = `latency-${events}`
    bench.progress(`live latency, session of ${events.toLocaleString('en')} events`)
    await importSession(service, longSessionHeader(id), longSessionPieces(events))
    const client = await LiveClient.open(service.port, `/v1/sessions/${id}/follow?afterSeq=${events - 1}`)
    const ticker = await Ticker.open(service.port, id)
    await ticker.run(RATE, WARM_UP_SECONDS + seconds)
    await settled(() => client.lines)
    const name = `session of ${events.toLocaleString('en')}`
    figures.push(
      ...delays(`append to follower, ${name}`, client.delays.slice(RATE * WARM_UP_SECONDS)),
      ...delays(`append to acknowledgement, ${name}`, ticker.delays.slice(RATE * WARM_UP_SECONDS)),
    )
    client.close()
    ticker.close()
  }
  bench.progress('the same pace, a plain commit server')
  const plain = await MeasuredProcess.startReference(new URL('../references/commit-server.ts', import.meta.url), [
    join(bench.directory, 'live-commits.db'),
  ])
  try {
    const ticker = await Ticker.open(plain.port, 'plain')
    await ticker.run(RATE, WARM_UP_SECONDS + seconds)
    figures.push(
      ...delays('append to acknowledgement, plain commit server', ticker.delays.slice(RATE * WARM_UP_SECONDS)),
    )
    ticker.close()
  } finally {
    await plain.stop()
  }
  return figures
}

/** A thousand followers, 50 events a second. */
async function fanOut(bench: Bench, service: MeasuredProcess): Promise<Figure[]> {
  bench.progress(`${FOLLOWERS.toLocaleString('en')} followers`)
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
  const name = `${FOLLOWERS.toLocaleString('en')} followers, 50 events/s`
  return [
    single(
      `${name}, lines received`,
      '',
      lines,
      `of ${(sent * FOLLOWERS).toLocaleString('en')}, ${faults} out of order`,
    ),
    ...delays(`${name}, append to follower`, all),
    ...delays(`${name}, /livez beside it`, waits),
    single(`${name}, processor`, '', busy / 1000 / seconds, 'cores'),
    single('memory of a follower, idle', 'bytes', ((idle - before) * 1024 * 1024) / FOLLOWERS, 'resident'),
    single('memory of a follower, after live lines', 'bytes', ((live - before) * 1024 * 1024) / FOLLOWERS, 'resident'),
  ]
}

/** From the first event of a stored session to its end. */
async function catchUp(bench: Bench, service: MeasuredProcess): Promise<Figure[]> {
  bench.progress(`catching up with ${STORED.toLocaleString('en')} events`)
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
    figures.push(spread(`catching up with ${STORED.toLocaleString('en')} events, ${chunks}`, '/s', rates, 'events'))
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

/** Until a count has not moved for a while. */
async function settled(count: () => number): Promise<void> {
  for (let before = -1; before !== count(); await delay(200)) before = count()
}
