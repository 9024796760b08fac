// One page taken from one server process: how long, and what it cost the server.

import { setTimeout as delay } from 'node:timers/promises'
import { timeGet } from './http-get.ts'
import type { MeasuredProcess } from './measured-process.ts'

export interface PageCost {
  /** Milliseconds from the request to the first and to the last byte of the body. */
  readonly first: number
  readonly last: number
  /** Processor time of the server, milliseconds. */
  readonly cpu: number
  readonly wireBytes: number
}

/** What the server does after the last byte belongs to the page. */
const SETTLE_MS = 30

export async function probePage(server: MeasuredProcess, path: string): Promise<PageCost> {
  const before = server.cpu()
  const { first, last, wireBytes } = await timeGet(server.port, path)
  await delay(SETTLE_MS)
  return { first, last, cpu: server.cpu() - before, wireBytes }
}

/** A started process compiles and collects for a while by itself; what follows shall not be charged for it. */
export const START_SETTLE_MS = 400

export interface FreshPage extends PageCost {
  /** MiB that the page took above the idle process, at most. */
  readonly memory: number
}

/** The first page of a process that was started for it, and the end of that process. */
export async function probeFresh(start: () => Promise<MeasuredProcess>, path: string): Promise<FreshPage> {
  const server = await start()
  try {
    await delay(START_SETTLE_MS)
    const idle = server.memory()
    server.resetPeakMemory()
    const cost = await probePage(server, path)
    return { ...cost, memory: server.peakMemory() - idle }
  } finally {
    await server.stop()
  }
}

/** Ask each server in turn, round by round, so that a slow moment of the machine meets all of them. */
export async function inTurns<T>(rounds: number, probes: readonly (() => Promise<T>)[]): Promise<T[][]> {
  const results: T[][] = probes.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [place, probe] of probes.entries()) results[place]?.push(await probe())
  }
  return results
}
