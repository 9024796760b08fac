// Folds steps of white space in each partition, and blocks that arrive live, in turns: if a fold looks again at what it
// has seen, four times as much takes sixteen times as long.

import type { SessionHistoryRecord } from '../../codec/index.ts'
import { liveBlock, PARTITIONS, whiteSpaceStep } from '../fixtures/index.ts'
import { answerTask } from '../measuring/child-task.ts'
import { collectYoung } from '../measuring/heap.ts'
import { twoDefinitions } from '../measuring/page-fold.ts'
import { readViews } from '../measuring/view-reading.ts'

export interface WhiteSpaceTask {
  readonly fragments: readonly number[]
  /** Characters of a block that arrives live. */
  readonly blocks: readonly number[]
  readonly rounds: number
  readonly blockRounds: number
}

export interface Timed {
  readonly name: string
  /** Fragments of white space, or characters of the live block. */
  readonly size: number
  /** Milliseconds of each round. */
  readonly times: number[]
  /** Of the views; the same for each partition of one size. */
  readonly checksum: string
}

const LIVE = 'live block'
const WARM_UP_ROUNDS = 3

await answerTask(({ fragments, blocks, rounds, blockRounds }: WhiteSpaceTask): Timed[] => [
  ...inTurns(
    rounds,
    PARTITIONS.flatMap((name) => fragments.map((size) => ({ name, size, records: whiteSpaceStep(size, name) }))),
    foldAtOnce,
  ),
  ...inTurns(
    blockRounds,
    blocks.map((size) => ({ name: LIVE, size, records: liveBlock(size) })),
    foldLive,
  ),
])

interface Case {
  readonly name: string
  readonly size: number
  readonly records: readonly SessionHistoryRecord[]
}

function inTurns(
  rounds: number,
  cases: readonly Case[],
  fold: (records: Case['records']) => readonly object[],
): Timed[] {
  const timed = cases.map(({ name, size, records }) => {
    const { checksum } = readViews(fold(records), { hashed: true })
    return { name, size, records, times: [] as number[], checksum }
  })
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    for (const { records, times } of timed) {
      collectYoung()
      const started = performance.now()
      readViews(fold(records))
      if (round >= 0) times.push(performance.now() - started)
    }
  }
  return timed.map(({ records: _, ...result }) => result)
}

function foldAtOnce(entries: Case['records']): readonly object[] {
  const assembler = twoDefinitions()
  assembler.apply({ type: 'replace', entries, from: 0, hasMore: false, reason: 'opened' })
  return assembler.view('chat')
}

/** Each delta is a change of its own, and the views are taken after it, as they are for somebody who watches. */
function foldLive(entries: Case['records']): readonly object[] {
  const assembler = twoDefinitions()
  assembler.apply({ type: 'replace', entries: [], from: 0, hasMore: false, reason: 'opened' })
  let views: readonly object[] = []
  for (const entry of entries) {
    assembler.apply({ type: 'append', entries: [entry] })
    views = assembler.view('chat')
  }
  return views
}
