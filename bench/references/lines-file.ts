// The bytes that the plain servers send: a page's NDJSON body in a file, and the same lines in a SQLite table.

import { readFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** Bytes of one write to the socket and of one read from the table, the same as the service's own. */
export const BATCH_BYTES = 256 * 1024

/** A table of one line a row, with the pragmas of a store that must survive a crash. */
export function writeLinesTable(path: string, lines: Iterable<Uint8Array>): void {
  rmSync(path, { force: true })
  const db = new DatabaseSync(path)
  db.exec('PRAGMA page_size = 8192; PRAGMA journal_mode = WAL')
  db.exec('CREATE TABLE lines (place INTEGER PRIMARY KEY, line BLOB NOT NULL) STRICT')
  const insert = db.prepare('INSERT INTO lines (line) VALUES (?)')
  db.exec('BEGIN')
  for (const line of lines) insert.run(line)
  db.exec('COMMIT')
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

/** The lines of a body, newlines included. */
export function* linesOf(body: Buffer): Generator<Buffer> {
  for (let start = 0; start < body.length; ) {
    const end = body.indexOf(0x0a, start) + 1
    yield body.subarray(start, end)
    start = end
  }
}

export function readBatches(path: string): Buffer[] {
  const body = readFileSync(path)
  const batches: Buffer[] = []
  for (let start = 0; start < body.length; start += BATCH_BYTES) batches.push(body.subarray(start, start + BATCH_BYTES))
  return batches
}
