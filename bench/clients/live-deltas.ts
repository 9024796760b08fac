// A window that is open already, and the deltas of one more step that join it one by one.

import type { SessionHistoryRecord } from '../../codec/index.ts'
import { asRecord, pageEvents, represent, shortTurns, stepOpening, textDelta } from '../fixtures/index.ts'
import { answerTask } from '../measuring/child-task.ts'
import { twoDefinitions } from '../measuring/page-fold.ts'

export interface LiveDeltasTask {
  /** `page`: the packed page of 416,756 events. `turns`: a thousand short turns. */
  readonly window: 'page' | 'turns'
  readonly deltas: number
  /** Deltas of the first and of the last part that are timed. */
  readonly part: number
  readonly rounds: number
}

export interface LiveDeltasResult {
  /** Records of the window before the first delta. */
  readonly records: number
  /** Items of its view. */
  readonly items: number
  /** Mean microseconds of a delta, for each round. */
  readonly first: number[]
  readonly last: number[]
}

const WARM_UP_ROUNDS = 2
/** A turn that the page has not. */
const TURN = 10_000

await answerTask(({ window: kind, deltas, part, rounds }: LiveDeltasTask): LiveDeltasResult => {
  const window = openWindow(kind)
  const next = (window.at(-1)?.event.seq ?? -1) + 1
  const live = Array.from({ length: deltas }, (_, place) =>
    asRecord(textDelta(` word${place % 10}`, next + place, TURN)),
  )
  const result = { records: window.length, items: 0, first: [] as number[], last: [] as number[] }
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    const { first, last, items } = oneRound(window, live, part)
    if (round < 0) continue
    result.items = items
    result.first.push(first)
    result.last.push(last)
  }
  return result
})

function openWindow(kind: LiveDeltasTask['window']): SessionHistoryRecord[] {
  const window = kind === 'page' ? represent(pageEvents('huge-words'), 'packed') : shortTurns(1_000)
  const seq = (window.at(-1)?.event.seq ?? -1) + 1
  const opening = [...stepOpening(seq, TURN), textDelta('', seq + 3, TURN)]
  window.push(...opening.map(asRecord))
  return window
}

function oneRound(window: readonly SessionHistoryRecord[], live: readonly SessionHistoryRecord[], part: number) {
  const assembler = twoDefinitions()
  assembler.apply({ type: 'replace', entries: window, from: 0, hasMore: false, reason: 'opened' })
  let shown = assembler.view('chat')
  const marks: number[] = []
  for (const [place, entry] of live.entries()) {
    if (place % part === 0) marks.push(performance.now())
    assembler.apply({ type: 'append', entries: [entry] })
    shown = assembler.view('chat')
  }
  marks.push(performance.now())
  const microseconds = (from: number, to: number) =>
    (((marks.at(to) as number) - (marks.at(from) as number)) / part) * 1000
  return { first: microseconds(0, 1), last: microseconds(-2, -1), items: shown.length }
}
