// What a page costs the one who opens it: time step by step, in fresh processes and in one that has folded it before, and
// heap, in fresh processes.

import type { FoldFileResult, FoldFileTask } from '../clients/fold-file.ts'
import type { Representation } from '../fixtures/index.ts'
import { REPRESENTATIONS } from '../fixtures/index.ts'
import { runChild } from '../measuring/child-task.ts'
import type { HeapUse } from '../measuring/heap.ts'
import type { Folded, StageTimes } from '../measuring/page-fold.ts'
import { STAGES } from '../measuring/page-fold.ts'
import { inTurns } from '../measuring/page-probe.ts'
import type { Bodies } from './bodies.ts'
import { byRepresentation } from './bodies.ts'

export interface ClientCost {
  /** Of each round, which is a process started for it. */
  readonly fresh: readonly StageTimes[]
  /** Of each round in one process. */
  readonly same: readonly StageTimes[]
  readonly heaps: readonly HeapUse[]
  readonly folded: Folded
}

export type ClientCosts = Readonly<Record<Representation, ClientCost>>

export interface ClientRounds {
  readonly fresh: number
  readonly same: number
  readonly sameWarmUp: number
  readonly heap: number
}

export async function measureClient({ bodies }: Bodies, rounds: ClientRounds): Promise<ClientCosts> {
  const inEach = (times: number, task: Omit<FoldFileTask, 'file'>) =>
    inTurns(
      times,
      REPRESENTATIONS.map((as) => () => runChild<FoldFileResult>('fold-file', { ...task, file: bodies[as].file })),
    )
  const fresh = await inEach(rounds.fresh, { what: 'times' })
  const same = await inEach(1, { what: 'times', rounds: rounds.same, warmUpRounds: rounds.sameWarmUp })
  const weighed = await inEach(rounds.heap, { what: 'heap' })
  const costs = byRepresentation(
    REPRESENTATIONS.map((as, place) => [as, costOf(fresh[place] ?? [], same[place] ?? [], weighed[place] ?? [])]),
  )
  checkFolded(costs.raw.folded, costs.packed.folded)
  return costs
}

export function total(times: StageTimes): number {
  return STAGES.reduce((sum, stage) => sum + times[stage], 0)
}

/** Figures of clients that came to different views are worth nothing. Throws for them, and for entries told twice. */
export function checkFolded(raw: Folded, packed: Folded): void {
  for (const fact of ['checksum', 'items', 'characters', 'deltas', 'lastDeltaSeq'] as const) {
    if (raw[fact] !== packed[fact]) throw new Error(`raw and packed differ in ${fact}: ${raw[fact]}, ${packed[fact]}`)
  }
  for (const { inputs, records } of [raw, packed]) {
    if (inputs !== records) throw new Error(`${inputs} inputs for ${records} records`)
  }
}

function costOf(
  fresh: readonly FoldFileResult[],
  same: readonly FoldFileResult[],
  weighed: readonly FoldFileResult[],
): ClientCost {
  return {
    fresh: fresh.flatMap(({ times }) => times),
    same: same.flatMap(({ times }) => times),
    heaps: weighed.flatMap(({ heap }) => heap ?? []),
    folded: theOne([...fresh, ...same, ...weighed].map(({ folded }) => folded)),
  }
}

/** All rounds fold the same bytes, at once or as they come. */
function theOne(folded: readonly Folded[]): Folded {
  const [first] = folded as [Folded]
  for (const other of folded) {
    if (JSON.stringify(other) !== JSON.stringify(first)) throw new Error('the same bytes were folded to other views')
  }
  return first
}
