// The tables, the pragmas and the version of the embedded store.
//
// Upgrade rule: `user_version` counts the schema's versions. A store of an older version is brought up one step at a
// time by `UPGRADES`, each in one transaction, when the writer opens it; a store of a newer version is refused, because
// an older program would not know what it must keep.

import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Problem } from '../../codec/index.ts'

/** "scrl" in ASCII: tells a history store from any other SQLite file. */
const APPLICATION_ID = 0x7363726c

export const SCHEMA_VERSION = 1

/** `sessions.state`: only visible sessions exist for anyone but the writer. */
export const HIDDEN = 0
export const VISIBLE = 1
export const DELETED = 2

/** `records.kind` */
export const KIND_EVENT = 0
export const KIND_CHUNK = 1
export const KIND_ROW = 2

/** `surface.kind`; the first two are messages when appended. */
export const SURFACE_KINDS: readonly string[] = ['user/message', 'assistant/message', 'tool/result']

const SCHEMA = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

-- One row for each life of a session; AUTOINCREMENT, because a life's number must never name another life.
CREATE TABLE sessions (
  log        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT    NOT NULL,
  life       TEXT    NOT NULL,
  state      INTEGER NOT NULL,
  header     TEXT    NOT NULL,
  parent     TEXT,
  origin     TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  head       INTEGER NOT NULL DEFAULT -1,
  messages   INTEGER NOT NULL DEFAULT 0,
  bytes      INTEGER NOT NULL DEFAULT 0,
  open_from  INTEGER                        -- first seq of the open run; its records from there on are pieces
) STRICT;
CREATE UNIQUE INDEX session_by_id ON sessions (id) WHERE state = 1;
CREATE INDEX sessions_newest_first ON sessions (created_at, log) WHERE state = 1;
CREATE INDEX sessions_of_parent ON sessions (parent, created_at, log) WHERE state = 1;
CREATE INDEX sessions_to_clear ON sessions (state) WHERE state <> 1;

-- The log. 'line' stands last, so that reading the other columns never touches it.
CREATE TABLE records (
  log       INTEGER NOT NULL,
  first_seq INTEGER NOT NULL,
  last_seq  INTEGER NOT NULL,
  kind      INTEGER NOT NULL,               -- 0 event, 1 assistant/chunk event, 2 row
  time      INTEGER NOT NULL,
  line      BLOB    NOT NULL,               -- the NDJSON line as it goes out, newline included
  PRIMARY KEY (log, first_seq)
) STRICT, WITHOUT ROWID;

-- The message-boundary index.
CREATE TABLE surface (
  log          INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  kind         INTEGER NOT NULL,            -- 0 user/message, 1 assistant/message, 2 tool/result
  operation    INTEGER NOT NULL,            -- 0 append, 1 replace
  group_start  INTEGER NOT NULL,
  page_start   INTEGER NOT NULL,
  position     INTEGER NOT NULL,
  replaced_by  INTEGER,
  message_from INTEGER,                     -- bytes of the message inside the line; null when it is not shown
  message_to   INTEGER,
  PRIMARY KEY (log, seq)
) STRICT, WITHOUT ROWID;
-- Page starts: the last messages before a seq. It holds its own condition too, since SQLite looks that up in the table
-- otherwise; and queries name it, since SQLite would take the primary key and walk over tool results.
CREATE INDEX surface_messages ON surface (log, seq, page_start, group_start, operation, kind)
  WHERE operation = 0 AND kind < 2;
