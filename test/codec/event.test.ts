import fc from 'fast-check'
import t, { type Test } from 'tap'
import {
  checkSources,
  type Delta,
  deltaEvent,
  deltaOf,
  deltaText,
  type EventText,
  eventText,
  isReservedType,
  LIMITS,
  numberEvent,
  parseEventText,
  recogniseDelta,
  type SessionEvent,
  SURFACE_TYPES,
  validateEvent,
} from '../../codec/event.ts'
import { Problem, type ProblemCode } from '../../codec/problem.ts'
import { delta, inTime, logEvents, ODD_NUMBERS, rawEvent, seqNumber, timeNumber } from '../support/arbitraries.ts'

function problemOf(run: () => unknown): Problem {
  try {
    run()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

function refuses(t: Test, run: () => unknown, path: string, name: string, code: ProblemCode = 'event/invalid'): void {
  const problem = problemOf(run)
  t.strictSame({ code: problem.code, path: problem.facts.path }, { code, path }, `${name}: ${problem.message}`)
  t.ok(problem.message.length < 200, 'the sentence does not repeat a long input')
}

/** An event with these members in place of, or beside, the usual ones; a member set to '' is left out. */
function textOf(members: Record<string, string>): string {
  const all: Record<string, string> = { type: '"turn/start"', seq: '5', time: '7', data: 'null', ...members }
  return `{${Object.entries(all)
    .filter(([, value]) => value !== '')
    .map(([key, value]) => `"${key}":${value}`)
    .join(',')}}`
}

function nested(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels)
}

const A_DELTA: Delta = {
  kind: 'text-delta',
  turn: 1,
  step: 2,
  index: 0,
  id: undefined,
  name: undefined,
  fragment: 'hello',
}
const A_TEXT =
  '{"type":"assistant/chunk","seq":5,"time":7,"data":{"turn":1,"step":2,"chunk":{"type":"text-delta","index":0,"text":"hello"}}}'
const A_CALL: Delta = { ...A_DELTA, kind: 'tool-call-delta', id: 'call_1', name: 'bash', fragment: '{"a' }
const A_CALL_TEXT =
  '{"type":"assistant/chunk","seq":5,"time":7,"data":{"turn":1,"step":2,"chunk":{"type":"tool-call-delta","index":0,"id":"call_1","name":"bash","argumentsDelta":"{\\"a"}}}'

// ---- ordinary events ----------------------------------------------------------------------------------------------

t.test('ordinary events return byte for byte', (t) => {
  const list = [
    '{"type":"x","seq":0,"time":0,"data":null}',
    '{"data":{"b":1,"2":2,"1":3},"time":-5,"seq":1,"type":"x"}',
    '{"type":"x","seq":2,"time":3,"data":{"__proto__":{"a":1},"constructor":{"prototype":null}}}',
    '{"type":"x","seq":2,"time":3,"data":{"a":1,"a":2,"\\u0061":3}}',
    '{"type":"x","seq":2,"time":3,"data":"\\u0000\\u001f\u007f\\ud83d\\/\u2028\u2029\u0085\ufeff"}',
    '{"type":"x","seq":2,"time":3,"data":{"a\\u0000b":1,"a\\u0000c":2}}',
    '{"\\u0074ype":"x","s\\u0065q":2,"time":3,"data":[]}',
    '{"type":"\\u0078","seq":2,"time":3,"data":0}',
    '{"type":"__proto__","seq":2,"time":3,"data":0}',
    '{"type":"x","seq":2,"time":3,"data":0,"__proto__":{"type":1},"unknown":[1.0,1e400]}',
    '{"type":"x","seq":2,"time":3,"data":0,"ignorable":true}',
    '{"type":"session/end-seed","seq":2,"time":3,"data":{}}',
    '{"type":"assistant/message","seq":9,"time":3,"data":{},"sourceEventSeqs":[],"surfaceOp":"append"}',
    '{"type":"user/message","seq":9,"time":3,"data":{},"surfaceOp":{"end":4,"op":"replace","start":7}}',
    '{"type":"tool/result","seq":9,"time":3,"data":{},"sourceEventSeqs":[8,0]}',
    ...ODD_NUMBERS.map((number) => `{"type":"x","seq":2,"time":3,"data":{"n":[${number}]}}`),
    ...ODD_NUMBERS.map((number) => `{"type":"x","seq":2,"time":3,"data":${number},"extra":${number}}`),
  ]
  for (const text of list) {
    t.equal(parseEventText(text).text, text)
    t.equal(parseEventText(` ${text.replace('{', '{\r\n\t ')} \n`).text, text, 'white space between tokens goes')
  }
  t.end()
})

t.test('any event comes back as it was sent', (t) => {
  fc.assert(
    fc.property(rawEvent, ({ text, seq, time }) => {
      const event = parseEventText(text)
      return event.text === text && event.seq === seq && event.time === time && event.delta === undefined
    }),
    inTime(),
  )
  t.pass()
  t.end()
})

// ---- what is refused ----------------------------------------------------------------------------------------------

const BAD_ENVELOPES: [text: string, path: string][] = [
  ['', ''],
  ['{', ''],
  ['nope', ''],
  ['{"type":"x","seq":0,"time":0,"data":1} {}', ''],
  ['\ufeff{"type":"x","data":1}', ''],
  ['null', ''],
  ['[]', ''],
  ['"x"', ''],
  ['7', ''],
  [textOf({ type: '' }), '/type'],
  [textOf({ type: '""' }), '/type'],
  [textOf({ type: '1' }), '/type'],
  [textOf({ type: 'null' }), '/type'],
  [textOf({ type: '["x"]' }), '/type'],
  [textOf({ data: '' }), '/data'],
  [textOf({ time: '' }), '/time'],
  [textOf({ seq: 'null' }), '/seq'],
  [textOf({ seq: '"5"' }), '/seq'],
  [textOf({ seq: '[5]' }), '/seq'],
  [textOf({ time: 'true' }), '/time'],
  [textOf({ time: '{}' }), '/time'],
  [textOf({ ignorable: 'false' }), '/ignorable'],
  [textOf({ ignorable: 'null' }), '/ignorable'],
  [textOf({ ignorable: '1' }), '/ignorable'],
  [textOf({ ignorable: '"true"' }), '/ignorable'],
  [textOf({ surfaceOp: '"append"' }), '/surfaceOp'],
  [textOf({ sourceEventSeqs: '[1]' }), '/sourceEventSeqs'],
  [textOf({ type: '"assistant/chunk"', surfaceOp: '"append"' }), '/surfaceOp'],
  [textOf({ type: '"user/message"', surfaceOp: 'null' }), '/surfaceOp'],
  [textOf({ type: '"user/message"', surfaceOp: '"replace"' }), '/surfaceOp'],
  [textOf({ type: '"user/message"', surfaceOp: '["append"]' }), '/surfaceOp'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"append"}' }), '/surfaceOp'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace"}' }), '/surfaceOp/start'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":1}' }), '/surfaceOp/end'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":-1,"end":2}' }), '/surfaceOp/start'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":-0,"end":2}' }), '/surfaceOp/start'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":1.5,"end":2}' }), '/surfaceOp/start'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":1,"end":"2"}' }), '/surfaceOp/end'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":5,"end":2}' }), '/surfaceOp/start'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":1,"end":5}' }), '/surfaceOp/end'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":1,"end":2,"x":3}' }), '/surfaceOp'],
  [textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":1,"end":2,"__proto__":3}' }), '/surfaceOp'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '[]' }), '/sourceEventSeqs'],
  [textOf({ type: '"tool/result"', sourceEventSeqs: '[]' }), '/sourceEventSeqs'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '1' }), '/sourceEventSeqs'],
  [textOf({ type: '"user/message"', sourceEventSeqs: 'null' }), '/sourceEventSeqs'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '{"0":1}' }), '/sourceEventSeqs'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '["1"]' }), '/sourceEventSeqs/0'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '[1,-1]' }), '/sourceEventSeqs/1'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '[-0]' }), '/sourceEventSeqs/0'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '[1.5]' }), '/sourceEventSeqs/0'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '[1,2,1]' }), '/sourceEventSeqs/2'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '[4,5]' }), '/sourceEventSeqs/1'],
  [textOf({ type: '"user/message"', sourceEventSeqs: '[6]' }), '/sourceEventSeqs/0'],
]

