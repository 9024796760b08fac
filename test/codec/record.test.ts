// Records: what is valid, which seqs they cover, their exact text, their slices, and the lines that a producer sends.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { parseEventText } from '../../codec/event.ts'
import { Problem } from '../../codec/problem.ts'
import type { ChunkRowEvent, SessionHistoryRecord } from '../../codec/record.ts'
import {
  eventRecordLine,
  omittedRecordLine,
  parseInputLine,
  recordRange,
  rowFragments,
  rowRecordLine,
  rowText,
  rowTimeAt,
  sliceRow,
  validateRecord,
  validateRow,
} from '../../codec/record.ts'
import { inTime, rawEvent, spacedJson } from '../support/arbitraries.ts'

const MAX = Number.MAX_SAFE_INTEGER

function fixture(name: string): string[] {
  return readFileSync(new URL(`../fixtures/records/${name}.ndjson`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
}

/** A file of a row: its record line, then each of its slices as the records that stand for it. */
const ROW_FIXTURES = ['text-row', 'reasoning-row', 'tool-call-row', 'tool-call-row-unnamed']

function problemOf(act: () => unknown): Problem {
  try {
    act()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

function asRecords(slice: ReturnType<typeof sliceRow>): SessionHistoryRecord[] {
  return Array.isArray(slice) ? slice.map((event) => ({ type: 'event', event })) : [{ type: 'chunks', event: slice }]
}

function textRow(): {
  type: string
  event: { type: string; seq: number; time: number; data: Record<string, unknown> }
} {
  return {
    type: 'chunks',
    event: {
      type: 'chunkrow/text-chunks',
      seq: 10,
      time: 1000,
      data: { turn: 1, step: 2, index: 0, dt: [5, -5], texts: ['a', 'b', 'c'] },
    },
  }
}

function toolRow(): ReturnType<typeof textRow> {
  return {
    type: 'chunks',
    event: {
      type: 'chunkrow/tool-call-chunks',
      seq: 10,
      time: 1000,
      data: { turn: 1, step: 2, index: 0, id: 'call', name: 'run', dt: [5, -5], args: ['a', 'b', 'c'] },
    },
  }
}

t.test('each fixture is valid and its text is its own', (t) => {
  for (const name of ROW_FIXTURES) {
    const line = fixture(name)[0]!
    const record = JSON.parse(line)
    t.equal(validateRecord(record), record, name)
    t.equal(validateRow(record.event), record.event, name)
    t.equal(rowRecordLine(record.event), line, name)
    t.equal(rowText(record.event), line.slice('{"type":"chunks","event":'.length, -1), name)
    t.same(parseInputLine(line), { kind: 'row', row: record.event }, name)
  }
  for (const line of fixture('others')) {
    const record = validateRecord(JSON.parse(line))
    if (record.type === 'omitted') {
      t.equal(omittedRecordLine(record.event.seq, record.event.time, record.event.data.count), line)
    } else t.equal(eventRecordLine(line.slice('{"type":"event","event":'.length, -1)), line)
  }
  t.end()
})

t.test('a row in every slicing', (t) => {
  for (const name of ROW_FIXTURES) {
    const [line, ...slices] = fixture(name)
    const row: ChunkRowEvent = JSON.parse(line!).event
    const members = rowFragments(row).length
    t.equal(slices.length, ((members + 1) * (members + 2)) / 2, `${name} has every pair of edges`)
    for (const slice of slices) {
      const { from, to, records } = JSON.parse(slice)
      const found = asRecords(sliceRow(row, row.seq + from, row.seq + to))
      t.equal(JSON.stringify(found), JSON.stringify(records), `${name} ${from}..${to}`)
      for (const record of found) validateRecord(record)
    }
    t.equal(sliceRow(row, 0, Number.POSITIVE_INFINITY), row, 'edges outside the row give the row itself')
    t.same(sliceRow(row, row.seq + members, row.seq + members + 1), [])
    t.same(sliceRow(row, 0, row.seq), [])
    t.same(sliceRow(row, row.seq + 2, row.seq + 1), [], 'an empty range is no error')
    let time = row.time
    for (let k = 0; k < members; k++) {
      t.equal(rowTimeAt(row, row.seq + k), time)
      time += row.data.dt[k] ?? 0
    }
  }
  t.end()
})

t.test('a slice does not change with the row it was cut from', (t) => {
  const row = JSON.parse(fixture('text-row')[0]!).event as ChunkRowEvent
  const slice = sliceRow(row, row.seq + 1, row.seq + 4) as ChunkRowEvent
  const before = JSON.stringify(slice)
  rowFragments(row)[1] = 'changed'
  row.data.dt[1] = 99
  t.equal(JSON.stringify(slice), before)
  t.end()
})

t.test('slices of slices agree', (t) => {
  const edge = fc.nat({ max: 14 })
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string(), fc.integer({ min: -9, max: 9 })), { minLength: 3, maxLength: 12 }),
      edge,
      edge,
      edge,
      edge,
      (members, a, b, c, d) => {
        const row: ChunkRowEvent = {
          type: 'chunkrow/text-chunks',
          seq: 1,
          time: 50,
          data: {
            turn: 0,
            step: 0,
            index: 0,
            dt: members.slice(1).map(([, gap]) => gap),
            texts: members.map(([fragment]) => fragment),
          },
        }
        const outer = sliceRow(row, a, b)
        if (Array.isArray(outer)) return
        assert.deepEqual(sliceRow(outer, c, d), sliceRow(row, Math.max(a, c), Math.min(b, d)))
      },
    ),
    inTime(500),
  )
  t.end()
})

