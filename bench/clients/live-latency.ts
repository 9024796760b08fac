// One event after another at a steady pace, and when each is acknowledged and seen. The targets are served in turns, so
// that a slow moment of the machine meets all of them.

import { setTimeout as delay } from 'node:timers/promises'
import { answerTask } from '../measuring/child-task.ts'
import { LiveClient, Ticker } from '../measuring/live-client.ts'

export interface LatencyTarget {
  readonly port: number
  /** The session appended to. */
  readonly id: string
  /** Path of the followed stream; without it nobody follows. */
  readonly follow?: string
}

export interface LatencyTask {
  readonly targets: readonly LatencyTarget[]
  /** Events a second. */
  readonly rate: number
  /** Of one turn, all of which is counted. */
  readonly seconds: number
  /** At the beginning of each turn, not counted: a process that was idle finds its memory cold. */
  readonly uncountedSeconds: number
  readonly rounds: number
}

/** Milliseconds from when an event was due. */
export interface LatencyTurn {
  /** To its line at the follower; empty when nobody follows. */
  readonly followed: readonly number[]
  readonly acknowledged: readonly number[]
}

/** For each target its turns. */
export type LatencyResult = readonly (readonly LatencyTurn[])[]

await answerTask(async ({ targets, rounds, ...pace }: LatencyTask): Promise<LatencyResult> => {
  const turns: LatencyTurn[][] = targets.map(() => [])
  const clients = await Promise.all(targets.map(openFollower))
  for (let round = 0; round < rounds; round++) {
    for (const [place, target] of targets.entries()) {
      turns[place]?.push(await oneTurn(target, clients[place], pace))
    }
  }
  for (const client of clients) client?.close()
  return turns
})

async function oneTurn(
  { port, id }: LatencyTarget,
  client: LiveClient | undefined,
  { rate, seconds, uncountedSeconds }: Pick<LatencyTask, 'rate' | 'seconds' | 'uncountedSeconds'>,
): Promise<LatencyTurn> {
  // A connection of its own: servers close those that are quiet for as long as the other turns take.
  const ticker = await Ticker.open(port, id)
  const before = client?.lines ?? 0
  const count = await ticker.run(rate, uncountedSeconds + seconds)
  while (client !== undefined && client.lines < before + count) await delay(5)
  ticker.close()
  const counted = (delays: readonly number[], from: number) => delays.slice(from + rate * uncountedSeconds)
  return { followed: counted(client?.delays ?? [], before), acknowledged: counted(ticker.delays, 0) }
}

async function openFollower({ port, follow }: LatencyTarget): Promise<LiveClient | undefined> {
  return follow === undefined ? undefined : LiveClient.open(port, follow)
}
