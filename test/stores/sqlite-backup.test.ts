// A backup is a store of its own: whole, consistent, made while others write, and never mistaken for the original.

import { copyFileSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { History } from '../../src/history/index.ts'
import { backupSqliteStore, openSqliteStore } from '../../src/stores/index.ts'

const note = (text: string) => ({
  format: 'ndjson' as const,
  bytes: [Buffer.from(`{"type":"note","data":${JSON.stringify(text)}}`)],
})

async function lines(history: History, id: string): Promise<string[]> {
  const page = await history.range({ id }, { chunks: 'packed' })
  const parts: Uint8Array[] = []
  for await (const part of page.bytes('ndjson')) parts.push(part)
  return Buffer.concat(parts).toString().split('\n').slice(0, -1)
}

t.test('a copy made while a host appends holds a prefix of the log, and has another epoch', async (t) => {
  const directory = t.testdir()
  const path = join(directory, 'store.db')
  const store = await openSqliteStore(path)
  const history = new History(store)
  const { session } = await history.create('a', undefined)
  for (let k = 0; k < 60; k++) await history.append('a', note(`${k} ${'x'.repeat(2000)}`), {})
  const copies: Promise<void>[] = []
  for (let k = 60; k < 120; k++) {
    if (k % 15 === 0) copies.push(backupSqliteStore(path, join(directory, `copy-${k}.db`)))
    await history.append('a', note(`${k}`), {})
  }
  await Promise.all(copies)
  const original = await lines(history, 'a')
  const epochs = new Set([session.epoch])
  for (const name of readdirSync(directory).filter((name) => name.startsWith('copy-'))) {
    t.match(name, /^copy-\d+\.db$/, 'one file, and nothing unfinished')
    const opened = await openSqliteStore(join(directory, name))
    const copy = new History(opened)
    const { head, epoch } = await copy.describe('a')
    t.ok(head >= 59)
    t.same(await lines(copy, 'a'), original.slice(0, head + 1))
    epochs.add(epoch)
    await t.rejects(copy.page({ id: 'a' }, { maxMessages: 50, chunks: 'packed', epoch: session.epoch }), {
      code: 'session/replaced',
    })
    t.equal((await copy.append('a', note('on its own'), {})).head, head + 1)
    await opened.close()
    // The second opening is the same generation.
    const again = await openSqliteStore(join(directory, name))
    t.equal((await new History(again).describe('a')).epoch, epoch)
    await again.close()
  }
  t.equal(epochs.size, 5, 'every copy and the original differ')
  t.equal((await history.describe('a')).epoch, session.epoch)
  await store.close()
})

t.test('what is there is not written over, and what is not there is said', async (t) => {
  const directory = t.testdir({ taken: 'mine' })
  const path = join(directory, 'store.db')
  await t.rejects(backupSqliteStore(path, join(directory, 'copy.db')), { code: 'store/unavailable' })
  t.notOk(existsSync(path), 'and is not made')
  const store = await openSqliteStore(path)
  await t.rejects(backupSqliteStore(path, join(directory, 'taken')), { message: /exists/ })
  await t.rejects(backupSqliteStore(path, join(directory, 'no', 'such', 'folder.db')))
  await store.close()
  writeFileSync(join(directory, 'other.db'), 'not a database, but long enough to be asked what it is')
  await t.rejects(backupSqliteStore(join(directory, 'other.db'), join(directory, 'copy.db')))
  t.notOk(readdirSync(directory).some((name) => name.includes('unfinished')))
})

t.test('a plain copy of the file is another generation too, the same file opened again is not', async (t) => {
  const directory = t.testdir()
  const path = join(directory, 'store.db')
  const epochOf = async (file: string) => {
    const store = await openSqliteStore(file)
    const { session } = await new History(store).create('a', undefined)
    await store.close()
    return session.epoch
  }
  const epoch = await epochOf(path)
  t.same(readdirSync(directory), ['store.db'], 'a store that was closed is one file')
  t.equal(await epochOf(path), epoch)
  copyFileSync(path, join(directory, 'copy.db'))
  const copied = await epochOf(join(directory, 'copy.db'))
  t.not(copied, epoch)
  t.equal(await epochOf(join(directory, 'copy.db')), copied)
  t.equal(await epochOf(path), epoch)
})
