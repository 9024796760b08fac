// The domain: ids, who may read a child, and that every refusal is an answer and never a throw on the way in.

import { join } from 'node:path'
import t from 'tap'
import type { SessionTarget } from '../../src/history/index.ts'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { bodyOf, bodyOfEvents, collect, messagesLog, pageRecords } from '../support/logs.ts'

const store = await openSqliteStore(join(t.testdir(), 'history.db'))
t.teardown(() => store.close())
const history = new History(store)
const page = { maxMessages: 5, chunks: 'packed' } as const

t.test('an id that cannot be one is refused everywhere', async (t) => {
  const refused = { code: 'request/invalid', facts: { path: /^\/?id$/ } }
  for (const id of ['', '.', '..', 'a/b', 'a b', 'é', 'a\0b', 'x'.repeat(129), 'a%20b', '../x', 'a\n']) {
    await t.rejects(history.create(id, undefined), refused, JSON.stringify(id))
    const questions: (() => Promise<unknown>)[] = [
      () => history.describe(id),
      () => history.remove(id),
      () => history.append(id, bodyOf(), {}),
      () => history.page({ id }, page),
      () => history.range({ id }, { chunks: 'packed' }),
      () => history.messages({ id }, {}),
      () => history.exportLog(id, { layout: 'packed' }),
      () => history.subagents(id, { limit: 1 }),
      () => history.page({ parent: id, child: 'c' }, page),
      () => history.page({ parent: 'p', child: id }, page),
    ]
    for (const ask of questions) {
      const answer = ask()
      t.type(answer, Promise, 'an answer, not a throw')
      await t.rejects(answer, { code: 'request/invalid' })
    }
  }
  for (const id of ['a', '...', '~', 'A-Z_0.9:@', 'x'.repeat(128), '__proto__', 'constructor']) {
    t.match(await history.create(id, undefined), { created: true, session: { id } }, id)
    t.match(await history.describe(id), { id, head: -1 })
  }
})

t.test('a child is read through its direct parent alone, and kept by its own id', async (t) => {
  await history.create('parent', undefined)
  await history.create('child', '{"parentSession":"parent","origin":"subagent"}')
  await history.create('grandchild', '{"parentSession":"child","origin":"subagent"}')
  await history.create('fork', '{"parentSession":"parent"}')
  await history.create('orphan', '{"parentSession":"never-stored","origin":"subagent"}')
  await history.create('lone', '{"origin":"subagent"}')
  for (const id of ['parent', 'child', 'grandchild', 'fork', 'orphan', 'lone']) {
    await history.append(id, bodyOfEvents(messagesLog(2)), {})
  }
  const reads = (target: SessionTarget): (() => Promise<unknown>)[] => [
    () => history.page(target, page),
    () => history.range(target, { chunks: 'packed' }),
    () => history.messages(target, {}),
  ]
  const allowed = [
    { id: 'parent' },
    { id: 'fork' },
    { id: 'lone' },
    { parent: 'parent', child: 'child' },
    { parent: 'child', child: 'grandchild' },
    { parent: 'never-stored', child: 'orphan' },
  ]
  for (const target of allowed) {
    for (const read of reads(target)) await t.resolves(read(), JSON.stringify(target))
    t.equal((await pageRecords(await history.page(target, page))).length, 2)
  }
  for (const id of ['child', 'grandchild', 'orphan', 'nobody']) {
    for (const read of reads({ id }))
      await t.rejects(read(), { code: 'session/not-found', message: `there is no session ${id}` })
  }
  for (const target of [
    { parent: 'fork', child: 'child' },
    { parent: 'parent', child: 'grandchild' },
    { parent: 'parent', child: 'fork' },
    { parent: 'parent', child: 'parent' },
    { parent: 'parent', child: 'nobody' },
    { parent: 'nobody', child: 'child' },
  ]) {
    for (const read of reads(target)) await t.rejects(read(), { code: 'subagent/not-found' }, JSON.stringify(target))
  }
  t.match(await history.describe('child'), { parentSession: 'parent', origin: 'subagent', head: 1 })
  t.match(await collect((await history.exportLog('child', { layout: 'events' })).bytes()), /"origin":"subagent"/)
  await history.remove('parent')
  t.equal(
    (await pageRecords(await history.page({ parent: 'parent', child: 'child' }, page))).length,
    2,
    'the parent need not be stored',
  )
  await history.remove('child')
  await t.rejects(history.page({ parent: 'parent', child: 'child' }, page), { code: 'subagent/not-found' })
})

t.test('a session that is not there is told as such by everything', async (t) => {
  const gone = { code: 'session/not-found' }
  await t.rejects(history.describe('nobody'), gone)
  await t.rejects(history.remove('nobody'), gone)
  await t.rejects(history.append('nobody', bodyOf(), {}), gone)
  await t.rejects(history.exportLog('nobody', { layout: 'packed' }), gone)
  await history.check()
})

t.test('fields that cannot be a header are refused with their path', async (t) => {
  const table: [fields: string, path: string][] = [
    ['{', ''],
    ['[]', ''],
    ['{"id":"other"}', '/id'],
    ['{"version":1}', '/version'],
    ['{"createdAt":1.5}', '/createdAt'],
    ['{"createdAt":1e400}', '/createdAt'],
    ['{"cwd":1}', '/cwd'],
    ['{"parentSession":""}', '/parentSession'],
    ['{"x":1,"x":1}', '/x'],
  ]
  for (const [fields, path] of table) {
    await t.rejects(history.create('refused', fields), { code: 'request/invalid', facts: { path } }, fields)
  }
  await t.rejects(history.describe('refused'), { code: 'session/not-found' })
})

t.test('a description tells the log as it stands, and the time of its last change', async (t) => {
  await history.create('told', '{"createdAt":5}')
  const empty = await history.describe('told')
  t.match(empty, { head: -1, messages: 0, bytes: 0, createdAt: 5 })
  await history.append('told', bodyOfEvents(messagesLog(3)), {})
  const { updatedAt, ...rest } = await history.describe('told')
  t.match(rest, { head: 2, messages: 3, epoch: empty.epoch })
  t.ok(updatedAt >= empty.updatedAt)
  await history.append('told', bodyOfEvents(messagesLog(3)), {})
  t.equal((await history.describe('told')).updatedAt, updatedAt, 'a repetition changes nothing')
})
