// The embedded store among other processes, and on a disk that is full.

import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { pageRecords } from '../support/logs.ts'

const run = promisify(execFile)

t.test('two processes append to one session, and every event has its own place', async (t) => {
  // Case H8.
  const path = join(t.testdir(), 'shared.db')
  const store = await openSqliteStore(path)
  t.teardown(() => store.close())
  const history = new History(store)
  await history.create('s', undefined)
  const names = ['one', 'other']
  const appender = join(import.meta.dirname, 'appender.ts')
  const answers = await Promise.all(
    names.map(async (name): Promise<number[]> => {
      const { stdout } = await run(process.execPath, [appender, path, 's', name, '300'])
      return JSON.parse(stdout)
    }),
  )
  // The third process sees them though its writer has written nothing since.
  const records = await pageRecords(await history.range({ id: 's' }, { chunks: 'packed' }))
  t.equal(records.length, 600)
  const places = new Map<string, number>()
  for (const { event } of records) {
    const { name, n } = event.data as { name: string; n: number }
    places.set(`${name} ${n}`, event.seq)
  }
  for (const [at, name] of names.entries()) {
    const seqs = answers[at] ?? []
    t.strictSame(
      seqs.map((_, n) => places.get(`${name} ${n}`)),
      seqs,
      'each event stands where its answer said',
    )
    t.strictSame(
      seqs.toSorted((a, b) => a - b),
      seqs,
      'in the order of its answers',
    )
  }
  t.equal((await history.describe('s')).head, 599)
})

/** Runs a command with a small disk of its own at `directory`, which is gone afterwards. */
function onSmallDisk(directory: string, mebibytes: number, command: readonly string[]) {
  const script = `mount -t tmpfs -o size=${mebibytes}m tmpfs "$0" && exec "$@"`
  return spawnSync('unshare', ['--map-root-user', '--mount', 'sh', '-c', script, directory, ...command], {
    encoding: 'utf8',
  })
}

t.test('a full disk stores nothing in part, leaves reads alone, and is forgotten when there is space', async (t) => {
  // Case H19.
  const directory = t.testdir()
  if (onSmallDisk(directory, 1, ['true']).status !== 0) return t.pass('skipped: no small disk can be made here')
  const child = onSmallDisk(directory, 16, [process.execPath, join(import.meta.dirname, 'full-disk.ts'), directory])
  t.equal(child.stderr, '')
  const { codes, full, described, hinted, records, head, after } = JSON.parse(child.stdout)
  for (const code of codes) t.match(code, /^store\/(full|unavailable)$/)
  t.equal(codes[0], 'store/full')
  t.ok(full > 10)
  t.equal((full + 1) % 3, 0, 'no request in part')
  t.equal(described, full)
  t.equal(hinted, full, 'nobody was told of what is not stored')
  t.equal(records, full + 1)
  t.equal(head, full + 3)
  t.equal(after, full + 4)
})
