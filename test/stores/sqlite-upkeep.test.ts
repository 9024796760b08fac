// The embedded store over time: what it does with its file and its memory while readers, collections and crashes come.

import { copyFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import {
  assertCovers,
  bodyOf,
  bodyOfEvents,
  bytesOf,
  messagesLog,
  pageRecords,
  recordsOf,
  textDelta,
  textDeltas,
  userMessage,
} from '../support/logs.ts'
import { until } from '../support/service.ts'
import { opened } from './opened-store.ts'

function count(db: DatabaseSync, from: string): number {
  return Number(db.prepare(`SELECT count(*) AS n FROM ${from}`).get()?.n)
}

t.test('the WAL stays bounded while readers never cease', async (t) => {
  // Case H1.
  const { path, history } = await opened(t)
  await history.create('s', undefined)
  let done = false
  const readers = Array.from({ length: 8 }, async () => {
    while (!done) {
      for await (const _ of (await history.page({ id: 's' }, { maxMessages: 1, chunks: 'packed' })).bytes('ndjson')) {
        // As a socket would wait between two pieces.
        await nextTurn()
      }
    }
  })
  const text = 'x'.repeat(150_000)
  let largest = 0
  for (let seq = 0; seq < 150; seq++) {
    await history.append('s', bodyOfEvents([{ ...userMessage(seq), data: { content: text } }]), {})
    largest = Math.max(largest, statSync(`${path}-wal`).size)
  }
  done = true
  await Promise.all(readers)
  t.ok(largest < 16 * 1024 * 1024, `22 MB appended, the WAL had ${largest} bytes at most`)
})

t.test('an idle writer folds the WAL into the file, before a commit would have to', async (t) => {
  const { path, history } = await opened(t)
  await history.create('s', undefined)
  for (let seq = 0; seq < 200; seq++) await history.append('s', bodyOfEvents([userMessage(seq)]), {})
  t.ok(statSync(`${path}-wal`).size < 1_500 * 8192, 'SQLite itself would have waited for a longer WAL')
  const copy = join(t.testdirName, 'without-wal.db')
  await until(() => {
    copyFileSync(path, copy)
    const db = new DatabaseSync(copy)
    const stored = count(db, `sqlite_schema WHERE name = 'records'`) && count(db, 'records')
    db.close()
    return stored > 100
  })
})

t.test('what was deleted is cleared in small steps, and the space is given back', async (t) => {
  const { path, history, db } = await opened(t)
  await history.create('kept', undefined)
  await history.append('kept', bodyOfEvents([...messagesLog(3), ...textDeltas(3, 6)]), {})
  await history.create('s', undefined)
  const text = 'x'.repeat(200_000)
  for (let at = 0; at < 300; at += 50) {
    const events = messagesLog(50, at).map((event) => ({ ...event, data: { content: text } }))
    await history.append('s', bodyOfEvents(events), {})
  }
  const { log } = await history.describe('s')
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  const before = statSync(path).size
  t.ok(before > 60e6)
  await history.remove('s')
  let largest = 0
  await until(() => {
    largest = Math.max(largest, statSync(`${path}-wal`).size)
    return count(db, 'sessions') === 1
  })
  t.equal(count(db, `records WHERE log = ${log}`) + count(db, `surface WHERE log = ${log}`), 0)
  t.ok(largest < 16 * 1024 * 1024, `the WAL had ${largest} bytes at most`)
  await until(() => {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    return statSync(path).size < 40e6
  })
  assertCovers(await pageRecords(await history.page({ id: 'kept' }, { maxMessages: 5, chunks: 'packed' })), 0, 6)
})

t.test('a file that was removed, or replaced, while it is open is noticed', async (t) => {
  // Everything went on, appends were acknowledged, and all of it was gone at the end.
  const { path, store } = await opened(t)
  await store.check()
  renameSync(path, `${path}.moved`)
  await t.rejects(store.check(), { code: 'store/unavailable' })
  writeFileSync(path, '')
  await t.rejects(store.check(), { code: 'store/unavailable' })
  renameSync(`${path}.moved`, path)
  await store.check()
})

t.test('what a crash left of an import is removed at the next start', async (t) => {
  const { path, history, db } = await opened(t)
  await history.create('kept', undefined)
  let copied = ''
  async function* file(): AsyncGenerator<Uint8Array> {
    yield bytesOf('{"type":"session","version":0,"id":"half","createdAt":5}\n')
    for (let seq = 0; seq < 30; seq++)
      yield bytesOf(`${JSON.stringify({ ...userMessage(seq), data: 'x'.repeat(100_000) })}\n`)
    // The file and its log as they lie on the disk now are what a crash would leave.
    copied = join(t.testdirName, 'crashed.db')
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, copied + suffix)
    throw new Error('enough')
  }
  await t.rejects(history.importLog(file(), {}), { message: 'enough' })
  const crashed = new DatabaseSync(copied, { timeout: 5_000 })
  t.teardown(() => crashed.close())
  t.equal(count(crashed, 'sessions WHERE state = 0'), 1)
  t.ok(count(crashed, 'records') > 10)
  const store = await openSqliteStore(copied)
  t.teardown(() => store.close())
  const again = new History(store)
  t.equal(await store.describe('half'), undefined)
  t.match(await again.describe('kept'), { head: -1 })
  await until(() => count(crashed, 'sessions') === 1)
  t.equal(count(crashed, 'records') + count(crashed, 'surface'), 0)
  await until(() => count(db, 'sessions') === 1)
})

t.test('a collection at any moment of a stream ends no read', async (t) => {
  // Case H5.
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const { history } = await opened(t)
  await history.create('s', undefined)
  const text = 'x'.repeat(20_000)
  const events = Array.from({ length: 80 }, (_, seq) =>
    seq % 4 === 3 ? { ...userMessage(seq), data: { content: text } } : textDelta(seq, text),
  )
  await history.append('s', bodyOfEvents(events), {})
  for (const chunks of ['packed', 'expanded', 'omit'] as const) {
    const page = await history.range({ id: 's' }, { chunks })
    let body = ''
    for await (const bytes of page.bytes('ndjson')) {
      collectGarbage()
      body += Buffer.from(bytes).toString()
    }
    assertCovers(recordsOf(body), 0, 80)
  }
  collectGarbage()
  t.equal((await history.describe('s')).head, 79)
})

t.test('a lock held while there is something to clear ends nothing', async (t) => {
  const { history, db } = await opened(t, { busyTimeout: 10 })
  await history.create('s', undefined)
  await history.append('s', bodyOfEvents(messagesLog(10)), {})
  await history.create('other', undefined)
  // As another process would: deleted, and the lock taken before this one's writer has seen it.
  db.exec(`UPDATE sessions SET state = 2 WHERE id = 's'; BEGIN IMMEDIATE`)
  // A request that never comes to a commit; behind it the writer finds something to clear, and then the lock.
  for (let at = 0; at < 3; at++) await t.rejects(history.append('other', bodyOf('x'), {}), { code: 'event/invalid' })
  db.exec('COMMIT')
  t.match(await history.append('other', bodyOfEvents(messagesLog(2)), {}), { head: 1 })
  await until(() => count(db, 'sessions') === 1)
  t.equal(count(db, 'records'), 2)
})
