// A store in a file of its own, with what a test looks at beside it.

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Test } from 'tap'
import type { HistoryStore } from '../../src/history/index.ts'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'

export interface Opened {
  readonly path: string
  readonly store: HistoryStore
  readonly history: History
  /** A connection of its own, as another program would have. */
  readonly db: DatabaseSync
}

/** Closed when the test ends. */
export async function opened(t: Test, options: { busyTimeout?: number } = {}): Promise<Opened> {
  const path = join(t.testdir(), 'history.db')
  const store = await openSqliteStore(path, options)
  const db = new DatabaseSync(path, { timeout: 5_000 })
  t.teardown(async () => {
    db.close()
    await store.close()
  })
  return { path, store, history: new History(store), db }
}
