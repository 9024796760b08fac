// Owns reading the range that a followed stream left out.

import type { ChunksMode, Range } from '../../codec/index.ts'
import { AnswerError, ServiceError } from './errors.ts'
import { openRange } from './history-page.ts'
import type { RecordLine } from './record-lines.ts'
import type { Wiring } from './wiring.ts'

export interface GapOptions {
  readonly epoch: string
  readonly chunks: ChunksMode | undefined
  readonly signal: AbortSignal
}

/**
 * The records of exactly this range of the log. Tried once: when it fails, the whole connection is made anew, which
 * begins at the gap. Throws as a page does.
 */
export async function* readGap(
  wiring: Wiring,
  path: string,
  { from, to }: Range,
  options: GapOptions,
): AsyncGenerator<RecordLine[]> {
  const once = { ...wiring, retry: { ...wiring.retry, tries: 1 } }
  const page = await openRange(once, path, { ...options, fromSeq: from, toSeq: to }).catch((error: unknown) => {
    const ahead = error instanceof ServiceError && error.code === 'history/ahead'
    throw ahead ? AnswerError.malformed(`the stream came to seq ${to}, which the log does not have`, error) : error
  })
  // Reading lets go of the connection itself, also when it is left in the middle.
  yield* page.lines()
}