-- What is on the surface now: a replacement takes it off by place, and must not walk over what was taken off before.
CREATE INDEX surface_live ON surface (log, position) WHERE replaced_by IS NULL;
-- The surface in its order, at any time.
CREATE INDEX surface_in_order ON surface (log, position, seq, replaced_by);
`

/** Step n brings version n + 1 to version n + 2. */
const UPGRADES: readonly string[] = []

export interface Connection {
  readonly db: DatabaseSync
  /** Joins the epochs of all sessions to this generation of the store. */
  readonly generation: string
}

/** Open for writing: create or upgrade what is there. @throws Problem `store/unavailable` */
export function openWriter(path: string, busyTimeout: number): Connection {
  const db = new DatabaseSync(path, { timeout: busyTimeout })
  try {
    // Asked first: the pragmas below would change a file that belongs to another program.
    refuseForeign(db, path)
    // Both must come before the first table; they do nothing on a store that has tables.
    db.exec('PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL')
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF')
    // The writer makes checkpoints when it is idle. SQLite's own, which a commit waits for, are for when it never is. After
    // a burst the WAL is cut back to the limit at the next one.
    db.exec('PRAGMA wal_autocheckpoint = 1500; PRAGMA journal_size_limit = 67108864')
    // Each request has a savepoint, and SQLite keeps for it what pages held before: in memory, not in a file for each.
    db.exec('PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY')
    transact(db, () => prepareSchema(db, path))
    return { db, generation: generationOf(db) }
  } catch (error) {
    db.close()
    throw error
  }
}

/** Open for reading only. It never waits for a lock: WAL readers need none but in rare moments, when the caller asks again. */
export function openReader(path: string): Connection {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 0 })
  db.exec('PRAGMA trusted_schema = OFF; PRAGMA cache_size = -8192')
  return { db, generation: generationOf(db) }
}

export function transact<T>(db: DatabaseSync, work: () => T): T {
  db.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (error) {
    // SQLite has rolled back by itself after some errors, a full disk for one.
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function prepareSchema(db: DatabaseSync, path: string): void {
  const version = pragma(db, 'user_version')
  if (isEmpty(db)) {
    db.exec(SCHEMA)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`)
  } else {
    // Another program may have come first since it was asked.
    refuseForeign(db, path)
    for (let step = version; step < SCHEMA_VERSION; step++) db.exec(UPGRADES[step - 1] ?? '')
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`)
  }
  // What happens in a copy is not what happens in the original: its first opening begins a generation of its own. A
  // backup says that it is one; any other copy is another file, unless it was written over the old one in place.
  const file = String(statSync(path, { bigint: true }).ino)
  if (metaOf(db, 'generation') === '' || metaOf(db, 'file') !== file) {
    setMeta(db, 'generation', randomBytes(4).toString('hex'))
    setMeta(db, 'file', file)
  }
}

function refuseForeign(db: DatabaseSync, path: string): void {
  if (isEmpty(db)) return
  if (pragma(db, 'application_id') !== APPLICATION_ID) {
    throw new Problem('store/unavailable', `${path} is an SQLite file, but not a history store`)
  }
  const version = pragma(db, 'user_version')
  if (version > SCHEMA_VERSION) {
    throw new Problem('store/unavailable', `${path} has schema ${version}, this program knows up to ${SCHEMA_VERSION}`)
  }
}

function isEmpty(db: DatabaseSync): boolean {
  return pragma(db, 'user_version') === 0 && pragma(db, 'application_id') === 0 && tableCount(db) === 0
}

function pragma(db: DatabaseSync, name: string): number {
  return Number(db.prepare(`PRAGMA ${name}`).get()?.[name])
}

function tableCount(db: DatabaseSync): number {
  return Number(db.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n)
}

/** Leave it to the next opening to begin a new one. */
export function forgetGeneration(db: DatabaseSync): void {
  setMeta(db, 'generation', '')
}

function generationOf(db: DatabaseSync): string {
  return metaOf(db, 'generation')
}

function metaOf(db: DatabaseSync, key: string): string {
  return String(db.prepare('SELECT value FROM meta WHERE key = ?').get(key)?.value ?? '')
}

function setMeta(db: DatabaseSync, key: string, value: string): void {
  db.prepare('INSERT OR REPLACE INTO meta VALUES (?, ?)').run(key, value)
}

/** The epoch of a life, in this generation of the store. */
export function epochOf(life: string, generation: string): string {
  return `${life}-${generation}`
}

/** The name of a new life. */
export function newLife(): string {
  return randomBytes(6).toString('hex')
}
