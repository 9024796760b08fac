import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { AppendResult, LogHint } from '../../../src/history/index.ts'
import { History } from '../../../src/history/index.ts'
import {
  bodyOf,
  bodyOfEvents,
  collect,
  messagesLog,
  pageText,
  textDelta,
  textDeltas,
  userMessage,
} from '../../support/logs.ts'
import { until } from '../../support/service.ts'
import type { Subject } from './subject.ts'

export function endsContract(t: Test, subject: Subject): void {
  const { open, store, history, created } = subject
  t.test('a watcher hears of each commit, of a deletion last, and of nothing refused or stopped', async (t) => {
    const id = await created()
    const { log } = await history.describe(id)
    const heard: LogHint[] = []
    const stop = store.watch((hint) => {
      if ('log' in hint && hint.log === log) heard.push(hint)
    })
    await history.append(id, bodyOfEvents(messagesLog(2)), {})
    t.strictSame(heard.at(-1), { log, head: 1 }, 'no later than the answer')
    await history.append(id, bodyOfEvents(messagesLog(2)), {})
    await t.rejects(history.append(id, bodyOf('x'), {}))
    t.equal(heard.length, 1)
    await history.remove(id)
    t.strictSame(heard.at(-1), { log, deleted: true })
    stop()
    const other = await created()
    await history.append(other, bodyOfEvents(messagesLog(1)), {})
    t.equal(heard.length, 2)
  })

  t.test('a watcher hears of what another store on the same data commits', async (t) => {
    // Case H8. The other one commits as soon as the watch has begun, and later.
    const id = await created()
    const { log } = await history.describe(id)
    const other = await open('contract')
    t.teardown(() => other.close())
    const elsewhere = new History(other)
    let asked = 0
    const stop = store.watch((hint) => {
      if ('any' in hint) asked++
    })
    for (let head = 0; head < 2; head++) {
      asked = 0
      await elsewhere.append(id, bodyOfEvents([userMessage(head)]), {})
      await until(() => asked > 0)
      t.equal(await store.headOf(log), head)
    }
    asked = 0
    await elsewhere.remove(id)
    await until(() => asked > 0)
    t.equal(await store.headOf(log), undefined)
    stop()
  })

  t.test('a watcher is told of other stores only when they have committed', async (t) => {
    const id = await created()
    let asked = 0
    const stop = store.watch((hint) => {
      if ('any' in hint) asked++
    })
    await until(() => asked === 1)
    for (let look = 0; look < 4; look++) {
      await history.append(id, bodyOfEvents([userMessage(look)]), {})
      await delay(300)
    }
    t.equal(asked, 1, 'the first look cannot know; its own commits are no news')
    stop()
  })

  t.test('a life is over for whoever asks how far it has come', async (t) => {
    const id = await created()
    const { log } = await history.describe(id)
    t.equal(await store.headOf(log), -1)
    await history.append(id, bodyOfEvents(messagesLog(3)), {})
    t.equal(await store.headOf(log), 2)
    t.equal(await store.headOf(log + 1_000_000), undefined)
    await history.remove(id)
    t.equal(await store.headOf(log), undefined)
    const { session } = await history.create(id, undefined)
    t.equal(await store.headOf(log), undefined)
    t.equal(await store.headOf(session.log), -1)
  })

  t.test('closing finishes what was accepted; afterwards the store is unavailable', async (t) => {
    const first = await open('closing')
    const closing = new History(first)
    await closing.create('c', undefined)
    await first.check()
    const events = [...messagesLog(16), ...textDeltas(16, 22)]
    const accepted = events.map((event) => closing.append('c', bodyOfEvents([event]), {}))
    await first.close()
    await first.close()
    const { epoch } = (await Promise.all(accepted)).at(-1) as AppendResult
    const gone = { code: 'store/unavailable' }
    await t.rejects(first.check(), gone)
    await t.rejects(closing.describe('c'), gone)
    await t.rejects(closing.append('c', bodyOfEvents([userMessage(20)]), {}), gone)
    const second = await open('closing')
    t.teardown(() => second.close())
    const again = new History(second)
    t.match(await again.describe('c'), { head: 21, epoch, messages: 16 })
    // Case H14: a request repeated after a restart is known, also inside a run that is still open.
    const overlap = [...events.slice(17), textDelta(22), textDelta(23)]
    t.match(await again.append('c', bodyOfEvents(overlap), {}), { head: 23, appended: 2, duplicates: 5 })
    const page = await again.page({ id: 'c' }, { maxMessages: 2, chunks: 'packed' })
    t.equal(await collect(page.bytes('ndjson')), pageText([...events, ...textDeltas(22, 24)], 14, 24, 'packed'))
  })
}