t.test('a bad envelope is refused with the path of what is wrong', (t) => {
  for (const [text, path] of BAD_ENVELOPES) refuses(t, () => parseEventText(text), path, text)
  t.end()
})

t.test('an envelope key given twice is refused, however it is spelled', (t) => {
  for (const [text, path] of [
    ['{"type":"x","type":"x","seq":1,"time":2,"data":3}', '/type'],
    ['{"type":"x","seq":1,"time":2,"data":3,"\\u0073eq":1}', '/seq'],
    ['{"type":"x","seq":1,"time":2,"data":3,"data":3}', '/data'],
    ['{"type":"x","seq":1,"time":2,"data":3,"unknown":1,"unknown":1}', '/unknown'],
    ['{"type":"x","seq":1,"time":2,"data":3,"__proto__":1,"__proto__":1}', '/__proto__'],
    ['{"type":"x","seq":1,"time":2,"data":3,"a/~b":1,"a\\/~b":1}', '/a~1~0b'],
    [A_TEXT.replace('"seq":5', '"seq":5,"seq":5'), '/seq'],
  ] as const) {
    refuses(t, () => parseEventText(text), path, text)
  }
  const twice = textOf({ type: '"user/message"', surfaceOp: '{"op":"replace","start":1,"end":2,"e\\u006ed":3}' })
  refuses(t, () => parseEventText(twice), '/surfaceOp', 'a key of surfaceOp')
  t.end()
})

