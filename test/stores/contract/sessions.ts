// Sessions: created once, described, listed, deleted, and their ids free for another life.

import assert from 'node:assert/strict'
import type { Test } from 'tap'
import { headerFromFields } from '../../../codec/index.ts'
import type { SessionState } from '../../../src/history/index.ts'
import { History } from '../../../src/history/index.ts'
import { bodyOfEvents, collect, logBytes, messagesLog } from '../../support/logs.ts'
import { MODES, type Subject } from './subject.ts'

export function sessionsContract(t: Test, subject: Subject): void {
  const { open, store, history, stored } = subject
  t.test('a session is created once; only the fields given are compared', async (t) => {
    const fields = '{"cwd":"/tmp","createdAt":5,"agentPreset":{"b":1.0,"a":[]},"__proto__":{"x":1}}'
    const { created, session } = await history.create('fields', fields)
    t.equal(created, true)
    t.match(session, {
      id: 'fields',
      head: -1,
      messages: 0,
      bytes: 0,
      createdAt: 5,
      parentSession: undefined,
      origin: undefined,
    })
    t.equal(
      session.header,
      '{"type":"session","version":0,"id":"fields","createdAt":5,"cwd":"/tmp","agentPreset":{"b":1.0,"a":[]},"__proto__":{"x":1}}',
    )
    for (const again of [fields, undefined, '{}', '{"cwd":"/tmp"}']) {
      t.strictSame(await history.create('fields', again), { created: false, session })
    }
    for (const other of ['{"cwd":"/"}', '{"createdAt":6}', '{"agentPreset":{"b":1,"a":[]}}', '{"origin":"subagent"}']) {
      await t.rejects(
        history.create('fields', other),
        { code: 'session/exists', facts: { epoch: session.epoch } },
        other,
      )
    }
    t.strictSame(await history.describe('fields'), session)
    await t.rejects(history.describe('nobody'), { code: 'session/not-found' })
  })

  t.test('creating one id many times at once makes one session', async (t) => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => history.create('once', undefined)))
    t.equal(answers.filter(({ created }) => created).length, 1)
    t.equal(new Set(answers.map(({ session }) => session.epoch)).size, 1)
  })

  t.test('a session deleted is gone at once, and its id is free for another life', async (t) => {
    // Cases A6 and B13: a cursor of the life before is refused, never answered from the new log.
    const id = await stored(messagesLog(5))
    const before = await history.describe(id)
    const oldPage = await history.page({ id }, { maxMessages: 2, chunks: 'packed' })
    await history.remove(id)
    await t.rejects(history.remove(id), { code: 'session/not-found' })
    await t.rejects(history.describe(id), { code: 'session/not-found' })
    await t.rejects(history.append(id, bodyOfEvents(messagesLog(1)), {}), { code: 'session/not-found' })
    await t.rejects(collect(oldPage.bytes('ndjson')), { code: 'session/not-found' })
    await t.rejects(store.read(before.log, 0, 5, { maxBytes: 1, chunkLines: true }), { code: 'session/not-found' })
    await t.rejects(store.readSurface(before.log, 4, undefined, 1), { code: 'session/not-found' })

    const { session: after } = await history.create(id, undefined)
    t.not(after.epoch, before.epoch)
    t.not(after.log, before.log)
    t.match(after, { head: -1, messages: 0, bytes: 0 })
    await history.append(id, bodyOfEvents(messagesLog(3)), { epoch: after.epoch })
    const stale = { epoch: before.epoch }
    const replaced = { code: 'session/replaced', facts: { epoch: after.epoch, head: 2 } }
    await t.rejects(history.append(id, bodyOfEvents(messagesLog(1)), stale), replaced)
    await t.rejects(history.page({ id }, { maxMessages: 1, chunks: 'packed', ...stale }), replaced)
    await t.rejects(history.range({ id }, { chunks: 'packed', ...stale }), replaced)
    await t.rejects(history.messages({ id }, stale), replaced)
    await t.rejects(history.exportLog(id, { layout: 'packed', ...stale }), replaced)
    await t.rejects(
      collect(oldPage.bytes('ndjson')),
      { code: 'session/not-found' },
      'the old page reads its own life only',
    )
  })

  t.test('a page whose session is deleted midway fails; it does not end as if it were whole', async (t) => {
    // Case D7.
    const text = 'x'.repeat(100_000)
    const id = await stored(messagesLog(12).map((event) => ({ ...event, data: { content: text } })))
    for (const chunks of MODES) {
      const again = await stored(messagesLog(12).map((event) => ({ ...event, data: { content: text } })))
      const body = (await history.range({ id: again }, { chunks })).bytes('ndjson')
      t.equal((await body.next()).done, false)
      await history.remove(again)
      await history.create(again, undefined)
      await history.append(again, bodyOfEvents(messagesLog(12)), {})
      await t.rejects(collect(body), { code: 'session/not-found' }, chunks)
    }
    for (const bytes of [await history.messages({ id }, {}), await history.exportLog(id, { layout: 'packed' })].map(
      (each) => each.bytes(),
    )) {
      t.equal((await bytes.next()).done, false)
      if (await store.describe(id)) await history.remove(id)
      await t.rejects(collect(bytes), { code: 'session/not-found' })
    }
  })

  t.test('the list is newest created first, and a walk over it is moved by nothing', async (t) => {
    const own = await open('list')
    t.teardown(() => own.close())
    const listed = new History(own)
    const create = (id: string, fields: object) => listed.create(id, JSON.stringify(fields))
    // Equal times, negative ones and the largest: the order is total.
    const times = [5, 5, 5, 9, 9, -1, 0, Number.MAX_SAFE_INTEGER, 5]
    for (const [at, createdAt] of times.entries()) await create(`l${at}`, { createdAt })
    const order = ['l7', 'l4', 'l3', 'l8', 'l2', 'l1', 'l0', 'l6', 'l5']
    const walk = async (
      limit: number,
      between: (step: number) => Promise<unknown> = async () => {},
    ): Promise<string[]> => {
      const seen: string[] = []
      let cursor: string | undefined
      for (let step = 0; ; step++) {
        const { sessions, nextCursor } = await listed.list({ limit, cursor })
        assert(sessions.length <= limit)
        seen.push(...sessions.map(({ id }) => id))
        if (nextCursor === undefined) return seen
        cursor = nextCursor
        await between(step)
      }
    }
    for (let limit = 1; limit <= 10; limit++) t.strictSame(await walk(limit), order, `${limit} at a time`)

    // New ones above the part shown and below it, and deleted ones, the cursor's own among them.
    const moved = await walk(2, async (step) => {
      if (step === 0) await create('newer', { createdAt: 100 })
      if (step === 1) await Promise.all(['l4', 'l8'].map((id) => listed.remove(id)))
      if (step === 2) await create('older', { createdAt: -5 })
    })
    t.strictSame(moved, [...order, 'older'])

    for (const cursor of ['x', '', '1', '1.', '.1', '1.1.1', '1e3.1', '1.-1', ' 1.1', '99999999999999999.1', '١.١']) {
      await t.rejects(
        listed.list({ limit: 1, cursor }),
        { code: 'request/invalid', facts: { path: 'cursor' } },
        `cursor ${cursor}`,
      )
    }

    await create('child1', { createdAt: 1, parentSession: 'l0', origin: 'subagent' })
    await create('child2', { createdAt: 2, parentSession: 'l0', origin: 'subagent' })
    await create('fork', { createdAt: 3, parentSession: 'l0' })
    await create('other', { createdAt: 4, parentSession: 'l1', origin: 'subagent' })
    const idsOf = ({ sessions }: { sessions: readonly SessionState[] }) => sessions.map(({ id }) => id)
    t.strictSame(idsOf(await listed.list({ limit: 9, parent: 'l0' })), ['fork', 'child2', 'child1'])
    t.strictSame(idsOf(await listed.subagents('l0', { limit: 9 })), ['child2', 'child1'])
    const first = await listed.subagents('l0', { limit: 1 })
    t.strictSame(idsOf(first), ['child2'])
    const second = await listed.subagents('l0', { limit: 1, cursor: first.nextCursor as string })
    t.strictSame(idsOf(second), ['child1'])
    t.equal(second.nextCursor, undefined, 'a list that just ends has no cursor')
    t.strictSame(idsOf(await listed.subagents('nobody', { limit: 9 })), [])

    await listed.append('l6', bodyOfEvents(messagesLog(3)), {})
    const l6 = (await listed.list({ limit: 50 })).sessions.find(({ id }) => id === 'l6')
    t.match(l6, { head: 2, messages: 3, bytes: logBytes(messagesLog(3)), createdAt: 0 })

    // Case I1: created while the clock steps back and forth, each is listed once, equal times by order of creation.
    const base = 1_800_000_000_000
    let now = base
    const stepping = new History(own, { now: () => now })
    for (const [at, step] of [0, -3_600_000, -1_000, 3_600_000, 0].entries()) {
      now = base + step
      await stepping.create(`c${at}`, '{"parentSession":"clock"}')
    }
    t.strictSame(idsOf(await listed.list({ limit: 9, parent: 'clock' })), ['c3', 'c4', 'c0', 'c2', 'c1'])
  })

  t.test('a header that a create made agrees with the port’s own', async (t) => {
    const { header, given } = headerFromFields('port', '{"cwd":"/"}', 7)
    const answer = await store.create(header, given)
    t.match(answer, { created: true, session: { id: 'port', header: header.text, createdAt: 7 } })
    t.strictSame(await store.create(header, given), { ...answer, created: false })
    t.equal(await store.delete('port'), true)
    t.equal(await store.delete('port'), false)
  })
}
