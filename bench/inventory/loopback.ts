// A page over loopback: from a plain server that has its bytes in memory, and from the real service.

import { readFileSync } from 'node:fs'
import type { FoldAnswerResult, FoldAnswerTask } from '../clients/fold-answer.ts'
import type { PageFixtureName, Representation } from '../fixtures/index.ts'
import { PAGE_FIXTURES, REPRESENTATIONS } from '../fixtures/index.ts'
import { runChild } from '../measuring/child-task.ts'
import { getBody } from '../measuring/http-get.ts'
import { MeasuredProcess } from '../measuring/measured-process.ts'
import type { Folded } from '../measuring/page-fold.ts'
import { inTurns } from '../measuring/page-probe.ts'
import type { Bench } from '../measuring/service.ts'
import { importSession, newestPage, startService } from '../measuring/service.ts'
import type { Bodies } from './bodies.ts'
import { byRepresentation } from './bodies.ts'
import type { ClientCosts } from './client.ts'

/** Milliseconds of each round, from the request. */
export interface AnswerTimes {
  /** The last byte, when the client does nothing but read. */
  readonly transfer: number[]
  /** The last byte, when the client folds as bytes arrive. */
  readonly apiWait: number[]
  /** The views, read to their last character. */
  readonly uiReady: number[]
  /** The same two from the real service, through the SDK. */
  readonly serviceWait: number[]
  readonly serviceReady: number[]
}

export type LoopbackTimes = Readonly<Record<Representation, AnswerTimes>>

/** What the service calls each representation. */
const CHUNKS = { raw: 'expanded', projected: 'omit', packed: 'packed' } as const

export async function measureLoopback(
  bench: Bench,
  fixture: PageFixtureName,
  { bodies }: Bodies,
  costs: ClientCosts,
  rounds: number,
): Promise<LoopbackTimes> {
  const results = byRepresentation(REPRESENTATIONS.map((as) => [as, emptyTimes()]))
  const servers = await Promise.all(REPRESENTATIONS.map((as) => startMemoryServer(bodies[as].file)))
  try {
    for (const what of ['transfer', 'stream'] as const) {
      const taken = await inTurns(
        rounds,
        servers.map(
          ({ port }) =>
            () =>
              ask({ port, what }),
        ),
      )
      for (const [place, as] of REPRESENTATIONS.entries()) {
        for (const { lastByte, ready, bytes, folded } of taken[place] as FoldAnswerResult[]) {
          if (bytes !== bodies[as].fileBytes) throw new Error(`${as}: ${bytes} bytes of ${bodies[as].fileBytes}`)
          if (folded) sameViews(as, folded, costs[as].folded)
          if (what === 'transfer') results[as].transfer.push(lastByte)
          else results[as].apiWait.push(lastByte)
          if (what === 'stream') results[as].uiReady.push(ready)
        }
      }
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
  await measureService(bench, fixture, bodies, costs, rounds, results)
  return results
}

async function measureService(
  bench: Bench,
  fixture: PageFixtureName,
  bodies: Bodies['bodies'],
  costs: ClientCosts,
  rounds: number,
  results: LoopbackTimes,
): Promise<void> {
  const service = await startService(bench, `inventory-${fixture}`)
  try {
    await importSession(service, PAGE_FIXTURES[fixture].header(fixture), PAGE_FIXTURES[fixture].pieces())
    await compareWithService(service, fixture, bodies)
    const probes = REPRESENTATIONS.map((as) => () => {
      return ask({ port: service.port, what: 'sdk', session: { id: fixture, chunks: CHUNKS[as] } })
    })
    // The first page of a process is measured elsewhere.
    await inTurns(1, probes)
    const taken = await inTurns(rounds, probes)
    for (const [place, as] of REPRESENTATIONS.entries()) {
      for (const { lastByte, ready, folded } of taken[place] as FoldAnswerResult[]) {
        sameViews(as, folded as Folded, costs[as].folded)
        results[as].serviceWait.push(lastByte)
        results[as].serviceReady.push(ready)
      }
    }
  } finally {
    await service.stop()
  }
}

/** The service must send the very bytes that were measured, or there is nothing to compare. */
async function compareWithService(service: MeasuredProcess, id: string, bodies: Bodies['bodies']): Promise<void> {
  for (const as of REPRESENTATIONS) {
    const { bytes } = await getBody(service.port, `${newestPage(id)}?chunks=${CHUNKS[as]}`)
    if (!bytes.equals(readFileSync(bodies[as].file))) throw new Error(`${as}: the service sends other bytes`)
  }
}

function startMemoryServer(file: string): Promise<MeasuredProcess> {
  return MeasuredProcess.startReference(new URL('../references/memory-server.ts', import.meta.url), [file])
}

function ask(task: FoldAnswerTask): Promise<FoldAnswerResult> {
  return runChild<FoldAnswerResult>('fold-answer', task)
}

function emptyTimes(): AnswerTimes {
  return { transfer: [], apiWait: [], uiReady: [], serviceWait: [], serviceReady: [] }
}

function sameViews(as: Representation, folded: Folded, expected: Folded): void {
  if (folded.checksum !== expected.checksum || folded.inputs !== expected.inputs) {
    throw new Error(`${as}: folded as it arrived, the page has other views than folded at once`)
  }
}