t.test('the words of the formats are no event types', (t) => {
  const words = ['session', 'event', 'chunks', 'omitted', 'end', 'text-chunks', 'reasoning-chunks', 'tool-call-chunks']
  for (const type of [...words, 'chunkrow/', 'chunkrow/text-chunks', 'chunkrow/omitted', 'chunkrow/x']) {
    t.ok(isReservedType(type))
    refuses(t, () => parseEventText(textOf({ type: JSON.stringify(type) })), '/type', type)
  }
  const escaped = textOf({ type: '"\\u0065vent"' })
  refuses(t, () => parseEventText(escaped), '/type', 'spelled with an escape')
  for (const type of [
    'sessions',
    'Session',
    'session/x',
    'event/x',
    'ends',
    'chunkrow',
    'chunkrows/x',
    'x/chunkrow/',
  ]) {
    t.notOk(isReservedType(type))
    t.equal(parseEventText(textOf({ type: JSON.stringify(type) })).type, type)
  }
  t.end()
})

// ---- bounds -------------------------------------------------------------------------------------------------------

t.test('seq is a plain decimal integer in its bounds', (t) => {
  for (const seq of ['0', '1', '10', '9007199254740991']) {
    t.equal(parseEventText(textOf({ seq, time: '0' })).seq, Number(seq))
    t.equal(parseEventText(A_TEXT.replace('"seq":5', `"seq":${seq}`)).seq, Number(seq))
  }
  for (const seq of [
    '-1',
    '-0',
    '1.0',
    '1e3',
    '1E0',
    '0.5',
    '9007199254740992',
    '9007199254740993',
    '1e400',
    '-9007199254740991',
    '18446744073709551616',
  ]) {
    refuses(t, () => parseEventText(textOf({ seq })), '/seq', seq)
    refuses(t, () => parseEventText(A_TEXT.replace('"seq":5', `"seq":${seq}`)), '/seq', `${seq} of a delta`)
  }
  t.end()
})

