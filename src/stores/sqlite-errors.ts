// What SQLite reports, as problems that a caller can act on.

import { Problem } from '../../codec/index.ts'

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_FULL = 13

/** Any error as a Problem; what is not SQLite's comes back as it is. */
export function storeProblem(error: unknown): unknown {
  if (!(error instanceof Error) || !('errcode' in error)) return error
  const code = Number(error.errcode) & 0xff
  if (code === SQLITE_FULL) {
    return new Problem('store/full', 'the disk is full: nothing was stored', { retryAfter: 10 }, { cause: error })
  }
  return new Problem(
    'store/unavailable',
    `the store cannot answer: ${error.message}`,
    { retryAfter: 1 },
    { cause: error },
  )
}

/** Another connection holds what is needed; asking again a moment later helps. */
export function isBusy(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error)) return false
  const code = Number(error.errcode) & 0xff
  return code === SQLITE_BUSY || code === SQLITE_LOCKED
}
