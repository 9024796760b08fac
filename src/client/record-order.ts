// Owns what comes next: arriving records against the seq that a reader goes on from. Knows no transport and no window.

import type { Range, SessionHistoryRecord } from '../../codec/index.ts'
import { recordRange } from '../../codec/index.ts'
import { AnswerError } from './errors.ts'

/** Arriving records, told apart. Those that were wholly old are gone. */
export interface Arranged<Line> {
  /** join the reader's end, one after the other */
  readonly ready: Line[]
  /** the seq after the last of them */
  readonly next: number
  /** The first record that lies ahead, all that came after it, and the range that is missing before it. */
  readonly ahead: { readonly missing: Range; readonly held: Line[] } | undefined
  /** a record that is in part old and in part new, which nobody may send; what came after it is dropped */
  readonly failure: AnswerError | undefined
}

/** `next` is the seq that the reader has not got yet. */
export function arrange<Line extends { readonly record: SessionHistoryRecord }>(
  lines: readonly Line[],
  next: number,
): Arranged<Line> {
  const ready: Line[] = []
  let end = next
  for (const [at, line] of lines.entries()) {
    const { from, to } = recordRange(line.record)
    if (to <= end) continue
    if (from > end)
      return {
        ready,
        next: end,
        ahead: { missing: { from: end, to: from }, held: lines.slice(at) },
        failure: undefined,
      }
    if (from < end) {
      const failure = AnswerError.malformed(
        `a record covers seqs ${from} to ${to - 1}, and those before ${end} came already`,
      )
      return { ready, next: end, ahead: undefined, failure }
    }
    ready.push(line)
    end = to
  }
  return { ready, next: end, ahead: undefined, failure: undefined }
}

/**
 * The same as batches to go on with, each of which the reader takes before it asks for the next; `next` is asked each
 * time. What is missing before a record that lies ahead comes from `missing`, while what lies ahead is held. Throws
 * AnswerError for a record that is in part old.
 */
export async function* inOrder<Line extends { readonly record: SessionHistoryRecord }>(
  lines: readonly Line[],
  next: () => number,
  missing: (range: Range) => AsyncIterable<Line[]>,
): AsyncGenerator<Line[]> {
  for (let rest = lines; ; ) {
    const { ready, ahead, failure } = arrange(rest, next())
    if (ready.length > 0) yield ready
    if (failure) throw failure
    if (!ahead) return
    yield* missing(ahead.missing)
    rest = ahead.held
  }
}