t.test('a record covers its range', (t) => {
  const ranges: [string, number, number][] = [
    ['{"type":"event","event":{"type":"x","seq":0,"time":0,"data":1}}', 0, 1],
    [`{"type":"event","event":{"type":"x","seq":${MAX},"time":0,"data":1}}`, MAX, MAX + 1],
    [fixture('text-row')[0]!, 41, 46],
    [fixture('tool-call-row')[0]!, 9007199254740987, MAX + 1],
    [fixture('tool-call-row-unnamed')[0]!, 7, 10],
    [omittedRecordLine(12, 0, 1), 12, 13],
    [omittedRecordLine(12, 0, 26562), 12, 26574],
    [omittedRecordLine(MAX, 0, 1), MAX, MAX + 1],
  ]
  for (const [line, from, to] of ranges) t.same(recordRange(validateRecord(JSON.parse(line))), { from, to })
  t.end()
})

t.test('readers take rows that a writer would not make', (t) => {
  const one = textRow()
  Object.assign(one.event.data, { dt: [], texts: ['alone'] })
  t.equal(validateRecord(one), one)
  t.same(sliceRow(one.event as ChunkRowEvent, 0, 99), [
    {
      type: 'assistant/chunk',
      seq: 10,
      time: 1000,
      data: { turn: 1, step: 2, chunk: { type: 'text-delta', index: 0, text: 'alone' } },
    },
  ])
  const many = textRow()
  Object.assign(many.event.data, { dt: new Array(9999).fill(0), texts: new Array(10000).fill('') })
  t.equal(validateRecord(many), many)
  t.end()
})

t.test('a row may go to the edges of the safe integers and no further', (t) => {
  const rows: [string, number, number, number[], string | undefined][] = [
    ['last seq', MAX - 2, 0, [0, 0], undefined],
    ['seq one past', MAX - 1, 0, [0, 0], '/seq'],
    ['seq far past', MAX, 0, [0, 0], '/seq'],
    ['latest time', 0, MAX - 3, [1, 2], undefined],
    ['time one past', 0, MAX - 3, [1, 3], '/data/dt/1'],
    ['time past and back', 0, MAX, [1, -1], '/data/dt/0'],
    ['earliest time', 0, -MAX + 3, [-1, -2], undefined],
    ['time one before', 0, -MAX + 3, [-1, -3], '/data/dt/1'],
    ['the widest gap', 0, -1, [MAX, -MAX], undefined],
    ['a gap over all there is', 0, -MAX, [MAX, MAX], undefined],
    ['a gap from end to end', 0, MAX, [-MAX, -MAX], undefined],
    ['a gap past the end', 0, MAX, [-MAX, -MAX - 1], '/data/dt/1'],
    ['rounding hides nothing', 0, MAX, [MAX, -MAX], '/data/dt/0'],
  ]
  for (const [name, seq, time, dt, path] of rows) {
    const row = { ...textRow().event, seq, time }
    row.data.dt = dt
    if (path === undefined) t.equal(validateRow(row), row, name)
    else
      t.match(
        problemOf(() => validateRow(row)),
        { code: 'record/malformed', facts: { path: new RegExp(`^${path}$`) } },
        name,
      )
  }
  t.end()
})

