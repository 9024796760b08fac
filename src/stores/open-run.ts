// The open run read back from its pieces: the records that hold the deltas stored since the run began.
//
// A run may have thousands of pieces and a reader waits for it, so queries give them as text, which costs a fraction of
// as many byte arrays, and they are parsed as input is.

import { members, parseInputLine, Run } from '../../codec/index.ts'
import { LastUsed } from './last-used.ts'

/**
 * @param lines record lines of consecutive deltas of one run, in order; the first may hold members that are known
 * @param run what is known of the run, which is extended
 */
export function runOfPieces(lines: readonly string[], run?: Run): Run | undefined {
  let known = run
  for (const line of lines) {
    for (const { delta, seq, time } of deltas(line)) {
      if (!known) known = new Run(delta, seq, time)
      else if (seq >= known.nextSeq) known.add(delta, seq, time)
    }
  }
  return known
}

/** Runs kept: each is at most a row and what is made of it. */
const KEPT_RUNS = 32

/** Open runs as far as they were read, so that a reader of a run that is growing parses only what is new of it. */
export class OpenRuns {
  readonly #runs = new LastUsed<number, Run>(KEPT_RUNS)

  /**
   * The open run of a log, known at least up to `to`.
   * @param first its first seq
   * @param piecesFrom lines of the records from the one that holds this seq on
   */
  upTo(log: number, first: number, to: number, piecesFrom: (seq: number) => readonly string[]): Run | undefined {
    const kept = this.#runs.get(log)
    let run = kept?.firstSeq === first ? kept : undefined
    if (!run || run.nextSeq < to) run = runOfPieces(piecesFrom(run?.nextSeq ?? first), run)
    if (run) this.#runs.set(log, run)
    else this.#runs.delete(log)
    return run
  }
}

function deltas(line: string): Iterable<{ delta: Parameters<Run['add']>[0]; seq: number; time: number }> {
  const item = parseInputLine(line.trimEnd())
  if (item.kind === 'row') return members(item.row)
  const { delta, seq, time } = item.event
  if (!delta || seq === undefined || time === undefined) throw new Error(`event ${seq} is no delta of an open run`)
  return [{ delta, seq, time }]
}
