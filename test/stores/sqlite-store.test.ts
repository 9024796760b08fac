// The embedded store: the contract, and what is SQLite's own inside one process.

import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import t from 'tap'
import type { LogHint } from '../../src/history/index.ts'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { prepareLogStatements } from '../../src/stores/sqlite-log.ts'
import { prepareReads } from '../../src/stores/sqlite-reader.ts'
import { HIDDEN, openWriter, SCHEMA_VERSION, VISIBLE } from '../../src/stores/sqlite-schema.ts'
import { bodyOfEvents, bytesOf, collect, messagesLog, pageRecords, userMessage } from '../support/logs.ts'
import { opened } from './opened-store.ts'
import { storeContract } from './store-contract.ts'

t.test('the contract', async (t) => {
  const directory = t.testdir()
  await storeContract(t, (name) => openSqliteStore(join(directory, `${name}.db`)))
})

t.test('readers and listings find everything by index', async (t) => {
  // Cases A3 and A15: a page start, a range and a list cost the same wherever they are, and a list reads no record.
  const { db } = await opened(t)
  const plan = (sql: string): string =>
    db
      .prepare(`EXPLAIN QUERY PLAN ${sql}`)
      .all()
      .map(({ detail }) => String(detail))
      .join('; ')
  const reads = Object.entries(prepareReads(db)).filter(([name]) => !['begin', 'commit', 'check'].includes(name))
  const writes = Object.entries(prepareLogStatements(db)).filter(([, { sourceSQL }]) => !sourceSQL.startsWith('INSERT'))
  const plans = Object.fromEntries([...reads, ...writes].map(([name, { sourceSQL }]) => [name, plan(sourceSQL)]))
  for (const [name, steps] of Object.entries(plans)) {
    // A subquery's own result of a few hundred rows may be walked through.
    t.notMatch(steps, /SCAN (sessions|records|surface|s)\b|TEMP B-TREE/, `${name}: ${steps}`)
  }
  t.match(plans, {
    newestSessions: /USING INDEX sessions_newest_first \(created_at<\?\)/,
    sessionsOfParent: /USING INDEX sessions_of_parent \(parent=\? AND created_at<\?\)/,
    sessionById: /USING INDEX session_by_id \(id=\?\)/,
    pageStart: /USING COVERING INDEX surface_messages \(log=\? AND seq<\?\)/,
    countMessages: /USING COVERING INDEX surface_messages \(log=\? AND seq>\?\)/,
    messageGroups: /USING COVERING INDEX surface_messages \(log=\? AND seq>\? AND seq<\?\)/,
    records: /USING PRIMARY KEY \(log=\? AND first_seq>\? AND first_seq<\?\)/,
    surface: /USING INDEX surface_in_order \(log=\? AND \(position,seq\)>/,
    messageBefore: /USING COVERING INDEX surface_messages \(log=\? AND seq<\?\)/,
    hideSurface: /USING INDEX surface_live \(log=\? AND position>\? AND position<\?\)/,
  })
  for (const name of ['newestSessions', 'sessionsOfParent', 'sessionById']) t.notMatch(plans[name], /records|surface/)
})

t.test('another holder of the write lock makes an append late, and reads go on', async (t) => {
  // Case H7.
  const { history, db } = await opened(t)
  await history.create('s', undefined)
  await history.append('s', bodyOfEvents(messagesLog(2)), {})
  db.exec('BEGIN IMMEDIATE')
  let settled = false
  const late = history.append('s', bodyOfEvents([userMessage(2)]), {}).finally(() => {
    settled = true
  })
  for (let turn = 0; turn < 50; turn++) {
    await pageRecords(await history.page({ id: 's' }, { maxMessages: 5, chunks: 'packed' }))
    await nextTurn()
  }
  t.equal(settled, false)
  db.exec('COMMIT')
  t.match(await late, { head: 2, appended: 1 })
})

t.test('a write lock held too long is told as such, and the same request is taken later', async (t) => {
  // Case H7.
  const { history, db } = await opened(t, { busyTimeout: 200 })
  await history.create('s', undefined)
  db.exec('BEGIN IMMEDIATE')
  const requests: Promise<unknown>[] = [
    history.append('s', bodyOfEvents(messagesLog(2)), {}),
    history.append('s', bodyOfEvents(messagesLog(1)), {}),
    history.create('other', undefined),
    history.remove('s'),
  ]
  const page = await history.page({ id: 's' }, { maxMessages: 5, chunks: 'packed' })
  t.equal(await collect(page.bytes('ndjson')), '')
  for (const request of requests)
    await t.rejects(() => request, { code: 'store/unavailable', facts: { retryAfter: 1 } })
  db.exec('COMMIT')
  t.equal((await history.describe('s')).head, -1)
  t.match(await history.append('s', bodyOfEvents(messagesLog(2)), {}), { head: 1 })
})

/** From here on no commit succeeds that makes such a change: it leaves a promise unkept that is looked at only then. */
function failing(db: DatabaseSync, change: string): void {
  db.exec(`
    CREATE TABLE kept (promise INTEGER PRIMARY KEY);
    CREATE TABLE given (promise INTEGER REFERENCES kept DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER failing AFTER ${change} BEGIN INSERT INTO given VALUES (1); END`)
}

const UNKEPT = { message: /FOREIGN KEY/ }

t.test('a commit that fails is told to nobody who watches', async (t) => {
  const { store, history, db } = await opened(t)
  await history.create('s', undefined)
  await history.append('s', bodyOfEvents(messagesLog(2)), {})
  const { log } = await history.describe('s')
  const hints: LogHint[] = []
  t.teardown(store.watch((hint) => 'any' in hint || hints.push(hint)))
  failing(db, 'UPDATE ON sessions')
  await t.rejects(history.append('s', bodyOfEvents([userMessage(2)]), {}), UNKEPT)
  await t.rejects(history.remove('s'), UNKEPT)
  t.match(await history.describe('s'), { head: 1 })
  db.exec('DROP TRIGGER failing')
  t.match(await history.append('s', bodyOfEvents([userMessage(2)]), {}), { head: 2, appended: 1 })
  t.strictSame(hints, [{ log, head: 2 }])
})

t.test('an import leaves nothing when its last commit fails', async (t) => {
  const { history, db } = await opened(t)
  async function* file(): AsyncGenerator<Uint8Array> {
    yield bytesOf('{"type":"session","version":0,"id":"s","createdAt":5}\n')
    // So long that the first of it is committed before the last has come.
    const data = { content: 'x'.repeat(600_000) }
    for (const event of messagesLog(3)) yield bytesOf(`${JSON.stringify({ ...event, data })}\n`)
  }
  failing(db, `UPDATE OF state ON sessions WHEN new.state = ${VISIBLE}`)
  await t.rejects(history.importLog(file(), {}), UNKEPT)
  t.equal(db.prepare(`SELECT count(*) AS n FROM sessions WHERE state = ${HIDDEN}`).get()?.n, 0)
  db.exec('DROP TRIGGER failing')
  t.match(await history.importLog(file(), {}), { created: true, head: 2 })
})

t.test('when the writer thread ends, what waits for it is refused, and the store has failed', async (t) => {
  let writer: Worker | undefined
  process.once('worker', (worker) => {
    writer = worker
  })
  const { store, history, db } = await opened(t)
  await history.create('s', undefined)
  // The writer waits for this lock, so neither request is answered before it ends.
  db.exec('BEGIN IMMEDIATE')
  const unavailable = { code: 'store/unavailable', message: 'the writer has ended' }
  const refused = [
    t.rejects(history.append('s', bodyOfEvents(messagesLog(2)), {}), unavailable),
    t.rejects(history.remove('s'), unavailable),
  ]
  const ended = writer?.terminate()
  db.exec('ROLLBACK')
  await ended
  await Promise.all(refused)
  t.match(await store.failed(), unavailable)
  await t.rejects(history.append('s', bodyOfEvents(messagesLog(2)), {}), unavailable)
  await t.rejects(store.check(), unavailable)
  t.match(await history.describe('s'), { id: 's' }, 'what is stored can be read')
})

t.test('a store that was closed has not failed', async (t) => {
  const store = await openSqliteStore(join(t.testdir(), 'closed.db'))
  await store.close()
  t.equal(await Promise.race([store.failed(), nextTurn('closed')]), 'closed')
})

t.test('a file that is not a store of this version is refused and left as it was', async (t) => {
  const directory = t.testdir({
    text: 'not a database at all, and longer than a header of one hundred bytes would have to be, by a little',
    dir: {},
  })
  const make = (name: string, sql: string): string => {
    const path = join(directory, name)
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
    return path
  }
  const newer = make(
    'newer',
    `CREATE TABLE x (y); PRAGMA application_id = ${0x7363726c}; PRAGMA user_version = ${SCHEMA_VERSION + 1}`,
  )
  const table: [name: string, path: string, message: RegExp][] = [
    ['another program’s', make('foreign', 'CREATE TABLE x (y); INSERT INTO x VALUES (1)'), /not a history store/],
    [
      'another program’s, with an id',
      make('owned', 'PRAGMA application_id = 7; CREATE TABLE x (y)'),
      /not a history store/,
    ],
    ['a newer version', newer, /schema 2, this program knows up to 1/],
    ['no database', join(directory, 'text'), /not a database/],
    ['a directory', join(directory, 'dir'), /unable to open/],
    ['in no directory', join(directory, 'none', 'x'), /unable to open/],
  ]
  const digest = (path: string): string =>
    existsSync(path) && statSync(path).isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : ''
  for (const [name, path, message] of table) {
    const before = digest(path)
    t.throws(() => openWriter(path, 0), { message }, name)
    t.equal(digest(path), before, `${name}: not a byte changed`)
    t.equal(existsSync(`${path}-wal`), false)
  }
  await t.rejects(openSqliteStore(newer), { code: 'store/unavailable', message: /schema 2/ })
  await t.rejects(openSqliteStore(join(directory, 'text')), { code: 'store/unavailable', message: /not a database/ })
})

t.test('a new store has the layout that the upgrade rule counts from', async (t) => {
  const { db } = await opened(t)
  const pragma = (name: string) => db.prepare(`PRAGMA ${name}`).get()?.[name]
  t.strictSame(['user_version', 'application_id', 'page_size', 'auto_vacuum', 'journal_mode'].map(pragma), [
    SCHEMA_VERSION,
    0x7363726c,
    8192,
    2,
    'wal',
  ])
  // An empty file is a new store, also for two at the same time.
  const together = join(t.testdirName, 'together.db')
  writeFileSync(together, '')
  const many = await Promise.all(Array.from({ length: 2 }, () => openSqliteStore(together)))
  t.equal(
    new Set(await Promise.all(many.map(async (each) => (await new History(each).create('s', undefined)).session.epoch)))
      .size,
    1,
  )
  await Promise.all(many.map((each) => each.close()))
})