t.test('time is a plain decimal integer in its bounds', (t) => {
  for (const time of ['0', '-1', '1785014504343', '9007199254740991', '-9007199254740991']) {
    t.equal(parseEventText(textOf({ time })).time, Number(time))
    t.equal(parseEventText(A_TEXT.replace('"time":7', `"time":${time}`)).time, Number(time))
  }
  for (const time of ['-0', '7.0', '1e3', '-9007199254740992', '9007199254740992', '1e400']) {
    refuses(t, () => parseEventText(textOf({ time })), '/time', time)
    refuses(t, () => parseEventText(A_TEXT.replace('"time":7', `"time":${time}`)), '/time', `${time} of a delta`)
    refuses(t, () => parseEventText(textOf({ seq: '', time })), '/time', `${time} without seq`)
  }
  t.end()
})

t.test('a type has 1 to 200 characters', (t) => {
  for (const type of ['x', 'x'.repeat(200), '漢'.repeat(200), '😀'.repeat(200), '\ud83d'.repeat(200)]) {
    t.equal(parseEventText(textOf({ type: JSON.stringify(type) })).type, type)
  }
  for (const type of ['x'.repeat(201), '漢'.repeat(201), '😀'.repeat(201), `${'😀'.repeat(199)}xx`, 'x'.repeat(1e6)]) {
    refuses(t, () => parseEventText(textOf({ type: JSON.stringify(type) })), '/type', `${type.length} units`)
  }
  t.end()
})

t.test('an event nests 512 levels, its envelope being the first', (t) => {
  t.equal(parseEventText(textOf({ data: nested(511) })).seq, 5)
  refuses(t, () => parseEventText(textOf({ data: nested(512) })), '/data', '513')
  refuses(t, () => parseEventText(textOf({ odd: `{"a":${nested(511)}}` })), '/odd', '513 in an unknown field')
  refuses(t, () => parseEventText(textOf({ data: nested(1_000_000) })), '/data', 'a million')
  refuses(t, () => parseEventText('['.repeat(1_000_000)), '', 'a million, not closed')
  t.equal(problemOf(() => parseEventText(textOf({ data: nested(512) }))).facts.limit, 512)
  t.equal(parseEventText(textOf({ data: nested(512) }), { depth: 513 }).seq, 5)
  refuses(t, () => parseEventText(A_TEXT, { depth: 2 }), '/data', 'a delta at another limit')
  t.ok(parseEventText(A_TEXT, { depth: 3 }).delta)
  t.end()
})

t.test('an event takes at most lineBytes bytes', (t) => {
  const room = 1000 - textOf({ data: '""' }).length
  const sized = (fill: string, bytes: number) =>
    textOf({ data: `"${fill.repeat(Math.floor(bytes / Buffer.byteLength(fill)))}"` })
  for (const fill of ['a', 'é', '漢', '😀']) {
    const most = Math.floor(room / Buffer.byteLength(fill)) * Buffer.byteLength(fill)
    const pad = room - most
    const text = sized(fill, room)
    t.equal(parseEventText(`${text}${' '.repeat(pad)}`, { lineBytes: 1000 }).text, text)
    const over = problemOf(() => parseEventText(`${text}${' '.repeat(pad + 1)}`, { lineBytes: 1000 }))
    t.strictSame({ code: over.code, limit: over.facts.limit }, { code: 'request/too-large', limit: 1000 })
  }
  t.equal(parseEventText(A_TEXT, { lineBytes: A_TEXT.length }).text, A_TEXT)
  t.equal(problemOf(() => parseEventText(A_TEXT, { lineBytes: A_TEXT.length - 1 })).code, 'request/too-large')
  const full = textOf({ data: `"${'x'.repeat(LIMITS.lineBytes - textOf({ data: '""' }).length)}"` })
  t.equal(parseEventText(full).text.length, 8 * 1024 * 1024)
  t.equal(problemOf(() => parseEventText(`${full} `)).code, 'request/too-large')
  t.end()
})