/** A parsed record, to be spoilt. */
// biome-ignore lint/suspicious/noExplicitAny: the point is to write what no type allows
type Loose = any

t.test('a malformed record names what is wrong', (t) => {
  const bare = (edit: (record: Loose) => void, base: () => object = textRow): unknown => {
    const record = base()
    edit(record as Loose)
    return record
  }
  const data = (key: string, value: unknown, base?: () => object) =>
    bare((record) => {
      record.event.data[key] = value
    }, base)
  const event = (key: string, value: unknown) =>
    bare((record) => {
      record.event[key] = value
    })
  const omitted = (edit: (event: Loose) => void): unknown =>
    bare(
      (record) => edit(record.event),
      () => JSON.parse(omittedRecordLine(3, 0, 2)),
    )
  const sparse: unknown[] = ['a', 'b', 'c']
  delete sparse[1]
  class Inherits {
    type = 'chunks'
  }
  Object.defineProperty(Inherits.prototype, 'event', { value: textRow().event, enumerable: true })

  const cases: [string, unknown, string][] = [
    ['null', null, ''],
    ['a list', [], ''],
    ['a text', 'chunks', ''],
    ['nothing', undefined, ''],
    ['no type', {}, '/type'],
    ['an unknown type', { type: 'row', event: {} }, '/type'],
    ['a type of another kind', { type: ['event'], event: {} }, '/type'],
    ['no event', { type: 'chunks' }, '/event'],
    ['an inherited event', new Inherits(), '/event'],
    ['a hidden event', Object.defineProperty({ type: 'chunks' }, 'event', { value: textRow().event }), '/event'],
    ['a key too many', { ...textRow(), more: 1 }, '/more'],
    ['a key with slash and tilde', { ...textRow(), 'a/b~': 1 }, '/a~1b~0'],
    ['__proto__ beside the event', JSON.parse('{"type":"chunks","__proto__":1,"event":{}}'), '/__proto__'],
    ['the event is null', { type: 'chunks', event: null }, '/event'],
    ['the event is a list', { type: 'chunks', event: [] }, '/event'],
    ['a row of an unknown type', event('type', 'chunkrow/other-chunks'), '/event/type'],
    ['a row of a storage type', event('type', 'text-chunks'), '/event/type'],
    ['a row typed by an inherited name', event('type', 'toString'), '/event/type'],
    ['an omitted range in a chunks record', event('type', 'chunkrow/omitted'), '/event/type'],
    ['an event in a chunks record', { type: 'chunks', event: { type: 'x', seq: 0, time: 0, data: 1 } }, '/event/type'],
    ['a row with a key too many', event('ignorable', true), '/event/ignorable'],
    ['no seq', bare((record) => delete record.event.seq), '/event/seq'],
    ['no time', bare((record) => delete record.event.time), '/event/time'],
    ['no data', bare((record) => delete record.event.data), '/event/data'],
    ['seq as text', event('seq', '10'), '/event/seq'],
    ['seq negative', event('seq', -1), '/event/seq'],
    ['seq -0', event('seq', -0), '/event/seq'],
    ['seq a fraction', event('seq', 0.5), '/event/seq'],
    ['seq unsafe', event('seq', MAX + 1), '/event/seq'],
    ['seq infinite', event('seq', JSON.parse('1e400')), '/event/seq'],
    ['time -0', event('time', -0), '/event/time'],
    ['time null', event('time', null), '/event/time'],
    ['time not a number', event('time', Number.NaN), '/event/time'],
    ['data null', event('data', null), '/event/data'],
    ['data a list', event('data', []), '/event/data'],
    ['no turn', bare((record) => delete record.event.data.turn), '/event/data/turn'],
    ['turn -0', data('turn', -0), '/event/data/turn'],
    ['step a fraction', data('step', 1.5), '/event/data/step'],
    ['index as text', data('index', '0'), '/event/data/index'],
    ['index unsafe', data('index', -MAX - 1), '/event/data/index'],
    ['an id on a text row', data('id', 'call'), '/event/data/id'],
    ['args on a text row', data('args', []), '/event/data/args'],
    ['texts on a tool-call row', data('texts', [], toolRow), '/event/data/texts'],
    [
      '__proto__ in data',
      bare((record) => {
        record.event.data = JSON.parse('{"__proto__":{},"turn":1,"step":1,"index":0,"dt":[],"texts":["a"]}')
      }),
      '/event/data/__proto__',
    ],
    ['no id on a tool-call row', bare((record) => delete record.event.data.id, toolRow), '/event/data/id'],
    ['id null', data('id', null, toolRow), '/event/data/id'],
    ['name null', data('name', null, toolRow), '/event/data/name'],
    ['name undefined', data('name', undefined, toolRow), '/event/data/name'],
    ['no dt', bare((record) => delete record.event.data.dt), '/event/data/dt'],
    ['dt an object', data('dt', { length: 2 }), '/event/data/dt'],
    ['dt too short', data('dt', [1]), '/event/data/dt'],
    ['dt too long', data('dt', [1, 1, 1]), '/event/data/dt'],
    ['a gap -0', data('dt', [1, -0]), '/event/data/dt/1'],
    ['a gap as text', data('dt', ['1', 1]), '/event/data/dt/0'],
    ['a gap a fraction', data('dt', [1, 0.25]), '/event/data/dt/1'],
    ['a gap unsafe', data('dt', [MAX + 1, 0]), '/event/data/dt/0'],
    ['a gap null', data('dt', [1, null]), '/event/data/dt/1'],
    ['a hole among the gaps', data('dt', new Array(2)), '/event/data/dt/0'],
    ['no texts', bare((record) => delete record.event.data.texts), '/event/data/texts'],
    ['texts a text', data('texts', 'abc'), '/event/data/texts'],
    ['no members', bare((record) => Object.assign(record.event.data, { dt: [], texts: [] })), '/event/data/texts'],
    ['a fragment of another kind', data('texts', ['a', 1, 'c']), '/event/data/texts/1'],
    ['a fragment null', data('args', ['a', 'b', null], toolRow), '/event/data/args/2'],
    ['a hole among the fragments', data('texts', sparse), '/event/data/texts/1'],
    [
      'an omitted range of none',
      omitted((event) => {
        event.data.count = 0
      }),
      '/event/data/count',
    ],
    [
      'an omitted range of less',
      omitted((event) => {
        event.data.count = -1
      }),
      '/event/data/count',
    ],
    [
      'an omitted count of a fraction',
      omitted((event) => {
        event.data.count = 1.5
      }),
      '/event/data/count',
    ],
    [
      'an omitted range past the end',
      omitted((event) => {
        event.seq = MAX
      }),
      '/event/data/count',
    ],
    [
      'an omitted range with more data',
      omitted((event) => {
        event.data.more = 1
      }),
      '/event/data/more',
    ],
    [
      'an omitted range without data',
      omitted((event) => {
        delete event.data
      }),
      '/event/data',
    ],
    [
      'an omitted range of another type',
      omitted((event) => {
        event.type = 'chunkrow/text-chunks'
      }),
      '/event/type',
    ],
  ]
  t.ok(cases.length >= 40)
  for (const [name, value, path] of cases) {
    const problem = problemOf(() => validateRecord(value))
    t.equal(problem.code, 'record/malformed', name)
    t.equal(problem.facts.path, path, name)
    if (path.startsWith('/event/') && (value as { type: string }).type === 'chunks') {
      const row = problemOf(() => validateRow((value as { event: unknown }).event))
      t.equal(row.facts.path, path.slice('/event'.length), `${name}, as a row`)
    }
  }
  t.end()
})

