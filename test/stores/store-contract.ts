// What every store must do, whatever it is made of. A store's own test calls `storeContract` and adds only what is its own.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Test } from 'tap'
import type { ChunksMode, SessionEvent } from '../../codec/index.ts'
import { foldSurface, headerFromFields, isMessage, packEvents } from '../../codec/index.ts'
import type { AppendResult, HistoryStore, LogHint, SessionState } from '../../src/history/index.ts'
import { History } from '../../src/history/index.ts'
import { hardText, logEvents, nonEmptyLog, ODD_NUMBERS } from '../support/arbitraries.ts'
import {
  assertCovers,
  assistantMessage,
  bodyOf,
  bodyOfEvents,
  bytesOf,
  collect,
  eventsOf,
  linesOf,
  logBytes,
  messagesLog,
  pageRecords,
  pageStartOf,
  pageText,
  recordLine,
  recordsOf,
  textDelta,
  textDeltas,
  turnedKeys,
  userMessage,
  walkPages,
} from '../support/logs.ts'

const SEED = 20_260_701
/** A property's box of time, small because there are several. */
const BOX: fc.Parameters<unknown> = {
  seed: SEED,
  numRuns: 150,
  interruptAfterTimeLimit: 2_000,
  markInterruptAsFailure: false,
}

const MODES: readonly ChunksMode[] = ['packed', 'expanded', 'omit']
const anyMode = fc.constantFrom(...MODES)

/** Opens a store; the same name opens the same data, once the one before it is closed. */
export type OpenStore = (name: string) => Promise<HistoryStore>