// ---- the surface --------------------------------------------------------------------------------------------------

t.test('the surface types carry sources and an operation', (t) => {
  for (const type of SURFACE_TYPES) {
    const event = parseEventText(
      textOf({ type: `"${type}"`, sourceEventSeqs: '[4,0]', surfaceOp: '{"op":"replace","start":3,"end":1}' }),
    )
    t.strictSame(event.sourceEventSeqs, [4, 0])
    // The order of the surface is not that of the seqs once something was replaced.
    t.strictSame(event.surfaceOp, { op: 'replace', start: 3, end: 1 })
    t.equal(parseEventText(textOf({ type: `"${type}"`, surfaceOp: '"append"' })).surfaceOp, 'append')
    t.equal(parseEventText(textOf({ type: `"${type}"` })).surfaceOp, undefined)
  }
  t.strictSame(parseEventText(textOf({ type: '"assistant/message"', sourceEventSeqs: '[]' })).sourceEventSeqs, [])
  t.end()
})

t.test('an event that is numbered later is checked against its seq then', (t) => {
  const event = parseEventText(
    textOf({
      type: '"user/message"',
      seq: '',
      sourceEventSeqs: '[8,3]',
      surfaceOp: '{"op":"replace","start":2,"end":9}',
    }),
  )
  checkSources(event, 10)
  refuses(t, () => checkSources(event, 9), '/surfaceOp/end', '9')
  refuses(t, () => checkSources(event, 8), '/sourceEventSeqs/0', '8')
  checkSources({ surfaceOp: 'append' }, 0)
  t.end()
})

// ---- numbering ----------------------------------------------------------------------------------------------------

t.test('what the server gives is written directly after the opening brace', (t) => {
  const numbered = (text: string) => numberEvent(parseEventText(text), 12, 34)
  t.equal(numbered('{"type":"x","data":1.0}'), '{"seq":12,"time":34,"type":"x","data":1.0}')
  t.equal(numbered('{ "type" : "x", "time":-5,"data":1.0}'), '{"seq":12,"type":"x","time":-5,"data":1.0}')
  t.equal(numbered('{"data":1,"seq":0,"time":0,"type":"x"}'), '{"data":1,"seq":0,"time":0,"type":"x"}')
  const { seq: _, time, ...rest } = JSON.parse(A_TEXT)
  t.equal(numbered(JSON.stringify(rest)), A_TEXT.replace('"seq":5,"time":7', '"seq":12,"time":34'))
  t.equal(numbered(JSON.stringify({ ...rest, time })), A_TEXT.replace('"seq":5', '"seq":12'))
  t.equal(numbered(A_TEXT), A_TEXT)
  t.equal(numbered(` ${A_CALL_TEXT}`), A_CALL_TEXT)
  t.end()
})

t.test('seq may be left out, alone only with time; it may be asked for', (t) => {
  const bare = parseEventText(textOf({ seq: '', time: '' }))
  t.strictSame([bare.seq, bare.time], [undefined, undefined])
  const stamped = parseEventText(textOf({ seq: '' }))
  t.strictSame([stamped.seq, stamped.time], [undefined, 7])
  refuses(t, () => parseEventText(textOf({ time: '' })), '/time', 'seq without time')
  refuses(t, () => parseEventText(A_TEXT.replace(',"time":7', '')), '/time', 'seq of a delta without time')
  refuses(t, () => parseEventText(textOf({ seq: '' }), { numbered: true }), '/seq', 'numbered')
  refuses(t, () => parseEventText(A_TEXT.replace('"seq":5,', ''), { numbered: true }), '/seq', 'a numbered delta')
  t.equal(parseEventText(A_TEXT, { numbered: true }).seq, 5)
  t.end()
})

// ---- deltas -------------------------------------------------------------------------------------------------------