t.test('an event inside a record is checked, and its path told from the record', (t) => {
  const event = { type: 'x', seq: 0, time: 0, data: 1 }
  const cases: [string, unknown, string][] = [
    ['null', null, '/event'],
    ['seq', { ...event, seq: -1 }, '/event/seq'],
    ['reserved', { ...event, type: 'chunkrow/text-chunks' }, '/event/type'],
    ['surfaceOp', { ...event, surfaceOp: 'append' }, '/event/surfaceOp'],
  ]
  for (const [name, value, path] of cases) {
    const problem = problemOf(() => validateRecord({ type: 'event', event: value }))
    t.equal(problem.code, 'event/invalid', name)
    t.equal(problem.facts.path, path, name)
  }
  t.end()
})

t.test('validating allocates nothing for the members and names the first fault among many', (t) => {
  const record = textRow()
  const texts = new Array(200_000).fill('')
  const dt = new Array(199_999).fill(0)
  Object.assign(record.event.data, { dt, texts })
  t.equal(validateRecord(record), record)
  dt[150_000] = 0.5
  t.equal(problemOf(() => validateRecord(record)).facts.path, '/event/data/dt/150000')
  t.end()
})

t.test('the text of a row does not depend on the order of its keys', (t) => {
  const line = fixture('tool-call-row')[0]!
  const { event } = JSON.parse(line)
  const turned = (value: object) => Object.fromEntries(Object.entries(value).reverse())
  t.equal(rowRecordLine(validateRow({ ...turned(event), data: turned(event.data) })), line)
  t.end()
})

