// A client that has the bytes of a page already and folds them step by step: once, as a client that opens its first
// page, or again and again, as one that has been open for a while.

import { closeSync, openSync, readFileSync, readSync } from 'node:fs'
import { answerTask } from '../measuring/child-task.ts'
import type { HeapUse } from '../measuring/heap.ts'
import { HeapWatch } from '../measuring/heap.ts'
import type { Folded, StageTimes } from '../measuring/page-fold.ts'
import { PageFold } from '../measuring/page-fold.ts'

export interface FoldFileTask {
  readonly file: string
  /** `heap`: samples and collections cost time, so no times come out. */
  readonly what: 'times' | 'heap'
  /** Of `times`: those that are not counted, and those that are. */
  readonly warmUpRounds?: number
  readonly rounds?: number
}

export interface FoldFileResult {
  /** Of each round. */
  readonly times: readonly StageTimes[]
  readonly folded: Folded
  readonly heap: HeapUse | undefined
}

/** What a socket gives at once. */
const PIECE_BYTES = 64 * 1024

await answerTask((task: FoldFileTask) => (task.what === 'times' ? timed(task) : weighed(task)))

function timed({ file, warmUpRounds = 0, rounds = 1 }: FoldFileTask): FoldFileResult {
  const body = readFileSync(file)
  const times: StageTimes[] = []
  for (let round = -warmUpRounds; ; round++) {
    const fold = foldOnce(body)
    if (round >= 0) times.push(fold.times)
    if (times.length === rounds) return { times, folded: fold.folded(), heap: undefined }
  }
}

function foldOnce(body: Uint8Array): PageFold {
  const fold = new PageFold()
  for (let start = 0; start < body.length; start += PIECE_BYTES) fold.take(body.subarray(start, start + PIECE_BYTES))
  fold.end()
  fold.fold()
  fold.read()
  return fold
}

/** Reads piece by piece: bytes that were folded are not kept. */
function weighed({ file }: FoldFileTask): FoldFileResult {
  const input = openSync(file, 'r')
  const piece = Buffer.alloc(PIECE_BYTES)
  const read = () => readSync(input, piece, 0, PIECE_BYTES, null)
  const watch = new HeapWatch()
  const fold = new PageFold()
  for (let length = read(); length > 0; length = read()) {
    fold.takeAndFold(piece.subarray(0, length))
    watch.sample()
  }
  fold.fold(fold.end())
  fold.read()
  const heap = watch.end()
  closeSync(input)
  return { times: [], folded: fold.folded(), heap }
}