t.test('a delta has one text', (t) => {
  t.equal(deltaText(A_DELTA, 5, 7), A_TEXT)
  t.equal(deltaText(A_CALL, 5, 7), A_CALL_TEXT)
  t.equal(deltaText({ ...A_CALL, name: undefined }, 5, 7), A_CALL_TEXT.replace('"name":"bash",', ''))
  fc.assert(
    fc.property(delta, seqNumber, timeNumber, (each, seq, time) => {
      const text = deltaText(each, seq, time)
      const event = deltaEvent(each, seq, time)
      if (text !== JSON.stringify(event)) return false
      return same(deltaOf(event), each) && same(deltaOf(JSON.parse(text)), each) && eventText(event) === text
    }),
    inTime(),
  )
  t.pass()
  t.end()
})

t.test('the recogniser takes the canonical text of every delta', (t) => {
  fc.assert(
    fc.property(delta, seqNumber, timeNumber, (each, seq, time) => {
      const text = deltaText(each, seq, time)
      const bare = text.replace(`"seq":${seq},"time":${time},`, '')
      const stamped = text.replace(`"seq":${seq},`, '')
      return [text, bare, stamped].every((one) => same(recogniseDelta(one)?.delta, each))
    }),
    inTime(),
  )
  t.pass()
  t.end()
})

t.test('whatever the recogniser takes, the parser understands in the same way', (t) => {
  // A space in front keeps the recogniser away.
  const parsed = (text: string): EventText => parseEventText(` ${text}`)
  const agrees = (text: string): boolean => {
    const quick = recogniseDelta(text)
    if (quick === undefined) return true
    const { text: slow, ...event } = parsed(text)
    const { text: given, ...recognised } = quick
    return given === text && same(recognised, event) && slow === text
  }
  fc.assert(
    fc.property(delta, seqNumber, timeNumber, (each, seq, time) => agrees(deltaText(each, seq, time))),
    inTime(500),
  )
  // One edit anywhere: most make it something else, and the recogniser must notice.
  const edit = fc.tuple(
    fc.nat(),
    fc.nat({ max: 2 }),
    fc.constantFrom(
      '"',
      '\\',
      '0',
      '1',
      '-',
      '.',
      'e',
      ' ',
      '}',
      '{',
      ',',
      'a',
      '\u0001',
      '\n',
      '\ud83d',
      '\\u0061',
      '\\/',
      '"x":1,',
      '9999999999999999',
    ),
  )
  fc.assert(
    fc.property(delta, fc.nat({ max: 20 }), fc.nat({ max: 20 }), edit, (each, seq, time, [place, cut, insert]) => {
      const text = deltaText(each, seq, time)
      const at = place % (text.length + 1)
      return agrees(text.slice(0, at) + insert + text.slice(at + cut))
    }),
    inTime(20_000),
  )
  t.pass()
  t.end()
})

t.test('a delta in another order or spelling is the same delta', (t) => {
  for (const text of [
    '{"data":{"chunk":{"text":"hello","index":0,"type":"text-delta"},"step":2,"turn":1},"time":7,"seq":5,"type":"assistant/chunk"}',
    A_TEXT.replace('hello', '\\u0068\\u0065llo'),
    A_TEXT.replace('"turn"', '"\\u0074urn"'),
    A_TEXT.replace('"turn":1', '"turn":1.0').replace('"step":2', '"step":2e0'),
    A_TEXT.replaceAll(':', ' : '),
  ]) {
    const event = parseEventText(text)
    t.strictSame(event.delta, A_DELTA, text)
    t.equal(event.text, A_TEXT, 'a delta with its place has the canonical text')
  }
  t.end()
})

t.test('fragments that are hard to carry come back equal', (t) => {
  for (const fragment of ['', '\u0000', '\ud83d', '\ude00', '\u2028\u2029', '\ufeff', '"\\/', '__proto__', '\u007f']) {
    const text = deltaText({ ...A_DELTA, fragment }, 5, 7)
    t.equal(parseEventText(text).delta?.fragment, fragment)
    t.equal(parseEventText(text).text, text)
  }
  t.end()
})

