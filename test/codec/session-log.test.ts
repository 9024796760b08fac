// The session log: its header, its storage records, and the two forms of a row converting into each other as text.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { parseEventText } from '../../codec/event.ts'
import { packEvents } from '../../codec/pack.ts'
import { Problem } from '../../codec/problem.ts'
import type { InputItem, SessionHistoryRecord } from '../../codec/record.ts'
import { eventRecordLine, omittedRecordLine, rowRecordLine } from '../../codec/record.ts'
import {
  decodeSessionLog,
  decodeStorageRecord,
  differingField,
  headerFromFields,
  isSessionId,
  parseHeaderLine,
  storageLine,
  storageLineBytes,
} from '../../codec/session-log.ts'
import { inTime, logEvents, rawEvent } from '../support/arbitraries.ts'

const NOW = 1785004180013

function problemOf(act: () => unknown): Problem {
  try {
    act()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

function lineOf(record: SessionHistoryRecord): string {
  return record.type === 'chunks' ? rowRecordLine(record.event) : eventRecordLine(JSON.stringify(record.event))
}

function lineOfItem(item: InputItem): string {
  return item.kind === 'row' ? rowRecordLine(item.row) : eventRecordLine(item.event.text)
}

t.test('session ids', (t) => {
  const good = [
    'a',
    '0',
    '...',
    '.a',
    'a.b_c~d:e@f-g',
    '~',
    '-',
    'a'.repeat(128),
    '9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d',
  ]
  const bad = ['', '.', '..', 'a'.repeat(129), 'a/b', 'a b', 'é', 'a\n', '\u0000', 'a%2e', 'a?', 'a#', '😀']
  for (const id of good) t.ok(isSessionId(id), JSON.stringify(id))
  for (const id of bad) t.notOk(isSessionId(id), JSON.stringify(id))
  t.end()
})

// ---- header -------------------------------------------------------------------------------------------------------

t.test('a header line is kept as it is, white space aside', (t) => {
  const text =
    ' {"type":"session", "version":0,"id":"s-1","createdAt":17,"cwd":"/w","parentSession":"p","origin":"subagent",' +
    '"delegationDepth":1,"seedLength":0,"agentPreset":{"b":1.0,"1":[ 1e400 ]},"__proto__":{"x":1},"later":null}'
  t.strictSame(parseHeaderLine(text), {
    text: text.replaceAll(' ', ''),
    id: 's-1',
    createdAt: 17,
    parentSession: 'p',
    origin: 'subagent',
  })
  t.strictSame(parseHeaderLine('{"createdAt":-1,"id":"s","version":0,"t\\u0079pe":"sessio\\u006e"}'), {
    text: '{"createdAt":-1,"id":"s","version":0,"t\\u0079pe":"sessio\\u006e"}',
    id: 's',
    createdAt: -1,
    parentSession: undefined,
    origin: undefined,
  })
  t.end()
})

t.test('a header line that is refused', (t) => {
  const good = '{"type":"session","version":0,"id":"s","createdAt":1}'
  const cases: [string, string, string][] = [
    ['nothing', '', ''],
    ['cut off', good.slice(0, -1), ''],
    ['a list', '[]', ''],
    ['null', 'null', ''],
    ['an event first', '{"type":"x","seq":0,"time":0,"data":1}', '/type'],
    ['no type', good.replace('"type":"session",', ''), '/type'],
    ['no version', good.replace('"version":0,', ''), '/version'],
    ['version 1', good.replace('"version":0', '"version":1'), '/version'],
    ['version 0.0', good.replace('"version":0', '"version":0.0'), '/version'],
    ['version as text', good.replace('"version":0', '"version":"0"'), '/version'],
    ['no id', good.replace('"id":"s",', ''), '/id'],
    ['an id that cannot be', good.replace('"s"', '"a/b"'), '/id'],
    ['id ..', good.replace('"s"', '".."'), '/id'],
    ['an id of another kind', good.replace('"s"', '5'), '/id'],
    ['no createdAt', good.replace(',"createdAt":1', ''), '/createdAt'],
    ['createdAt 1.0', good.replace('"createdAt":1', '"createdAt":1.0'), '/createdAt'],
    ['createdAt -0', good.replace('"createdAt":1', '"createdAt":-0'), '/createdAt'],
    ['createdAt unsafe', good.replace('"createdAt":1', '"createdAt":9007199254740993'), '/createdAt'],
    ['createdAt as text', good.replace('"createdAt":1', '"createdAt":"1"'), '/createdAt'],
    ['a key twice', good.replace('{', '{"id":"s",'), '/id'],
    ['an unknown key twice', good.replace('{', '{"__proto__":1,"__proto__":1,'), '/__proto__'],
    ['cwd of another kind', good.replace('{', '{"cwd":1,'), '/cwd'],
    ['origin null', good.replace('{', '{"origin":null,'), '/origin'],
    ['a parent that cannot be', good.replace('{', '{"parentSession":"",'), '/parentSession'],
    ['seedLength negative', good.replace('{', '{"seedLength":-1,'), '/seedLength'],
    ['delegationDepth a fraction', good.replace('{', '{"delegationDepth":0.5,'), '/delegationDepth'],
    ['too deep', good.replace('{', `{"agentPreset":${'['.repeat(512)}${']'.repeat(512)},`), ''],
  ]
  for (const [name, text, path] of cases) {
    const problem = problemOf(() => parseHeaderLine(text))
    t.equal(problem.code, 'log/invalid', name)
    t.strictSame({ line: problem.facts.line, path: problem.facts.path }, { line: 1, path }, name)
  }
  t.match(problemOf(() => parseHeaderLine(good.replace('"version":0', '"version":7'))).message, /version 7 /)
  const deepest = good.replace('{', `{"agentPreset":${'['.repeat(511)}${']'.repeat(511)},`)
  t.equal(parseHeaderLine(deepest).text, deepest)
  t.end()
})

t.test('a header is made from the fields given', (t) => {
  const minimal = `{"type":"session","version":0,"id":"s","createdAt":${NOW}}`
  for (const body of [undefined, '', ' \n', '{}', '{"version":0}', '{"id":"s","type":"session"}']) {
    t.equal(headerFromFields('s', body, NOW).header.text, minimal)
  }
  const { header, given } = headerFromFields(
    's',
    '{"zeta":1.0,"createdAt": 5,"__proto__":{"a" : 1},"cwd":"/w","parentSession":"p","origin":"subagent","2":[]}',
    NOW,
  )
  t.strictSame(header, {
    text: '{"type":"session","version":0,"id":"s","createdAt":5,"zeta":1.0,"__proto__":{"a":1},"cwd":"/w","parentSession":"p","origin":"subagent","2":[]}',
    id: 's',
    createdAt: 5,
    parentSession: 'p',
    origin: 'subagent',
  })
  t.strictSame(
    [...given],
    [
      ['zeta', '1.0'],
      ['createdAt', '5'],
      ['__proto__', '{"a":1}'],
      ['cwd', '"/w"'],
      ['parentSession', '"p"'],
      ['origin', '"subagent"'],
      ['2', '[]'],
    ],
  )
  t.strictSame(parseHeaderLine(header.text), header, 'what is made can be read')
  t.end()
})

t.test('fields that are refused', (t) => {
  const cases: [string, string, string][] = [
    ['not JSON', '{', ''],
    ['a list', '[]', ''],
    ['a text', '"s"', ''],
    ['another id', '{"id":"t"}', '/id'],
    ['another version', '{"version":1}', '/version'],
    ['another type', '{"type":"x"}', '/type'],
    ['a field twice', '{"cwd":"a","cwd":"a"}', '/cwd'],
    ['__proto__ twice', '{"__proto__":1,"__proto__":1}', '/__proto__'],
    ['a time without end', '{"createdAt":1e400}', '/createdAt'],
    ['a parent of another kind', '{"parentSession":{}}', '/parentSession'],
  ]
  for (const [name, body, path] of cases) {
    const problem = problemOf(() => headerFromFields('s', body, NOW))
    t.equal(problem.code, 'request/invalid', name)
    t.equal(problem.facts.path, path, name)
  }
  t.equal(problemOf(() => headerFromFields('..', undefined, NOW)).facts.path, '/id')
  t.end()
})

t.test('only the fields given are compared', (t) => {
  const stored = headerFromFields('s', '{"createdAt":5,"cwd":"/w","agentPreset":{"a":1.0}}', NOW).header.text
  const cases: [string, string, string | undefined][] = [
    ['none', '{}', undefined],
    ['an equal one', '{"cwd":"/w"}', undefined],
    ['all', '{"agentPreset":{ "a": 1.0 },"cwd":"/w","createdAt":5}', undefined],
    ['the settled ones', '{"type":"session","version":0,"id":"s"}', undefined],
    ['the settled ones, spelt otherwise', '{"type":"sessio\\u006e","version":0,"id":"\\u0073"}', undefined],
    ['another value', '{"cwd":"/v"}', '/cwd'],
    ['another number text', '{"agentPreset":{"a":1}}', '/agentPreset'],
    ['one that is not stored', '{"origin":"x"}', '/origin'],
    ['__proto__', '{"__proto__":1}', '/__proto__'],
    ['the second of two', '{"cwd":"/w","a/b":1}', '/a~1b'],
    ['another time', '{"createdAt":6}', '/createdAt'],
  ]
  for (const [name, body, expected] of cases) {
    t.equal(differingField(stored, headerFromFields('s', body, NOW + 1).given), expected, name)
  }
  t.end()
})

// ---- storage records ----------------------------------------------------------------------------------------------

t.test('the two forms convert into each other as text', (t) => {
  fc.assert(
    fc.property(logEvents, (events) => {
      for (const record of packEvents(events)) {
        const line = lineOf(record)
        const stored = storageLine(line)
        assert.equal(lineOfItem(decodeStorageRecord(stored)), line)
        assert.equal(Buffer.from(storageLineBytes(Buffer.from(line))).toString(), Buffer.from(stored).toString())
        if (record.type === 'event') assert.equal(stored, JSON.stringify(record.event))
        else {
          const { type, seq, time, data } = record.event
          const short = { type: type.slice('chunkrow/'.length), seq0: seq, time0: time, data }
          assert.deepEqual(JSON.parse(stored), short)
          assert.ok(stored.endsWith(`"data":${JSON.stringify(data)}}`))
        }
      }
    }),
    inTime(500),
  )
  t.end()
})

t.test('each row of the fixtures converts, at the edges of the integers too', (t) => {
  for (const name of ['text-row', 'reasoning-row', 'tool-call-row', 'tool-call-row-unnamed']) {
    const file = new URL(`../fixtures/records/${name}.ndjson`, import.meta.url)
    const line = readFileSync(file, 'utf8').split('\n', 1)[0]!
    const stored = storageLine(line)
    const { seq, time } = JSON.parse(line).event
    t.match(
      stored,
      new RegExp(`^\\{"type":"(text|reasoning|tool-call)-chunks","seq0":${seq},"time0":${time},"data":\\{`),
    )
    t.equal(lineOfItem(decodeStorageRecord(stored)), line)
    t.equal(Buffer.from(storageLineBytes(Buffer.from(line))).toString(), stored)
  }
  const edge = {
    type: 'chunkrow/tool-call-chunks' as const,
    seq: Number.MAX_SAFE_INTEGER,
    time: -Number.MAX_SAFE_INTEGER,
    data: { turn: 0, step: 0, index: 0, id: '', dt: [], args: ['é'] },
  }
  const line = rowRecordLine(edge)
  t.equal(lineOfItem(decodeStorageRecord(storageLine(line))), line)
  t.equal(Buffer.from(storageLineBytes(Buffer.from(line))).toString(), storageLine(line))
  t.end()
})

t.test('an event is stored as it is', (t) => {
  fc.assert(
    fc.property(rawEvent, ({ text }) => {
      const item = decodeStorageRecord(text)
      assert.deepEqual(item, { kind: 'event', event: parseEventText(text) })
      const line = lineOfItem(item)
      assert.equal(storageLine(line), (item as { event: { text: string } }).event.text)
      assert.equal(
        Buffer.from(storageLineBytes(Buffer.from(line))).toString(),
        Buffer.from(storageLine(line)).toString(),
      )
    }),
    inTime(300),
  )
  const bytes = Buffer.from(eventRecordLine('{"type":"x"}'))
  t.equal(storageLineBytes(bytes).buffer, bytes.buffer, 'a view, not a copy')
  t.end()
})

t.test('only lines of the service itself are converted', (t) => {
  for (const line of [
    '',
    '{}',
    omittedRecordLine(0, 0, 1),
    '{"type":"end","reason":"deleted"}',
    ' {"type":"event","event":{}}',
  ]) {
    t.throws(() => storageLine(line), { code: 'record/malformed' })
    t.throws(() => storageLineBytes(Buffer.from(line)), { code: 'record/malformed' })
  }
  t.end()
})

t.test('a stored row may have its keys in any order', (t) => {
  const { row } = decodeStorageRecord(
    '{"time0":9,"data":{"dt":[1,2],"args":["a","b","c"],"index":1,"step":2,"turn":3,"name":"n","id":"i"},"seq0":7,"type":"tool-call-chunks"}',
  ) as { row: Parameters<typeof rowRecordLine>[0] }
  t.equal(
    rowRecordLine(row),
    '{"type":"chunks","event":{"type":"chunkrow/tool-call-chunks","seq":7,"time":9,"data":{"turn":3,"step":2,"index":1,"id":"i","name":"n","dt":[1,2],"args":["a","b","c"]}}}',
  )
  t.end()
})

t.test('lines of a log that are refused, and why', (t) => {
  const row =
    '{"type":"text-chunks","seq0":1,"time0":2,"data":{"turn":0,"step":0,"index":0,"dt":[1],"texts":["a","b"]}}'
  t.equal(decodeStorageRecord(row).kind, 'row')
  const cases: [string, string, string, string][] = [
    ['nothing', '', 'event/invalid', ''],
    ['a row cut off', row.slice(0, -1), 'record/malformed', ''],
    ['an event cut off', '{"type":"x","seq":0,"time":0,"data":1', 'event/invalid', ''],
    ['an event without seq', '{"type":"x","data":1}', 'event/invalid', '/seq'],
    ['an event without time', '{"type":"x","seq":0,"data":1}', 'event/invalid', '/time'],
    ['an event record', '{"type":"event","event":{"type":"x","seq":0,"time":0,"data":1}}', 'record/malformed', '/type'],
    ['a chunks record', '{"type":"chunks","event":{}}', 'record/malformed', '/type'],
    ['an omitted range', omittedRecordLine(0, 0, 1), 'record/malformed', '/type'],
    ['a second header', '{"type":"session","version":0}', 'record/malformed', '/type'],
    ['a row under its long name', row.replace('text-chunks', 'chunkrow/text-chunks'), 'event/invalid', '/type'],
    ['no seq0', row.replace('"seq0":1,', ''), 'record/malformed', '/seq0'],
    ['seq for seq0', row.replace('seq0', 'seq'), 'record/malformed', '/seq'],
    ['seq0 1.0', row.replace('"seq0":1', '"seq0":1.0'), 'record/malformed', '/seq0'],
    ['seq0 negative', row.replace('"seq0":1', '"seq0":-1'), 'record/malformed', '/seq0'],
    ['time0 as text', row.replace('"time0":2', '"time0":"2"'), 'record/malformed', '/time0'],
    ['a key too many', row.replace('{', '{"__proto__":1,'), 'record/malformed', '/__proto__'],
    ['a key twice', row.replace('"seq0":1', '"seq0":0,"seq0":1'), 'record/malformed', '/seq0'],
    ['a type twice', row.replace('{', '{"type":"text-chunks",'), 'record/malformed', '/type'],
    ['data twice', row.replace('"data"', '"data":{},"data"'), 'record/malformed', '/data'],
    ['turn twice', row.replace('"turn":0', '"turn":1,"turn":0'), 'record/malformed', '/data/turn'],
    ['no data', '{"type":"text-chunks","seq0":1,"time0":2}', 'record/malformed', '/data'],
    ['data null', '{"type":"text-chunks","seq0":1,"time0":2,"data":null}', 'record/malformed', '/data'],
    ['the wrong arity', row.replace('[1]', '[1,1]'), 'record/malformed', '/data/dt'],
    ['a gap that is none', row.replace('[1]', '[null]'), 'record/malformed', '/data/dt/0'],
    ['a fragment that is none', row.replace('"b"', '2'), 'record/malformed', '/data/texts/1'],
    ['another kind of row', row.replace('text-chunks', 'tool-call-chunks'), 'record/malformed', '/data/texts'],
    ['seq past the end', row.replace('"seq0":1', `"seq0":${Number.MAX_SAFE_INTEGER}`), 'record/malformed', '/seq0'],
  ]
  for (const [name, line, code, path] of cases) {
    const problem = problemOf(() => decodeStorageRecord(line))
    t.equal(problem.code, code, name)
    t.equal(problem.facts.path, path, name)
  }
  t.throws(() => decodeStorageRecord(row, { lineBytes: row.length - 1 }), { code: 'request/too-large' })
  t.end()
})

// ---- whole logs ---------------------------------------------------------------------------------------------------

const HEADER = '{"type":"session","version":0,"id":"s","createdAt":1}'

t.test('packed, unpacked and mixed logs read alike', (t) => {
  fc.assert(
    fc.property(logEvents, fc.array(fc.boolean()), fc.constantFrom('\n', '\r\n', '\n\n'), (events, unpack, end) => {
      const lines = packEvents(events).flatMap((record, at) => {
        const { seq } = record.event
        if (record.type !== 'chunks' || !unpack[at]) return [storageLine(lineOf(record))]
        const next = seq + record.event.data.dt.length + 1
        return events.slice(seq, next).map((event) => JSON.stringify(event))
      })
      const { header, items } = decodeSessionLog(`\ufeff${[HEADER, ...lines].join(end)}${unpack[0] ? '' : end}`)
      assert.equal(header.text, HEADER)
      assert.deepEqual(
        items.map((item) => storageLine(lineOfItem(item))),
        lines,
      )
    }),
    inTime(300),
  )
  t.end()
})

t.test('a bad log names the bad line and the last good one', (t) => {
  const event = (seq: number) => `{"type":"x","seq":${seq},"time":0,"data":null}`
  const row =
    '{"type":"text-chunks","seq0":1,"time0":2,"data":{"turn":0,"step":0,"index":0,"dt":[1],"texts":["a","b"]}}'
  const cases: [string, string, string, number, number][] = [
    ['empty', '', 'log/invalid', 1, 0],
    ['a bad header', '{}', 'log/invalid', 1, 0],
    ['a hole', [HEADER, event(0), event(2)].join('\n'), 'log/invalid', 3, 2],
    ['a seq twice', [HEADER, event(0), event(0)].join('\n'), 'log/invalid', 3, 2],
    ['a late start', [HEADER, event(1)].join('\n'), 'log/invalid', 2, 1],
    ['a hole after a row', [HEADER, event(0), row, '', event(4)].join('\n'), 'log/invalid', 5, 3],
    ['a cut line', [HEADER, event(0), event(1).slice(0, -2)].join('\n'), 'event/invalid', 3, 2],
    ['a cut row', [HEADER, event(0), row.slice(0, 40)].join('\n'), 'record/malformed', 3, 2],
  ]
  for (const [name, text, code, line, lastGoodLine] of cases) {
    const problem = problemOf(() => decodeSessionLog(text))
    t.equal(problem.code, code, name)
    t.strictSame({ line: problem.facts.line, last: problem.facts.lastGoodLine }, { line, last: lastGoodLine }, name)
  }
  t.equal(decodeSessionLog([HEADER, event(0), row, event(3)].join('\n')).items.length, 3)
  t.end()
})
