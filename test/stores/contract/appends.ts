// Appends: what is taken, what is refused and with which facts, and that a request is stored whole or not at all.

import type { Test } from 'tap'
import { packEvents } from '../../../codec/index.ts'
import { ODD_NUMBERS } from '../../support/arbitraries.ts'
import {
  assertCovers,
  bodyOf,
  bodyOfEvents,
  bytesOf,
  linesOf,
  pageText,
  recordLine,
  recordsOf,
  textDelta,
  textDeltas,
  userMessage,
} from '../../support/logs.ts'
import { pieceArray, type Subject } from './subject.ts'

export function appendsContract(t: Test, subject: Subject): void {
  const { store, history, created, stored, rangeText, wholeText } = subject
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
}