t.test('a chunk of any other shape is an ordinary event with its own text', (t) => {
  const others = [
    // keys too many, too few, or of another kind
    A_TEXT.replace('"seq":5', '"seq":5,"ignorable":true'),
    A_TEXT.replace('"seq":5', '"seq":5,"unknown":1'),
    A_TEXT.replace('"turn":1', '"turn":1,"more":1'),
    A_TEXT.replace('"turn":1', '"turn":1,"__proto__":1'),
    A_TEXT.replace('"index":0', '"index":0,"more":1'),
    A_TEXT.replace('"index":0', '"index":0,"id":"a"'),
    A_TEXT.replace('"index":0,', ''),
    A_TEXT.replace('"turn":1,', ''),
    A_TEXT.replace('"text":"hello"', '"argumentsDelta":"hello"'),
    A_CALL_TEXT.replace('"id":"call_1",', ''),
    A_CALL_TEXT.replace('"argumentsDelta"', '"text"'),
    A_CALL_TEXT.replace('"name":"bash"', '"more":"bash"'),
    A_CALL_TEXT.replace('"name":"bash"', '"name":"bash","more":1'),
    // values of another kind
    A_TEXT.replace('"hello"', '1'),
    A_TEXT.replace('"hello"', 'null'),
    A_TEXT.replace('"text-delta"', '"image-delta"'),
    A_TEXT.replace('"text-delta"', '"Text-delta"'),
    A_CALL_TEXT.replace('"bash"', 'null'),
    A_CALL_TEXT.replace('"call_1"', '1'),
    A_CALL_TEXT.replace('"call_1"', 'null'),
    '{"type":"assistant/chunk","seq":5,"time":7,"data":null}',
    '{"type":"assistant/chunk","seq":5,"time":7,"data":[1,2,3]}',
    '{"type":"assistant/chunk","seq":5,"time":7,"data":{"turn":1,"step":2,"chunk":["text-delta",0,"a"]}}',
    '{"type":"assistant/chunk","seq":5,"time":7,"data":{"turn":1,"step":2,"chunk":null}}',
    A_TEXT.replace('assistant/chunk', 'assistant/chunks'),
    // a key given twice, at each level, however spelled
    A_TEXT.replace('"turn":1', '"turn":1,"turn":1'),
    A_TEXT.replace('"turn":1', '"turn":1,"\\u0074urn":1'),
    A_TEXT.replace('"index":0', '"index":0,"index":0'),
    A_TEXT.replace('"text":"hello"', '"text":"hello","text":"hello"'),
    A_TEXT.replace('"text":"hello"', '"text":{"a":1},"text":"hello"'),
    A_CALL_TEXT.replace('"name":"bash"', '"name":"bash","name":"bash"'),
    // numbers that would not come back
    ...['turn', 'step', 'index'].flatMap((key) =>
      [
        '-0',
        '-0.0',
        '0.5',
        '"0"',
        'null',
        '9007199254740992',
        '9007199254740993',
        '1e400',
        '1e-400',
        '1.00000000000000001',
        '[0]',
      ].map((number) => A_TEXT.replace(new RegExp(`"${key}":\\d`), `"${key}":${number}`)),
    ),
  ]
  for (const text of others) {
    const event = parseEventText(text)
    t.equal(event.delta, undefined, text)
    t.equal(event.text, text)
    // A parsed event has lost its spelling; the shapes above the numbers are seen there too, save keys given twice.
    if (JSON.stringify(JSON.parse(text)) === text) t.equal(deltaOf(JSON.parse(text)), undefined, text)
  }
  t.end()
})