// ---- input lines --------------------------------------------------------------------------------------------------

t.test('an event is read the same, bare or inside a record', (t) => {
  fc.assert(
    fc.property(rawEvent, ({ text }) => {
      const bare = parseInputLine(text)
      assert.deepEqual(bare, { kind: 'event', event: parseEventText(text) })
      for (const wrapped of [
        eventRecordLine(text),
        `{"event":${text},"type":"event"}`,
        ` { "type" : "event" ,\t"event" : ${text} } `,
        `{"t\\u0079pe":"\\u0065vent","event":${text}}`,
      ]) {
        assert.deepEqual(parseInputLine(wrapped), bare)
      }
    }),
    inTime(300),
  )
  t.end()
})

t.test('the text of an event inside a record is the exact slice', (t) => {
  fc.assert(
    fc.property(spacedJson, ({ spaced, compact }) => {
      const item = parseInputLine(`{"type":"event", "event":{"type":"x","seq":0,"time":0,"data":${spaced}}}`)
      assert.equal(item.kind === 'event' && item.event.text, `{"type":"x","seq":0,"time":0,"data":${compact}}`)
    }),
    inTime(300),
  )
  t.end()
})

t.test('the place may be left out of an event inside a record too', (t) => {
  const item = parseInputLine('{"type":"event","event":{"type":"x","data":1}}')
  t.match(item, { kind: 'event', event: { seq: undefined, time: undefined, text: '{"type":"x","data":1}' } })
  const problem = problemOf(() => parseInputLine('{"type":"event","event":{"type":"x","data":1}}', { numbered: true }))
  t.equal(problem.facts.path, '/event/seq')
  t.end()
})