export function storeContract(t: Test, open: OpenStore): void {
  let store: HistoryStore
  let history: History
  let ids = 0

  t.before(async () => {
    store = await open('contract')
    history = new History(store)
  })
  t.teardown(() => store.close())
  t.comment(`seed ${SEED}`)

  /** The id of a new, empty session. */
  const created = async (): Promise<string> => {
    const id = `s${ids++}`
    await history.create(id, undefined)
    return id
  }
  const stored = async (events: readonly SessionEvent[]): Promise<string> => {
    const id = await created()
    if (events.length > 0) await history.append(id, bodyOfEvents(events), {})
    return id
  }
  const rangeText = async (id: string, fromSeq: number, toSeq: number, chunks: ChunksMode): Promise<string> =>
    collect((await history.range({ id }, { fromSeq, toSeq, chunks })).bytes('ndjson'))
  const wholeText = async (id: string): Promise<string> =>
    collect((await history.range({ id }, { chunks: 'expanded' })).bytes('ndjson'))
  const importText = (text: string, options: { expectedHead?: number; size?: number } = {}) =>
    history.importLog(pieces(bytesOf(text), options.size ?? 64), options)
  const exportText = async (id: string, layout: 'packed' | 'events'): Promise<string> =>
    collect((await history.exportLog(id, { layout })).bytes())

  // ---- sessions -----------------------------------------------------------------------------------------------------

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

  // ---- appending ----------------------------------------------------------------------------------------------------

  t.test('events come back as the text that was sent', async (t) => {
    // Cases E1, E3, E5, E6, E7, E8 and E12: halves of pairs, controls, numbers, keys and their order.
    const values = [
      ...ODD_NUMBERS,
      '{"b":1,"2":1.0,"1":1e5,"a":{}}',
      '{"__proto__":{"x":1},"constructor":{"prototype":{"y":2}}}',
      '{"a\\u0000b":1,"a\\u0000c":2,"a":3,"a":4}',
      '"\\ud83d"',
      '"\\u2028\u2028\\u0000\\u001f\\u007f\u007f\ufeff\u0085"',
      '"\\/\\u0041"',
      '[]',
      'null',
    ]
    const id = await created()
    const sent = values.map((data, seq) => `{"data":${data},"type":"x","time":${-seq},"seq":${seq},"future":[${data}]}`)
    await history.append(id, bodyOf(...sent.map((text) => ` ${text.replaceAll(',"type"', ' ,\t"type"')} `)), {})
    t.strictSame(
      linesOf(await wholeText(id)),
      sent.map((text) => `{"type":"event","event":${text}}`),
    )
    const halves = await stored([textDelta(0, '\ud83d'), textDelta(1, '\ude00'), textDelta(2, '\0')])
    const [row] = recordsOf(await rangeText(halves, 0, 3, 'packed'))
    t.match(row, { type: 'chunks', event: { data: { texts: ['\ud83d', '\ude00', '\0'] } } })
  })

  t.test('events without seq are numbered from the head, or from expectedSeq and then repeat safely', async (t) => {
    // Case H14: an answer lost after the commit, and the retry in parallel with it.
    const id = await created()
    const { epoch } = await history.describe(id)
    const lines = ['{"type":"a","data":1}', '{"type":"b","data":2}']
    t.strictSame(await history.append(id, bodyOf(...lines), {}), { head: 1, appended: 2, duplicates: 0, epoch })
    t.strictSame(await history.append(id, bodyOf(...lines), {}), { head: 3, appended: 2, duplicates: 0, epoch })
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => history.append(id, bodyOf(...lines), { expectedSeq: 4 })),
    )
    t.strictSame(
      answers.map(({ head }) => head),
      [5, 5, 5, 5, 5],
    )
    t.equal(
      answers.reduce((sum, { appended }) => sum + appended, 0),
      2,
    )
    const records = recordsOf(await wholeText(id))
    assertCovers(records, 0, 6)
    for (const { event } of records) t.ok(event.time > 1_700_000_000_000, 'stamped')
    await t.rejects(history.append(id, bodyOf('{"type":"other","data":1}'), { expectedSeq: 4 }), {
      code: 'append/conflict',
      facts: { seq: 4, head: 5, line: 1 },
    })
    await t.rejects(history.append(id, bodyOf(...lines), { expectedSeq: 7 }), {
      code: 'append/gap',
      facts: { expectedSeq: 6, head: 5, line: 1 },
    })
  })

  t.test('a refused request names the line and leaves nothing, and the corrected one is taken', async (t) => {
    // Case H15.
    const id = await stored([userMessage(0), ...textDeltas(1, 4)])
    const before = await history.describe(id)
    const text = await wholeText(id)
    const good = [textDelta(4), textDelta(5), userMessage(6)].map((event) => JSON.stringify(event))
    const table: [name: string, line: string, code: string, facts: object][] = [
      ['not JSON', '{"type":', 'event/invalid', { line: 4 }],
      ['no object', '[1]', 'event/invalid', { line: 4 }],
      [
        'a reserved type',
        '{"type":"chunkrow/x","seq":7,"time":1,"data":1}',
        'event/invalid',
        { line: 4, path: '/type' },
      ],
      ['a hole', '{"type":"x","seq":8,"time":1,"data":1}', 'append/gap', { line: 4, expectedSeq: 7 }],
      ['no seq', '{"type":"x","data":1}', 'event/invalid', { line: 4, path: '/seq' }],
      ['1e400 as a seq', '{"type":"x","seq":1e400,"time":1,"data":1}', 'event/invalid', { line: 4, path: '/seq' }],
      ['a key twice', '{"type":"x","seq":7,"time":1,"data":1,"data":2}', 'event/invalid', { line: 4, path: '/data' }],
      [
        'an omitted range',
        '{"type":"omitted","event":{"type":"chunkrow/omitted","seq":7,"time":1,"data":{"count":2}}}',
        'record/malformed',
        { line: 4 },
      ],
      [
        'a malformed row',
        '{"type":"chunks","event":{"type":"chunkrow/text-chunks","seq":7,"time":1,"data":{"turn":0,"step":0,"index":0,"dt":[1],"texts":["a"]}}}',
        'record/malformed',
        { line: 4 },
      ],
      [
        'a bad replacement',
        JSON.stringify({ ...userMessage(7), surfaceOp: { op: 'replace', start: 1, end: 6 } }),
        'event/invalid',
        { line: 4, path: '/surfaceOp/start' },
      ],
    ]
    for (const [name, line, code, facts] of table) {
      await t.rejects(history.append(id, bodyOf(...good, line), {}), { code, facts }, name)
    }
    await t.rejects(
      history.append(id, { format: 'ndjson', bytes: [bytesOf(`${good.join('\n')}\n`), Uint8Array.of(0x22, 0xff)] }, {}),
      { code: 'record/malformed', facts: { line: 4 } },
    )
    t.strictSame(await history.describe(id), before)
    t.equal(await wholeText(id), text)
    t.match(await history.append(id, bodyOf(...good), {}), { head: 6, appended: 3 })
    t.equal(await wholeText(id), pageText([userMessage(0), ...textDeltas(1, 6), userMessage(6)], 0, 7, 'expanded'))
  })

  t.test('refused requests take nothing of those that share their commit', async (t) => {
    const ids = await Promise.all(Array.from({ length: 6 }, created))
    const answers = await Promise.allSettled(
      ids.flatMap((id, at) => [
        history.append(id, bodyOfEvents([textDelta(0), textDelta(1), textDelta(2)]), {}),
        // Good, but its last line is not: all of it falls away.
        history.append(
          id,
          bodyOf(...textDeltas(3, 5).map((event) => JSON.stringify(event)), '{"type":"x","seq":9,"time":1,"data":1}'),
          {},
        ),
        at % 2 === 0
          ? history.append(id, bodyOfEvents(textDeltas(3, 6)), {})
          : history.append(id, bodyOfEvents([{ ...textDelta(3, 'other') }]), {}),
      ]),
    )
    t.strictSame(
      answers.map(({ status }) => status),
      ids.flatMap(() => ['fulfilled', 'rejected', 'fulfilled']),
    )
    for (const [at, id] of ids.entries()) {
      const events = at % 2 === 0 ? textDeltas(0, 6) : [...textDeltas(0, 3), textDelta(3, 'other')]
      t.equal(await rangeText(id, 0, events.length, 'packed'), pageText(events, 0, events.length, 'packed'))
      t.equal((await history.describe(id)).head, events.length - 1)
    }
  })

  t.test('requests of a tokens each from many hosts at once end as one row each', async (t) => {
    // Case H12.
    const ids = await Promise.all(Array.from({ length: 5 }, created))
    await Promise.all(
      ids.map(async (id) => {
        for (const event of textDeltas(0, 50)) await history.append(id, bodyOfEvents([event]), {})
        await history.append(id, bodyOfEvents([userMessage(50)]), {})
      }),
    )
    for (const id of ids) {
      const { log } = await history.describe(id)
      const records = await store.read(log, 0, 51, { maxBytes: 1e6, chunkLines: true })
      t.strictSame(
        records.map(({ first, last, kind }) => ({ first, last, kind })),
        [
          { first: 0, last: 49, kind: 'row' },
          { first: 50, last: 50, kind: 'event' },
        ],
      )
    }
  })

  t.test('a body may be one JSON value or an array, and rows are welcome', async (t) => {
    const id = await created()
    const json = (text: string) => ({ format: 'json' as const, bytes: [...pieceArray(bytesOf(text), 7)] })
    const row = packEvents(textDeltas(1, 5)).map(recordLine)[0] as string
    t.match(await history.append(id, json(` ${JSON.stringify(userMessage(0))} `), {}), { head: 0, appended: 1 })
    t.match(
      await history.append(id, json(`[ ${row} , {"type":"event","event":${JSON.stringify(userMessage(5))}} ]`), {}),
      { head: 5, appended: 5 },
    )
    t.match(await history.append(id, json('[]'), {}), { head: 5, appended: 0, duplicates: 0 })
    t.match(await history.append(id, bodyOf(), {}), { head: 5, appended: 0, duplicates: 0 })
    t.equal(await wholeText(id), pageText([userMessage(0), ...textDeltas(1, 5), userMessage(5)], 0, 6, 'expanded'))
    await t.rejects(history.append(id, json(`[${JSON.stringify(userMessage(6))},{"type":"x"}]`), {}), {
      code: 'event/invalid',
      facts: { line: 2, path: '/data' },
    })
    await t.rejects(history.append(id, json(`[${JSON.stringify(userMessage(6))}`), {}), { code: 'request/invalid' })
    t.equal((await history.describe(id)).head, 5)
  })

  t.test('an event near the line limit is kept whole, one over it is refused with the limit', async (t) => {
    // Case A12: it streams with its neighbours, and a page of it is one line.
    const id = await created()
    const limit = 8 * 1024 * 1024
    const frame = JSON.stringify({ type: 'x', seq: 1, time: 1, data: '' }).length
    const events = [userMessage(0), { type: 'x', seq: 1, time: 1, data: 'x'.repeat(limit - frame) }, userMessage(2)]
    t.match(await history.append(id, bodyOfEvents(events), {}), { head: 2 })
    t.ok((await wholeText(id)) === pageText(events, 0, 3, 'expanded'))
    const over = `{"type":"x","seq":3,"time":1,"data":"${'x'.repeat(limit - frame + 1)}"}`
    await t.rejects(history.append(id, bodyOf(over), {}), { code: 'request/too-large', facts: { limit, line: 1 } })
  })

  // ---- properties ---------------------------------------------------------------------------------------------------

  t.test('pages, counters and messages are functions of the events, at every moment of the log’s life', async () => {
    await fc.assert(
      fc.asyncProperty(
        logEvents,
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }),
        fc.constantFrom('events', 'rows', 'turned'),
        fc.array(fc.tuple(fc.nat(), fc.nat(), anyMode), { minLength: 1, maxLength: 4 }),
        async (events, sizes, form, ranges) => {
          const id = await created()
          for (let at = 0, turn = 0; at < events.length; turn++) {
            const batch = events.slice(at, at + (sizes[turn % sizes.length] as number))
            const lines =
              form === 'rows'
                ? packEvents(batch).map(recordLine)
                : batch.map((event) =>
                    JSON.stringify(
                      form === 'turned' && event.type === 'assistant/chunk' && isPackable(event)
                        ? turnedKeys(event)
                        : event,
                    ),
                  )
            await history.append(id, bodyOf(...lines), {})
            at += batch.length
            // A fixed range has these bytes now, though its last run may still be open, and for ever.
            const [one, other, chunks] = ranges[turn % ranges.length] as [number, number, ChunksMode]
            const [from, to] = [one % (at + 1), other % (at + 1)].sort((a, b) => a - b) as [number, number]
            assert.equal(await rangeText(id, from, to, chunks), pageText(events, from, to, chunks))
          }
          for (const [one, other, chunks] of ranges) {
            const [from, to] = [one, other].map((seq) => seq % (events.length + 1)).sort((a, b) => a - b) as [
              number,
              number,
            ]
            assert.equal(await rangeText(id, from, to, chunks), pageText(events, from, to, chunks))
          }
          const { head, messages, bytes } = await history.describe(id)
          assert.deepEqual(
            { head, messages, bytes },
            { head: events.length - 1, messages: events.filter(isMessage).length, bytes: logBytes(events) },
          )
          const surface = foldSurface(events).map(({ seq, message }) => JSON.stringify({ seq, message }))
          assert.deepEqual(linesOf(await collect((await history.messages({ id }, {})).bytes())), surface)
        },
      ),
      BOX,
    )
  })

  t.test('a walk of pages covers the log once in order, and omitted ranges fetched give back every event', async () => {
    // Cases A1, A9 and A10: whatever the size, no message is cut from what made it, no result is lost.
    await fc.assert(
      fc.asyncProperty(logEvents, fc.integer({ min: 1, max: 6 }), anyMode, async (events, maxMessages, chunks) => {
        const id = await stored(events)
        const walked: SessionEvent[][] = []
        for await (const page of walkPages(history, { id }, { maxMessages, chunks })) {
          assert.equal(page.from, pageStartOf(events, page.to, maxMessages))
          const fetched = async (fromSeq: number, toSeq: number) =>
            pageRecords(await history.range({ id }, { fromSeq, toSeq, chunks: 'packed' }))
          walked.unshift(await eventsOf(await pageRecords(page), fetched))
        }
        assert.deepEqual(walked.flat(), events)
      }),
      BOX,
    )
  })

  t.test('an export imported is the same session, in both layouts and any slicing', async () => {
    await fc.assert(
      fc.asyncProperty(logEvents, fc.boolean(), fc.integer({ min: 1, max: 300 }), async (events, packed, size) => {
        const id = await stored(events)
        const layout = packed ? 'packed' : 'events'
        const file = await exportText(id, layout)
        const { epoch, head } = await history.describe(id)
        assert.deepEqual(await importText(file, { size }), { id, epoch, head, created: false })
        const copy = `copy-${id}`
        const renamed = file.replace(`"id":"${id}"`, `"id":"${copy}"`)
        const imported = await importText(renamed, { size, expectedHead: head })
        assert.deepEqual({ ...imported, epoch: '' }, { id: copy, epoch: '', head, created: true })
        assert.equal(await exportText(copy, layout), renamed)
        assert.equal(await rangeText(copy, 0, head + 1, 'packed'), pageText(events, 0, head + 1, 'packed'))
        const [one, other] = [await history.describe(id), await history.describe(copy)]
        assert.deepEqual([other.messages, other.bytes, other.head], [one.messages, one.bytes, one.head])
        const surface = async (of: string) => collect((await history.messages({ id: of }, {})).bytes())
        assert.equal(await surface(copy), await surface(id))
      }),
      BOX,
    )
  })

  t.test(
    'a failed request changes nothing, and requests repeated in any order and overlap store each event once',
    async () => {
      const faults = [
        '{"type":"x"}',
        'x',
        '{"type":"end","seq":0,"time":0,"data":0}',
        '{"type":"x","seq":900,"time":1,"data":0}',
        '{"type":"x","data":1}',
      ]
      await fc.assert(
        fc.asyncProperty(
          nonEmptyLog,
          fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 9 }), fc.nat(), fc.constantFrom(...faults)), {
            minLength: 2,
            maxLength: 8,
          }),
          hardText,
          async (events, requests, other) => {
            const id = await created()
            let head = -1
            for (const [drawn, size, place, fault] of requests) {
              const from = drawn % Math.min(head + 2, events.length)
              const batch = events.slice(from, from + size)
              const lines = batch.map((event) => JSON.stringify(event))
              const before = await history.describe(id)
              const text = await wholeText(id)
              const broken = lines.toSpliced(1 + (place % lines.length), 0, fault)
              await assert.rejects(history.append(id, bodyOf(...broken), {}))
              const clash = JSON.stringify({ type: 'x', seq: from, time: 0, data: ['clash', other] })
              if (from <= head)
                await assert.rejects(history.append(id, bodyOf(clash, ...lines.slice(1)), {}), {
                  code: 'append/conflict',
                })
              assert.deepEqual(await history.describe(id), before)
              assert.equal(await wholeText(id), text)
              const { appended, duplicates } = await history.append(id, bodyOf(...lines), {})
              const after = Math.max(head, from + batch.length - 1)
              assert.deepEqual(
                { appended, duplicates },
                { appended: after - head, duplicates: batch.length - (after - head) },
              )
              head = after
            }
            assert.equal(await wholeText(id), pageText(events, 0, head + 1, 'expanded'))
          },
        ),
        BOX,
      )
    },
  )

  // ---- pages --------------------------------------------------------------------------------------------------------

  t.test('messages of one and the same time are paged by their place', async (t) => {
    // Case A4.
    const events = messagesLog(45)
    const id = await stored(events)
    const seen: number[] = []
    for await (const page of walkPages(history, { id }, { maxMessages: 20 })) {
      seen.unshift(...(await pageRecords(page)).map(({ event }) => event.seq))
    }
    t.strictSame(seen, [...events.keys()])
  })

  t.test('messages appended during a walk move nothing of it', async (t) => {
    // Case A5.
    const events = messagesLog(200)
    const id = await stored(events)
    const seen: number[] = []
    let head = 199
    for await (const page of walkPages(history, { id }, { maxMessages: 9 })) {
      seen.unshift(...(await pageRecords(page)).map(({ event }) => event.seq))
      await history.append(id, bodyOfEvents([userMessage(++head)]), {})
    }
    t.strictSame(seen, [...events.keys()])
  })

  t.test('an ever growing run costs nothing but itself at any edge', async (t) => {
    const events = [userMessage(0), ...textDeltas(1, 9), assistantMessage(9, [1]), ...textDeltas(10, 12)]
    const id = await created()
    for (const event of events) {
      await history.append(id, bodyOfEvents([event]), {})
      const to = event.seq + 1
      for (let from = 0; from <= to; from++) {
        for (const chunks of MODES)
          assert.equal(await rangeText(id, from, to, chunks), pageText(events, from, to, chunks))
      }
    }
    t.equal((await history.describe(id)).head, 11)
  })

  t.test('reads come in bounded batches that join', async (t) => {
    const events = [...messagesLog(40), ...textDeltas(40, 60), userMessage(60), ...textDeltas(61, 70)]
    const id = await stored(events)
    const { log } = await history.describe(id)
    for (const chunkLines of [true, false]) {
      for (const maxBytes of [0, 1, 500, 1e9]) {
        const seen: number[] = []
        for (let at = 3; at < 66; ) {
          const records = await store.read(log, at, 66, { maxBytes, chunkLines })
          assert(records.length > 0)
          const bytes = records.slice(0, -1).reduce((sum, { line }) => sum + (line?.length ?? 0), 0)
          // The open run is one record more, however large.
          if (maxBytes <= 1) assert(records.length <= 2)
          assert(bytes <= Math.max(maxBytes, 500) + 5_000)
          for (const { first, last, kind, line } of records) {
            for (let seq = Math.max(first, at); seq <= Math.min(last, 65); seq++) seen.push(seq)
            const inside = first >= 3 && last < 66
            assert.equal(line === undefined, !chunkLines && kind !== 'event' && inside && first < 61)
          }
          at = (records.at(-1)?.last as number) + 1
        }
        t.strictSame(
          seen,
          Array.from({ length: 63 }, (_, index) => index + 3),
          `${maxBytes} bytes, lines ${chunkLines}`,
        )
      }
    }
    const surface: number[] = []
    for (let after: Parameters<HistoryStore['readSurface']>[2], reads = 0; ; reads++) {
      const { messages, next } = await store.readSurface(log, 69, after, 1)
      surface.push(...messages.map(({ seq }) => seq))
      if (!next) {
        t.ok(reads >= 40, 'one message a read')
        break
      }
      after = next
    }
    t.strictSame(surface, [...messagesLog(40).keys(), 60])
    t.strictSame(await store.messageGroups(log, 0, 70), [])
    t.equal(await store.pageStart(log, 70, 1), 60)
    t.equal(await store.pageStart(log, 60, 1), 39)
    t.equal(await store.pageStart(log, 60, 41), 0)
    t.equal(await store.pageStart(log, 0, 1), 0)
  })

  t.test('the surface is told as it stood at the head that is asked for', async (t) => {
    const replace = (seq: number, start: number, end: number): SessionEvent => ({
      ...userMessage(seq),
      surfaceOp: { op: 'replace', start, end },
    })
    const events = [...messagesLog(4), replace(4, 1, 2), userMessage(5), replace(6, 0, 4), replace(7, 3, 5)]
    const id = await stored(events)
    const { log } = await history.describe(id)
    for (let head = -1; head < events.length; head++) {
      const { messages } = await store.readSurface(log, head, undefined, 1e6)
      t.strictSame(
        messages.map(({ seq }) => seq),
        foldSurface(events.slice(0, head + 1)).map(({ seq }) => seq),
        `at ${head}`,
      )
    }
  })

  t.test('readers and writers go on beside one another', async (t) => {
    // Case H3.
    const id = await created()
    let done = false
    const reading = Array.from({ length: 4 }, async () => {
      let pages = 0
      while (!done) {
        await pageRecords(await history.page({ id }, { maxMessages: 3, chunks: 'omit' }))
        pages++
      }
      return pages
    })
    for (let at = 0; at < 300; at += 3) {
      await history.append(
        id,
        bodyOfEvents([textDelta(at), textDelta(at + 1), assistantMessage(at + 2, [at, at + 1])]),
        {},
      )
    }
    done = true
    for (const pages of await Promise.all(reading)) t.ok(pages > 0)
    t.equal((await history.describe(id)).messages, 100)
  })

  // ---- hints and the end --------------------------------------------------------------------------------------------

  t.test('a watcher hears of each commit, of a deletion last, and of nothing refused or stopped', async (t) => {
    const id = await created()
    const { log } = await history.describe(id)
    const heard: LogHint[] = []
    const stop = store.watch((hint) => {
      if (hint.log === log) heard.push(hint)
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

  // ---- import -------------------------------------------------------------------------------------------------------

  const HEADER = (id: string, version = '0'): string =>
    `{"type":"session","version":${version},"id":"${id}","createdAt":5}`
  const EVENTS = [userMessage(0), ...textDeltas(1, 5), assistantMessage(5, [1, 2, 3, 4])].map((event) =>
    JSON.stringify(event),
  )
  const file = (id: string, lines: readonly string[] = EVENTS): string => [HEADER(id), ...lines, ''].join('\n')

  t.test('an import makes the session of the file, or finds it', async (t) => {
    const { epoch, ...rest } = await importText(file('imported'), { expectedHead: 5 })
    t.strictSame(rest, { id: 'imported', head: 5, created: true })
    t.match(await history.describe('imported'), { epoch, head: 5, messages: 2, createdAt: 5 })
    t.strictSame(await importText(file('imported')), { id: 'imported', epoch, head: 5, created: false })
    // Packed or not, with other white space, a BOM and other line ends: the same session.
    const row =
      '{"type":"text-chunks","seq0":1,"time0":1785000000001,"data":{"turn":0,"step":0,"index":0,"dt":[1,1,1],"texts":["x","x","x","x"]}}'
    const packed = file('imported', [EVENTS[0] as string, row, EVENTS[5] as string])
    t.match(await importText(packed), { created: false, epoch })
    t.match(await importText(`\ufeff${packed.replaceAll('\n', '\r\n\n')}`), { created: false, epoch }, 'case D9')
    t.match(await importText(packed.slice(0, -1)), { created: false, epoch }, 'no newline at the end')
    const others = {
      shorter: file('imported', EVENTS.slice(0, 5)),
      longer: file('imported', [...EVENTS, JSON.stringify(userMessage(6))]),
      'of other events': file('imported', [...EVENTS.slice(0, 5), JSON.stringify(userMessage(5))]),
      'of other deltas': file('imported', EVENTS.with(2, JSON.stringify(textDelta(2, 'y')))),
      'of another header': file('imported').replace('"createdAt":5', '"createdAt":6'),
    }
    for (const [name, text] of Object.entries(others)) {
      await t.rejects(importText(text), { code: 'session/exists', facts: { epoch, head: 5 } }, name)
    }
    t.match(await history.describe('imported'), { epoch, head: 5 })
    t.match(await importText(`${HEADER('headed')}\n`), { id: 'headed', head: -1, created: true })
    t.match(
      await history.append('imported', bodyOfEvents([userMessage(6)]), {}),
      { head: 6 },
      'it goes on like any other',
    )
  })

  t.test('a file that is not whole is refused with its last good line, and leaves nothing', async (t) => {
    // Case H17, of a file; D5, of a line over the limit.
    const hole = EVENTS.toSpliced(2, 1)
    const table: [name: string, text: string, code: string, facts: object][] = [
      ['empty', '', 'log/invalid', { line: 1 }],
      ['blank', '\n\r\n \n', 'log/invalid', { line: 1 }],
      ['no header', `${EVENTS.join('\n')}\n`, 'log/invalid', { line: 1, lastGoodLine: 0 }],
      ['another version', [HEADER('bad', '1'), ...EVENTS].join('\n'), 'log/invalid', { line: 1, path: '/version' }],
      ['a header twice', file('bad', [HEADER('bad'), ...EVENTS]), 'log/invalid', { line: 2, lastGoodLine: 1 }],
      ['a hole', file('bad', hole), 'log/invalid', { line: 4, lastGoodLine: 3, expectedSeq: 2 }],
      [
        'a hole at the start',
        file('bad', EVENTS.slice(1)),
        'log/invalid',
        { line: 2, lastGoodLine: 1, expectedSeq: 0 },
      ],
      [
        'a line twice',
        file('bad', [...EVENTS.slice(0, 2), EVENTS[1] as string]),
        'log/invalid',
        { line: 4, lastGoodLine: 3 },
      ],
      ['cut inside a line', file('bad').slice(0, -4), 'log/invalid', { line: 7, lastGoodLine: 6 }],
      ['cut inside the header', HEADER('bad').slice(0, 30), 'log/invalid', { line: 1, lastGoodLine: 0 }],
      ['damaged', file('bad').replace('"seq":3', '"seq":x'), 'log/invalid', { line: 5, lastGoodLine: 4 }],
      ['not numbered', file('bad', ['{"type":"x","data":1}']), 'log/invalid', { line: 2, path: '/seq' }],
      ['a record, not an event', file('bad', [`{"type":"event","event":${EVENTS[0]}}`]), 'log/invalid', { line: 2 }],
      [
        'a bad replacement',
        file('bad', [JSON.stringify({ ...userMessage(0), surfaceOp: { op: 'replace', start: 0, end: 0 } })]),
        'log/invalid',
        { line: 2 },
      ],
    ]
    for (const size of [1, 50, 100_000]) {
      for (const [name, text, code, facts] of table) {
        await t.rejects(importText(text, { size }), { code, facts }, `${name}, ${size} bytes at a time`)
      }
    }
    const invalidUtf8 = Buffer.concat([bytesOf(file('bad')), Uint8Array.of(0x22, 0xc3)])
    await t.rejects(history.importLog(pieces(invalidUtf8, 10), {}), {
      code: 'log/invalid',
      facts: { line: 8, lastGoodLine: 7 },
    })
    // A cut at a line's edge leaves a valid file: only its expected head tells.
    await t.rejects(importText(file('bad', EVENTS.slice(0, 3)), { expectedHead: 5 }), {
      code: 'log/invalid',
      facts: { head: 2 },
    })
    await t.rejects(importText(file('bad'), { expectedHead: 4 }), { code: 'log/invalid', facts: { head: 5 } })
    t.equal(await store.describe('bad'), undefined)
    t.match(await importText(file('bad')), { created: true, head: 5 }, 'the id is still free')
  })

  t.test('an import is seen only whole, and one that breaks off leaves nothing', async (t) => {
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield bytesOf(`${HEADER('slow')}\n`)
      for (let seq = 0; seq < 40; seq++)
        yield bytesOf(`${JSON.stringify({ ...userMessage(seq), data: 'x'.repeat(60_000) })}\n`)
      t.equal(await store.describe('slow'), undefined, 'not yet')
      t.notOk((await history.list({ limit: 500 })).sessions.some(({ id }) => id === 'slow'))
    }
    t.match(await history.importLog(slow(), {}), { head: 39, created: true })
    t.equal((await history.describe('slow')).messages, 40)

    async function* breaking(): AsyncGenerator<Uint8Array> {
      yield bytesOf(file('broken'))
      throw new Error('the socket closed')
    }
    await t.rejects(history.importLog(breaking(), {}), { message: 'the socket closed' })
    t.equal(await store.describe('broken'), undefined)
    t.match(await importText(file('broken')), { created: true })
  })

  t.test('imports of one file at the same time end as one session', async (t) => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => importText(file('together'))))
    t.equal(answers.filter(({ created }) => created).length, 1)
    t.equal(new Set(answers.map(({ epoch }) => epoch)).size, 1)
  })

  t.test('appends go on while a file is imported', async (t) => {
    const id = await created()
    let appended = 0
    async function* source(): AsyncGenerator<Uint8Array> {
      yield bytesOf(`${HEADER('beside')}\n`)
      for (let seq = 0; seq < 30; seq++) {
        yield bytesOf(`${JSON.stringify({ ...userMessage(seq), data: 'x'.repeat(100_000) })}\n`)
        await history.append(id, bodyOfEvents([userMessage(appended++)]), {})
      }
    }
    t.match(await history.importLog(source(), {}), { head: 29 })
    t.equal((await history.describe(id)).head, 29)
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

function isPackable(event: SessionEvent): boolean {
  return packEvents([event, event, event].map((each, at) => ({ ...each, seq: event.seq + at }))).length === 1
}

function* pieceArray(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  yield* pieceArray(bytes, size)
}
