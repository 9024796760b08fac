// What one SQLite commit a batch costs: the service's table of records, its pragmas, one row an event.

import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

export class BatchTable {
  readonly #db: DatabaseSync
  readonly #insert
  readonly #heads = new Map<number, number>()

  constructor(path: string) {
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
    this.#db = new DatabaseSync(path)
    this.#db.exec('PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
    this.#db.exec(
      `CREATE TABLE records (
         log INTEGER NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, kind INTEGER NOT NULL,
         time INTEGER NOT NULL, line BLOB NOT NULL, PRIMARY KEY (log, first_seq)
       ) STRICT, WITHOUT ROWID`,
    )
    this.#insert = this.#db.prepare('INSERT INTO records VALUES (?, ?, ?, 1, 0, ?)')
  }

  /** One transaction, on the disk when it returns. */
  commit(log: number, lines: Iterable<Uint8Array>): void {
    let seq = this.#heads.get(log) ?? 0
    this.#db.exec('BEGIN IMMEDIATE')
    for (const line of lines) {
      this.#insert.run(log, seq, seq, line)
      seq++
    }
    this.#db.exec('COMMIT')
    this.#heads.set(log, seq)
  }
}
