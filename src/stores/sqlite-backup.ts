// A copy of a store that is in use: consistent as of one moment, made while others read and write.

import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { backup, DatabaseSync } from 'node:sqlite'
import { Problem } from '../../codec/index.ts'
import { storeProblem } from './sqlite-errors.ts'
import { forgetGeneration, openReader } from './sqlite-schema.ts'

/** All pages in one step: a copy in several steps would begin again at each commit of another connection. */
const ALL_PAGES = 0x7fff_ffff

/**
 * Copy the store at `path` to the new file `target`. The copy's first opening begins a new generation, so no cursor of
 * the original is taken for one of the copy.
 * @throws Problem `store/unavailable` when there is no store or the target exists, `store/full`
 */
export async function backupSqliteStore(path: string, target: string): Promise<void> {
  if (!existsSync(path)) throw new Problem('store/unavailable', `there is no store at ${path}`)
  if (existsSync(target)) throw new Problem('store/unavailable', `${target} exists already`)
  const unfinished = `${target}.unfinished`
  try {
    await rm(unfinished, { force: true })
    const { db } = openReader(path)
    try {
      await backup(db, unfinished, { rate: ALL_PAGES })
    } finally {
      db.close()
    }
    const copy = new DatabaseSync(unfinished)
    try {
      // One file: without its journal it can be moved about.
      copy.exec('PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL')
      forgetGeneration(copy)
    } finally {
      copy.close()
    }
    await rename(unfinished, target)
  } catch (error) {
    await rm(unfinished, { force: true })
    throw storeProblem(error)
  }
}
