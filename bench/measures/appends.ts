// Appends of 20 token deltas from 64 sessions at once, each with one request in flight, against what one SQLite commit a
// batch allows: bare, in a loop, and behind a plain HTTP server.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import type { LoadResult } from '../measuring/append-load.ts'
import { appendLoad, BATCH_EVENTS } from '../measuring/append-load.ts'
import { MeasuredProcess } from '../measuring/measured-process.ts'
import type { Figure, Section } from '../measuring/report.ts'
import { ratio, spread } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'
import { startService } from '../measuring/service.ts'
import { percentile } from '../measuring/statistics.ts'

const SESSIONS = 64
const WARM_UP_MS = 500
/** Of each server once, before the first round. */
const FIRST_WARM_UP_MS = 2_000

/** Requests made for each session and second, more than any server here can answer. */
const BATCHES_A_SECOND = 250

interface Round extends LoadResult {
  readonly writtenBytes: number
}

export async function measureAppends(bench: Bench): Promise<Section> {
  const rounds = bench.quick ? 3 : 8
  const measureMs = bench.quick ? 1_500 : 2_000
  const service = await startService(bench, 'appends')
  const plain = await MeasuredProcess.startReference(reference('commit-server'), [join(bench.directory, 'commits.db')])
  const results: { service: Round[]; plain: Round[]; bare: Round[] } = { service: [], plain: [], bare: [] }
  try {
    bench.progress('appends, warm-up')
    await underLoad(service, await createSessions(service, 'warm-up'), FIRST_WARM_UP_MS)
    await underLoad(plain, sessionIds('warm-up'), FIRST_WARM_UP_MS)
    // The disk has slow moments: many short rounds in turns, so that all three meet them.
    for (let round = 0; round < rounds; round++) {
      bench.progress(`appends, round ${round + 1} of ${rounds}`)
      const ids = await createSessions(service, `round-${round}`)
      results.service.push(await underLoad(service, ids, measureMs))
      results.bare.push(commitLoop(bench, measureMs))
      results.plain.push(await underLoad(plain, ids, measureMs))
    }
  } finally {
    await Promise.all([service.stop(), plain.stop()])
  }
  const rates = {
    service: results.service.map(rate),
    plain: results.plain.map(rate),
    bare: results.bare.map(rate),
  }
  return {
    title: `Appends, ${BATCH_EVENTS} token deltas a batch, ${SESSIONS} sessions with one request in flight each`,
    figures: [
      spread('service, batches', '/s', rates.service),
      spread(
        'service, events',
        '/s',
        rates.service.map((batches) => batches * BATCH_EVENTS),
      ),
      spread('one commit a batch, bare, batches', '/s', rates.bare),
      spread('one commit a batch behind HTTP, batches', '/s', rates.plain),
      ratio('service / bare', rates.service, rates.bare, 'batches a second'),
      ratio('service / behind HTTP', rates.service, rates.plain, 'batches a second'),
      ...latencyFigures('service', results.service),
      ...latencyFigures('one commit a batch behind HTTP', results.plain),
      ...latencyFigures('one commit a batch, bare', results.bare),
      spread('service, bytes written for each appended', 'x', results.service.map(amplification)),
      spread('one commit a batch, bytes written for each appended', 'x', results.bare.map(amplification)),
    ],
  }
}

async function underLoad(server: MeasuredProcess, ids: readonly string[], measureMs: number): Promise<Round> {
  const before = server.writtenBytes()
  const batches = Math.ceil(((WARM_UP_MS + measureMs) / 1000) * BATCHES_A_SECOND)
  const load = await appendLoad({ port: server.port, ids, batches, warmUpMs: WARM_UP_MS, measureMs })
  return { ...load, writtenBytes: server.writtenBytes() - before }
}

function commitLoop(bench: Bench, measureMs: number): Round {
  const times = [WARM_UP_MS, measureMs].map(String)
  const args = [reference('commit-loop').pathname, join(bench.directory, 'loop.db'), String(SESSIONS), ...times]
  const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 2 ** 28 })
  if (status !== 0) throw new Error('the commit loop failed')
  return JSON.parse(stdout)
}

function sessionIds(name: string): string[] {
  return Array.from({ length: SESSIONS }, (_, place) => `append-${name}-${place}`)
}

async function createSessions(service: MeasuredProcess, name: string): Promise<string[]> {
  const ids = sessionIds(name)
  for (const id of ids) {
    const response = await fetch(`http://127.0.0.1:${service.port}/v1/sessions/${id}`, { method: 'PUT' })
    const text = await response.text()
    if (!response.ok) throw new Error(`create ${id}: ${response.status} ${text}`)
  }
  return ids
}

function latencyFigures(name: string, rounds: readonly Round[]): Figure[] {
  return [50, 99].map((percent) =>
    spread(
      `${name}, acknowledged, p${percent}`,
      'ms',
      rounds.map(({ latencies }) => percentile(latencies, percent)),
    ),
  )
}

function rate({ batches, elapsed }: LoadResult): number {
  return (batches / elapsed) * 1000
}

function amplification({ writtenBytes, eventBytes }: Round): number {
  return writtenBytes / eventBytes
}

function reference(name: string): URL {
  return new URL(`../references/${name}.ts`, import.meta.url)
}