t.test('deltas are told from parsed events in the same way', (t) => {
  fc.assert(
    fc.property(logEvents, (events) =>
      events.every((event) => {
        const text = JSON.stringify(event)
        const parsed = parseEventText(text, { numbered: true })
        validateEvent(event)
        return same(parsed.delta, deltaOf(event)) && parsed.text === text && eventText(event) === text
      }),
    ),
    inTime(),
  )
  const event = deltaEvent(A_DELTA, 5, 7)
  for (const odd of [
    { ...event, seq: -0 },
    { ...event, seq: -1 },
    { ...event, time: -0 },
    { ...event, time: 0.5 },
    { ...event, data: { turn: -0, step: 0, chunk: { type: 'text-delta', index: 0, text: '' } } },
    { ...event, data: { turn: 0, step: 0, chunk: { type: 'text-delta', index: -0, text: '' } } },
    { type: 'assistant/chunk', seq: 0, time: 0, extra: 1 },
  ]) {
    t.equal(deltaOf(odd as SessionEvent), undefined)
  }
  t.end()
})

// ---- parsed events ------------------------------------------------------------------------------------------------

t.test('a parsed event is held to the same rules', (t) => {
  for (const [text, path] of BAD_ENVELOPES) {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      continue
    }
    refuses(t, () => validateEvent(value), path, text)
  }
  for (const seq of [-1, -0, 0.5, 2 ** 53, Number.NaN, '5', undefined]) {
    refuses(t, () => validateEvent({ type: 'x', seq, time: 0, data: 1 }), '/seq', `${seq}`)
  }
  for (const time of [-0, 0.5, 2 ** 53, Number.NaN, undefined]) {
    refuses(t, () => validateEvent({ type: 'x', seq: 0, time, data: 1 }), '/time', `${time}`)
  }
  refuses(t, () => validateEvent({ type: 'x', seq: 0, time: 0, data: undefined }), '/data', 'undefined')
  refuses(t, () => validateEvent(Object.create({ data: 1, ...JSON.parse(textOf({})) })), '/data', 'inherited data')
  t.end()
})

t.test('a parsed event nests no deeper either', (t) => {
  const event = (levels: number) => JSON.parse(textOf({ data: nested(levels) }))
  t.ok(validateEvent(event(511)))
  refuses(t, () => validateEvent(event(512)), '/data', '513')
  refuses(t, () => validateEvent(event(100_000)), '/data', 'very deep')
  t.ok(validateEvent(event(512), { depth: 513 }))
  const circle: { self?: unknown } = {}
  circle.self = circle
  refuses(t, () => validateEvent({ type: 'x', seq: 0, time: 0, data: circle }), '/data', 'a circle')
  t.end()
})

t.test('what JSON cannot carry is refused before it is sent, not changed', (t) => {
  class Box {
    a = 1
  }
  for (const bad of [Number.NaN, Infinity, undefined, () => 1, Symbol('a'), 1n, new Date(0), new Box(), new Map()]) {
    const event = { type: 'x', seq: 0, time: 0, data: { 'a/b': [0, bad] } }
    refuses(t, () => eventText(event as unknown as SessionEvent), '/data/a~1b/1', String(bad))
  }
  const event = { type: 'x', seq: 0, time: 0, data: { a: -0, b: [1e21, 5e-324], c: JSON.parse('{"__proto__":1}') } }
  t.equal(eventText(event), '{"type":"x","seq":0,"time":0,"data":{"a":-0,"b":[1e+21,5e-324],"c":{"__proto__":1}}}')
  const optional = { type: 'x', seq: 0, time: 0, data: 1, ignorable: undefined, surfaceOp: undefined }
  t.equal(eventText(optional as unknown as SessionEvent), '{"type":"x","seq":0,"time":0,"data":1}')
  const bare = Object.assign(Object.create(null), { type: 'x', seq: 0, time: 0, data: 1 })
  t.equal(eventText(bare), '{"type":"x","seq":0,"time":0,"data":1}')
  t.equal(({} as { polluted?: unknown }).polluted, undefined)
  t.end()
})

/** Deep equality on own enumerable members, undefined counted as absent. */
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
