// The sessions table on the writing connection: lives begin, become visible, end and are cleared. Transactions too.

import type { DatabaseSync } from 'node:sqlite'
import { differingField, Problem } from '../../codec/index.ts'
import type { SessionState } from '../history/index.ts'
import { SqliteReader } from './sqlite-reader.ts'
import type { Connection } from './sqlite-schema.ts'
import { DELETED, HIDDEN, newLife, VISIBLE } from './sqlite-schema.ts'
import type { NewHeader } from './writer-protocol.ts'

/** Cleared in one transaction: so many records or surface entries, or records of so many bytes together. */
const CLEARED_ROWS = 256
const CLEARED_BYTES = 1024 * 1024
/** Pages given back to the file system in one step; fewer free pages than this wait for their next use. */
const VACUUMED_PAGES = 4_096

export class SqliteSessions {
  readonly reader: SqliteReader
  readonly #db: DatabaseSync
  readonly #statements

  constructor(connection: Connection) {
    this.#db = connection.db
    this.reader = new SqliteReader(connection)
    this.#statements = prepare(connection.db)
  }

  begin(): void {
    this.#statements.begin.run()
  }

  commit(): void {
    this.#statements.commit.run()
  }

  /** Fold into the file what of the WAL no reader needs, without waiting for any. What fails is left to the next time. */
  checkpoint(): void {
    try {
      this.#statements.checkpoint.get()
    } catch {
      // A commit that cannot be made durable says so itself.
    }
  }

  /** SQLite ends a transaction by itself after some errors, a full disk for one. */
  get inTransaction(): boolean {
    return this.#db.isTransaction
  }

  rollback(): void {
    if (this.inTransaction) this.#db.exec('ROLLBACK')
  }

  savepoint<T>(work: () => T): T {
    this.#statements.savepoint.run()
    try {
      const result = work()
      this.#statements.release.run()
      return result
    } catch (error) {
      if (this.inTransaction) this.#db.exec('ROLLBACK TO request; RELEASE request')
      throw error
    }
  }

  /** Another value than last time: another process has committed meanwhile. */
  dataVersion(): number {
    return Number(this.#statements.dataVersion.get()?.data_version)
  }

  create(
    header: NewHeader,
    given: ReadonlyMap<string, string>,
    now: number,
  ): { created: boolean; session: SessionState } {
    const session = this.reader.describe(header.id)
    if (session) {
      const path = differingField(session.header, given)
      if (path !== undefined) throw exists(session, path)
      return { created: false, session }
    }
    this.insert(header, VISIBLE, now)
    return { created: true, session: this.reader.describe(header.id) as SessionState }
  }

  /** @returns the number of the new life */
  insert({ id, text, parentSession, origin, createdAt }: NewHeader, state: number, now: number): number {
    const { lastInsertRowid } = this.#statements.insert.run(
      id,
      newLife(),
      state,
      text,
      parentSession ?? null,
      origin ?? null,
      createdAt,
      now,
    )
    return Number(lastInsertRowid)
  }

  setState(log: number, state: number): void {
    this.#statements.setState.run(state, log)
  }

  /** An import begun, by this process or another, is no longer to be finished when its state has changed. */
  isHidden(log: number): boolean {
    return this.#statements.stateOf.get(log)?.state === HIDDEN
  }

  /** What a crash left half imported. */
  forgetHidden(): void {
    this.#statements.forgetHidden.run()
  }

  /** Outside a transaction: remove a little of a dead life, give some free pages back. Returns whether that did anything. */
  clear(): boolean {
    const dead = this.#statements.dead.get() !== undefined
    if (dead) {
      this.begin()
      this.clearSome()
      this.commit()
    }
    return this.#vacuumSome() || dead
  }

  /** Inside a transaction: remove a little of a dead life. */
  clearSome(): void {
    const log = this.#statements.dead.get()?.log as number | undefined
    if (log === undefined) return
    let bytes = 0
    let last: number | undefined
    for (const row of this.#statements.recordSizes.all(log, CLEARED_ROWS)) {
      last = row.first_seq as number
      bytes += row.bytes as number
      if (bytes >= CLEARED_BYTES) break
    }
    if (last !== undefined) this.#statements.clearRecords.run(log, last)
    else if (Number(this.#statements.clearSurface.run(log, log, CLEARED_ROWS).changes) === 0)
      this.#statements.remove.run(log)
  }

  #vacuumSome(): boolean {
    const free = this.#freePages()
    if (free <= VACUUMED_PAGES) return false
    this.#db.exec(`PRAGMA incremental_vacuum(${VACUUMED_PAGES / 8})`)
    return this.#freePages() < free
  }

  #freePages(): number {
    return Number(this.#statements.freePages.get()?.freelist_count)
  }
}

/** @param path of the first field of its header that differs, where that is known */
export function exists({ id, epoch, head }: SessionState, path?: string): Problem {
  if (path === undefined)
    return new Problem('session/exists', `session ${id} exists and is another one`, { epoch, head })
  return new Problem('session/exists', `session ${id} exists, and its ${path} is another one`, { path, epoch, head })
}

function prepare(db: DatabaseSync) {
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    checkpoint: db.prepare('PRAGMA wal_checkpoint(PASSIVE)'),
    savepoint: db.prepare('SAVEPOINT request'),
    release: db.prepare('RELEASE request'),
    dataVersion: db.prepare('PRAGMA data_version'),
    freePages: db.prepare('PRAGMA freelist_count'),
    insert: db.prepare(
      `INSERT INTO sessions (id, life, state, header, parent, origin, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    setState: db.prepare('UPDATE sessions SET state = ? WHERE log = ?'),
    stateOf: db.prepare('SELECT state FROM sessions WHERE log = ?'),
    forgetHidden: db.prepare(`UPDATE sessions SET state = ${DELETED} WHERE state = ${HIDDEN}`),
    dead: db.prepare(`SELECT log FROM sessions WHERE state <> 1 AND state = ${DELETED} LIMIT 1`),
    // The length of a blob stands at its row's head: no line is read.
    recordSizes: db.prepare(
      'SELECT first_seq, length(line) AS bytes FROM records WHERE log = ? ORDER BY first_seq LIMIT ?',
    ),
    clearRecords: db.prepare('DELETE FROM records WHERE log = ? AND first_seq <= ?'),
    clearSurface: db.prepare(
      'DELETE FROM surface WHERE log = ? AND seq IN (SELECT seq FROM surface WHERE log = ? ORDER BY seq LIMIT ?)',
    ),
    remove: db.prepare('DELETE FROM sessions WHERE log = ?'),
  }
}
