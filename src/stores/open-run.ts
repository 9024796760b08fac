// The open run read back from its pieces: the records that hold the deltas stored since the run began.
//
// A run may have thousands of pieces and a reader waits for it, so queries give them as text, which costs a fraction of
// as many byte arrays, and they are parsed as input is.

import { members, parseInputLine, Run } from '../../codec/index.ts'

/** @param lines record lines of consecutive deltas of one run, in order */
export function runOfPieces(lines: readonly string[]): Run | undefined {
  let run: Run | undefined
  for (const line of lines) {
    for (const { delta, seq, time } of deltas(line)) {
      if (run) run.add(delta, seq, time)
      else run = new Run(delta, seq, time)
    }
  }
  return run
}

function deltas(line: string): Iterable<{ delta: Parameters<Run['add']>[0]; seq: number; time: number }> {
  const item = parseInputLine(line.trimEnd())
  if (item.kind === 'row') return members(item.row)
  const { delta, seq, time } = item.event
  if (!delta || seq === undefined || time === undefined) throw new Error(`event ${seq} is no delta of an open run`)
  return [{ delta, seq, time }]
}