t.test('depth counts from the event, whether or not a record is around it', (t) => {
  const nested = (levels: number) => `{"type":"x","data":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  for (const wrap of [(text: string) => text, eventRecordLine, (text: string) => `{"event":${text},"type":"event"}`]) {
    t.equal(parseInputLine(wrap(nested(512))).kind, 'event')
    t.equal(problemOf(() => parseInputLine(wrap(nested(513)))).code, 'event/invalid')
  }
  t.end()
})

t.test('a row is read in any spelling of its text', (t) => {
  for (const name of ROW_FIXTURES) {
    const line = fixture(name)[0]!
    const record = JSON.parse(line)
    const spellings = [
      JSON.stringify(record, undefined, 1),
      JSON.stringify({ event: record.event, type: 'chunks' }),
      line.replace('"turn":', '"\\u0074urn" : '),
      line.replace(/"turn":(\d)/, '"turn":$1.0').replace(/"index":(\d)/, '"index":$1e0'),
    ]
    for (const spelling of spellings) {
      t.same(parseInputLine(spelling), { kind: 'row', row: record.event }, name)
    }
  }
  t.end()
})

t.test('lines that are refused, and why', (t) => {
  const row = rowRecordLine(textRow().event as ChunkRowEvent)
  const cases: [string, string, string, string][] = [
    ['nothing', '', 'event/invalid', ''],
    ['not JSON', '{"type":', 'event/invalid', ''],
    ['a record cut off', row.slice(0, -1), 'event/invalid', ''],
    ['an event record cut off', '{"type":"event","event":{"type":"x","data":1}', 'event/invalid', ''],
    ['a scalar', '7', 'event/invalid', ''],
    ['null', 'null', 'event/invalid', ''],
    ['a list', '[]', 'event/invalid', ''],
    ['no type', '{"seq":0}', 'event/invalid', '/type'],
    ['an end', '{"type":"end","reason":"deleted"}', 'event/invalid', '/type'],
    ['an omitted range', omittedRecordLine(0, 0, 1), 'record/malformed', '/type'],
    ['a row in storage form', '{"type":"text-chunks","seq0":0,"time0":0,"data":{}}', 'record/malformed', '/type'],
    ['a row without record', '{"type":"chunkrow/text-chunks"}', 'record/malformed', '/type'],
    ['a header', '{"type":"session","version":0}', 'record/malformed', '/type'],
    ['an event record without event', '{"type":"event"}', 'record/malformed', '/event'],
    [
      'an event record with a key too many',
      '{"type":"event","event":{"type":"x","data":1},"more":1}',
      'record/malformed',
      '/more',
    ],
    [
      'an event given twice',
      '{"type":"event","event":{"type":"x","data":1},"event":{"type":"x","data":1}}',
      'record/malformed',
      '/event',
    ],
    [
      'a type given twice',
      '{"type":"event","event":{"type":"x","data":1},"type":"event"}',
      'record/malformed',
      '/type',
    ],
    [
      'a type given twice, the last another',
      '{"type":"event","event":{"type":"x","data":1},"type":"x"}',
      'record/malformed',
      '/type',
    ],
    ['a type given twice in a bare event', '{"type":"x","data":1,"type":"event","event":1}', 'event/invalid', '/type'],
    [
      '__proto__ beside the event',
      '{"type":"event","event":{"type":"x","data":1},"__proto__":1}',
      'record/malformed',
      '/__proto__',
    ],
    ['an event of a scalar', '{"type":"event","event":5}', 'event/invalid', '/event'],
    ['a bad event', '{"type":"event","event":{"type":"x","seq":1.0,"time":0,"data":1}}', 'event/invalid', '/event/seq'],
    ['a record in a record', '{"type":"event","event":{"type":"event","event":{}}}', 'event/invalid', '/event/type'],
    ['a row with a key given twice', row.replace('"seq":10', '"seq":9,"seq":10'), 'record/malformed', '/event/seq'],
    [
      'a row with turn given twice',
      row.replace('"turn":1', '"turn":1,"turn":1'),
      'record/malformed',
      '/event/data/turn',
    ],
    ['a row given twice', row.replace('"event":{', '"event":{},"event":{'), 'record/malformed', '/event'],
    ['a row with seq 10.0', row.replace('"seq":10', '"seq":10.0'), 'record/malformed', '/event/seq'],
    ['a row with time 1e3', row.replace('"time":1000', '"time":1e3'), 'record/malformed', '/event/time'],
    [
      'a gap that rounds to an integer',
      row.replace('[5,', '[5.00000000000000000001,'),
      'record/malformed',
      '/event/data/dt',
    ],
    ['a gap that rounds to 0', row.replace('[5,', '[1e-400,'), 'record/malformed', '/event/data/dt'],
    [
      'a turn that rounds',
      row.replace('"turn":1', '"turn":0.99999999999999999999'),
      'record/malformed',
      '/event/data/turn',
    ],
    ['a gap of -0', row.replace('[5,', '[-0,'), 'record/malformed', '/event/data/dt/0'],
    ['a gap without end', row.replace('[5,', '[1e400,'), 'record/malformed', '/event/data/dt'],
    ['a gap that loses digits', row.replace('[5,', '[9007199254740993,'), 'record/malformed', '/event/data/dt/0'],
    ['a row of the wrong arity', row.replace('[5,-5]', '[5]'), 'record/malformed', '/event/data/dt'],
  ]
  for (const [name, line, code, path] of cases) {
    const problem = problemOf(() => parseInputLine(line))
    t.equal(problem.code, code, name)
    t.equal(problem.facts.path, path, name)
  }
  t.end()
})

t.test('a line over the limit is refused, a row like an event', (t) => {
  const row = rowRecordLine(textRow().event as ChunkRowEvent)
  t.equal(parseInputLine(row, { lineBytes: row.length }).kind, 'row')
  for (const line of [row, '{"type":"x","data":"é"}']) {
    const problem = problemOf(() => parseInputLine(line, { lineBytes: Buffer.byteLength(line) - 1 }))
    t.equal(problem.code, 'request/too-large')
    t.equal(problem.facts.limit, Buffer.byteLength(line) - 1)
  }
  t.end()
})
