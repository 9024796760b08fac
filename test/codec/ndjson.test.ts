import fc from 'fast-check'
import t from 'tap'
import { LIMITS } from '../../codec/event.ts'
import { type ControlRecord, encodeRecords, LineDecoder, type NumberedLine, RecordDecoder } from '../../codec/ndjson.ts'
import { packEvents } from '../../codec/pack.ts'
import { Problem } from '../../codec/problem.ts'
import type { SessionHistoryRecord } from '../../codec/record.ts'
import { cuts, hardText, inTime, logEvents, slicedAt, slicings } from '../support/arbitraries.ts'

const encoder = new TextEncoder()

interface Outcome {
  lines: NumberedLine[]
  code?: string
  line?: number | undefined
  limit?: number | undefined
}

/** All that a decoder gives for these slices, up to its error. */
function decode(slices: readonly Uint8Array[], options?: { lineBytes?: number }): Outcome {
  const decoder = new LineDecoder(options)
  const lines: NumberedLine[] = []
  try {
    for (const slice of slices) {
      // The caller may use its buffer again at once.
      const lent = Uint8Array.from(slice)
      lines.push(...decoder.feed(lent))
      lent.fill(0x2a)
    }
    lines.push(...decoder.end())
    return { lines }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const { line, limit } = error.facts
    return limit === undefined ? { lines, code: error.code, line } : { lines, code: error.code, line, limit }
  }
}

function bytesOf(...parts: (string | number[])[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => (typeof part === 'string' ? [...encoder.encode(part)] : part)))
}

const BOM = [0xef, 0xbb, 0xbf]

const GOLDENS: { name: string; bytes: Uint8Array; outcome: Outcome }[] = [
  { name: 'nothing', bytes: bytesOf(), outcome: { lines: [] } },
  { name: 'one newline', bytes: bytesOf('\n'), outcome: { lines: [] } },
  { name: 'one line', bytes: bytesOf('{}\n'), outcome: { lines: [{ text: '{}', line: 1 }] } },
  {
    name: 'a missing last newline',
    bytes: bytesOf('a\nb'),
    outcome: {
      lines: [
        { text: 'a', line: 1 },
        { text: 'b', line: 2 },
      ],
    },
  },
  {
    name: 'carriage returns',
    bytes: bytesOf('a\r\n\r\nb\r'),
    outcome: {
      lines: [
        { text: 'a', line: 1 },
        { text: 'b', line: 3 },
      ],
    },
  },
  { name: 'a carriage return inside', bytes: bytesOf('a\rb\n'), outcome: { lines: [{ text: 'a\rb', line: 1 }] } },
  {
    name: 'blank lines',
    bytes: bytesOf('\n \t\na\n\n\r\n \nb\n '),
    outcome: {
      lines: [
        { text: 'a', line: 3 },
        { text: 'b', line: 7 },
      ],
    },
  },
  {
    name: 'characters of two, three and four bytes',
    bytes: bytesOf('Яé\n漢字\n😀x😀\n'),
    outcome: {
      lines: [
        { text: 'Яé', line: 1 },
        { text: '漢字', line: 2 },
        { text: '😀x😀', line: 3 },
      ],
    },
  },
  {
    name: 'separators that are not newlines',
    bytes: bytesOf('a\u2028b\u2029c\u0085d\u000be\u000cf\n'),
    outcome: { lines: [{ text: 'a\u2028b\u2029c\u0085d\u000be\u000cf', line: 1 }] },
  },
  {
    name: 'a byte order mark',
    bytes: bytesOf(BOM, 'a\nb\n'),
    outcome: {
      lines: [
        { text: 'a', line: 1 },
        { text: 'b', line: 2 },
      ],
    },
  },
  { name: 'a mark alone', bytes: bytesOf(BOM), outcome: { lines: [] } },
  {
    name: 'a mark elsewhere',
    bytes: bytesOf(BOM, BOM, 'a\n', BOM, 'b\nc', BOM, '\n', BOM),
    outcome: {
      lines: [
        { text: '\ufeffa', line: 1 },
        { text: '\ufeffb', line: 2 },
        { text: 'c\ufeff', line: 3 },
        { text: '\ufeff', line: 4 },
      ],
    },
  },
  {
    name: 'half a mark',
    bytes: bytesOf([0xef, 0xbb], '\na\n'),
    outcome: { lines: [], code: 'record/malformed', line: 1 },
  },
  {
    name: 'half a mark and no more',
    bytes: bytesOf([0xef]),
    outcome: { lines: [], code: 'record/malformed', line: 1 },
  },
  {
    name: 'what begins as a mark does',
    bytes: bytesOf([0xef, 0xbb, 0xa9], 'a\n', [0xef, 0xbf, 0xbd], '\n'),
    outcome: {
      lines: [
        { text: '\ufee9a', line: 1 },
        { text: '\ufffd', line: 2 },
      ],
    },
  },
  {
    name: 'NUL',
    bytes: bytesOf('a\u0000b\n\u0000\n'),
    outcome: {
      lines: [
        { text: 'a\u0000b', line: 1 },
        { text: '\u0000', line: 2 },
      ],
    },
  },
]

for (const [name, bad] of [
  ['a lone continuation byte', [0x80]],
  ['a cut character', [0xe6, 0xbc]],
  ['an encoded surrogate', [0xed, 0xa0, 0xbd]],
  ['an overlong slash', [0xc0, 0xaf]],
  ['a code point that is none', [0xf4, 0x90, 0x80, 0x80]],
  ['a byte that is never used', [0xff]],
] as const) {
  GOLDENS.push({
    name,
    bytes: bytesOf('a\n\nb', [...bad], '\nc\n'),
    outcome: { lines: [{ text: 'a', line: 1 }], code: 'record/malformed', line: 3 },
  })
  GOLDENS.push({
    name: `${name} at the very end`,
    bytes: bytesOf('a\n', [...bad]),
    outcome: { lines: [{ text: 'a', line: 1 }], code: 'record/malformed', line: 2 },
  })
}

t.test('goldens, in every slicing', (t) => {
  for (const { name, bytes, outcome } of GOLDENS) {
    for (const slices of slicings(bytes)) t.strictSame(decode(slices), outcome, `${name} in ${slices.length} slices`)
    for (let cut = 0; cut <= bytes.length; cut++) {
      t.strictSame(decode([bytes.slice(0, cut), new Uint8Array(0), bytes.slice(cut)]), outcome, `${name} cut at ${cut}`)
    }
  }
  t.end()
})

t.test('lines come back equal however the bytes are cut', (t) => {
  // Halves of pairs have no UTF-8; JSON escapes them, and so do these lines.
  const line = hardText.map((text) => JSON.stringify(text))
  const ending = fc.constantFrom('\n', '\r\n', '\n\n', '\n \r\n')
  fc.assert(
    fc.property(fc.array(fc.tuple(line, ending), { maxLength: 8 }), fc.boolean(), cuts, (pairs, mark, places) => {
      const bytes = bytesOf(mark ? BOM : [], pairs.map(([text, end]) => text + end).join(''))
      const { lines, code } = decode(slicedAt(bytes, places))
      return (
        code === undefined &&
        JSON.stringify(lines.map(({ text }) => text)) === JSON.stringify(pairs.map(([text]) => text))
      )
    }),
    inTime(),
  )
  t.pass()
  t.end()
})

t.test('any bytes end the same way however they are cut', (t) => {
  const piece = fc.oneof(
    fc.constantFrom('\n', '\r', ' ', 'ab', 'abcdefgh', 'é', '漢', '😀').map((text) => [...encoder.encode(text)]),
    fc.constantFrom(BOM, [0xef], [0xbb], [0xbf], [0x80], [0xe6, 0xbc], [0xff]),
  )
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 14 }),
      cuts,
      fc.integer({ min: 1, max: 20 }),
      (pieces, places, lineBytes) => {
        const bytes = Uint8Array.from(pieces.flat())
        const whole = JSON.stringify(decode([bytes], { lineBytes }))
        return (
          slicings(bytes).every((slices) => JSON.stringify(decode(slices, { lineBytes })) === whole) &&
          JSON.stringify(decode(slicedAt(bytes, places), { lineBytes })) === whole
        )
      },
    ),
    inTime(3000),
  )
  t.pass()
  t.end()
})

t.test('blocks of many lines are the lines one by one', (t) => {
  const text = Array.from(
    { length: 5000 },
    (_, at) => `{"n":${at},"text":"${'é'.repeat(at % 50)}"}${at % 7 === 0 ? '\r\n\n' : '\n'}`,
  ).join('')
  const bytes = encoder.encode(text)
  const expected = decode(Array.from(bytes, (byte) => Uint8Array.of(byte)))
  t.equal(expected.lines.length, 5000)
  for (const size of [bytes.length, 65536, 16384, 16383, 1000]) {
    const slices = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.slice(at * size, (at + 1) * size),
    )
    t.strictSame(decode(slices), expected, `${size} bytes a slice`)
  }
  const bad = Uint8Array.from(bytes)
  bad[bytes.length - 4] = 0xff
  const outcome = decode([bad])
  t.equal(outcome.lines.length, 4999, 'all before the bad line are given')
  t.equal(outcome.line, expected.lines.at(-1)?.line)
  t.end()
})

t.test('lines longer than a block, between short ones', (t) => {
  const long = 'x'.repeat(40_000)
  const bytes = encoder.encode(`a\n${long}\nb\n${long}é\r\n${long}`)
  const texts = ['a', long, 'b', `${long}é`, long]
  for (const size of [bytes.length, 16384, 1024, 39_999]) {
    const slices = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      bytes.slice(at * size, (at + 1) * size),
    )
    t.strictSame(decode(slices), { lines: texts.map((text, at) => ({ text, line: at + 1 })) }, `${size} bytes a slice`)
  }
  t.end()
})

t.test('the limit of a line is exact, its ending not counted', (t) => {
  for (const lineBytes of [1, 2, 10, 16 * 1024, 20_000, 70_000]) {
    for (const ending of ['', '\n', '\r\n', '\n\n']) {
      for (const mark of [[], BOM]) {
        const fits = bytesOf('z\n', `${'x'.repeat(lineBytes)}${ending}`)
        const over = bytesOf(mark, `a\n${'x'.repeat(lineBytes + 1)}${ending}`)
        for (const slices of [[fits], slicedAt(fits, [1, lineBytes, lineBytes + 1, lineBytes + 2, lineBytes + 3])]) {
          t.strictSame(decode(slices, { lineBytes }).lines.length, 2, `${lineBytes} bytes fit`)
        }
        for (const slices of [[over], slicedAt(over, [1, lineBytes, lineBytes + 1, lineBytes + 2, lineBytes + 3])]) {
          t.strictSame(
            decode(slices, { lineBytes }),
            { lines: [{ text: 'a', line: 1 }], code: 'request/too-large', line: 2, limit: lineBytes },
            `${lineBytes + 1} bytes do not`,
          )
        }
      }
    }
  }
  t.strictSame(decode([bytesOf(BOM, 'xxxx\n')], { lineBytes: 4 }).lines, [{ text: 'xxxx', line: 1 }], 'nor is the mark')
  t.equal(decode([bytesOf('éé\n')], { lineBytes: 3 }).code, 'request/too-large', 'bytes, not characters')
  t.equal(decode([new Uint8Array(LIMITS.lineBytes + 1).fill(0x78)]).limit, 8 * 1024 * 1024, 'the default')
  t.equal(decode([new Uint8Array(LIMITS.lineBytes).fill(0x78)]).lines.length, 1)
  t.end()
})

t.test('an error is final and is thrown by every later call', (t) => {
  const decoder = new LineDecoder({ lineBytes: 4 })
  t.strictSame(decoder.feed(bytesOf('ab\ncdefg')), [{ text: 'ab', line: 1 }], 'what is good comes first')
  for (const call of [() => decoder.feed(bytesOf('x\n')), () => decoder.feed(bytesOf('')), () => decoder.end()]) {
    t.throws(call, { code: 'request/too-large', facts: { line: 2, limit: 4 } })
  }
  const other = new LineDecoder()
  t.throws(() => other.feed(bytesOf([0xff], '\n')), { code: 'record/malformed', facts: { line: 1 } })
  t.throws(() => other.end(), { code: 'record/malformed' })
  t.end()
})

t.test('a line without end holds no more than the limit', (t) => {
  const decoder = new LineDecoder({ lineBytes: 1000 })
  const slice = new Uint8Array(64).fill(0x61)
  let fed = 0
  t.throws(
    () => {
      for (;;) {
        decoder.feed(slice)
        fed += slice.length
        if (decoder.pendingBytes > 1000) throw new Error('held too much')
      }
    },
    { code: 'request/too-large' },
  )
  t.equal(fed, 960)
  t.equal(decoder.pendingBytes, 0, 'and nothing afterwards')
  // One slice far over the limit is not copied at all.
  const huge = new LineDecoder({ lineBytes: 1000 })
  t.throws(() => huge.feed(new Uint8Array(10_000_000).fill(0x61)), { code: 'request/too-large' })
  t.equal(huge.pendingBytes, 0)
  t.end()
})

t.test('one huge line in tiny slices copies each byte a bounded number of times', (t) => {
  // Case D4.
  // Counts the bytes that are copied from one buffer into another, as time would be a matter of the machine.
  const set = Uint8Array.prototype.set
  let copied = 0
  t.teardown(() => {
    Uint8Array.prototype.set = set
  })
  Uint8Array.prototype.set = function (this: Uint8Array, source, offset) {
    copied += source.length
    return set.call(this, source, offset)
  }
  for (const size of [1 << 20, 1 << 22]) {
    copied = 0
    const decoder = new LineDecoder()
    const slice = new Uint8Array(64).fill(0x61)
    for (let fed = 0; fed < size; fed += slice.length) decoder.feed(slice)
    const [line] = decoder.end()
    t.equal(line?.text.length, size)
    t.ok(copied <= 3 * size, `${copied} bytes copied for ${size}`)
  }
  t.end()
})

t.test('lines begun are counted', (t) => {
  const decoder = new LineDecoder()
  t.equal(decoder.lines, 0)
  decoder.feed(bytesOf('a\n\nb'))
  t.equal(decoder.lines, 3)
  t.equal(decoder.pendingBytes, 1)
  decoder.feed(bytesOf('\n'))
  t.equal(decoder.lines, 3)
  decoder.end()
  t.equal(decoder.lines, 3)
  t.end()
})

// ---- records ------------------------------------------------------------------------------------------------------

type Read = {
  records: (SessionHistoryRecord | ControlRecord)[]
  code?: string
  line?: number | undefined
  path?: string | undefined
}

function read(slices: readonly Uint8Array[], options?: { lineBytes?: number }): Read {
  const decoder = new RecordDecoder(options)
  const records: (SessionHistoryRecord | ControlRecord)[] = []
  try {
    for (const slice of slices) records.push(...decoder.feed(slice))
    records.push(...decoder.end())
    return { records }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return { records, code: error.code, line: error.facts.line, path: error.facts.path }
  }
}

const EVENT_LINE = '{"type":"event","event":{"type":"x","seq":0,"time":0,"data":"é"}}'
const ROW_LINE =
  '{"type":"chunks","event":{"type":"chunkrow/text-chunks","seq":1,"time":0,"data":{"turn":1,"step":1,"index":0,"dt":[1,-1],"texts":["a","😀","c"]}}}'
const OMITTED_LINE = '{"type":"omitted","event":{"type":"chunkrow/omitted","seq":4,"time":0,"data":{"count":3}}}'
const END_LINE = '{"type":"end","reason":"draining"}'

t.test('records come back equal however the bytes are cut', (t) => {
  fc.assert(
    fc.property(logEvents, cuts, (events, places) => {
      const records = packEvents(events)
      const text = encodeRecords(records)
      const result = read(slicedAt(encoder.encode(text), places))
      return JSON.stringify(result) === JSON.stringify({ records }) && text.split('\n').length === records.length + 1
    }),
    inTime(500),
  )
  t.pass()
  t.end()
})

t.test('all kinds of record and the end, in every slicing', (t) => {
  const bytes = bytesOf(BOM, [EVENT_LINE, ROW_LINE, '', OMITTED_LINE, END_LINE].join('\r\n'))
  const records = [EVENT_LINE, ROW_LINE, OMITTED_LINE, END_LINE].map((line) => JSON.parse(line))
  for (const slices of slicings(bytes)) t.strictSame(read(slices), { records })
  t.strictSame(read([bytesOf('{"type":"end","reason":"of a later version","retry":1}\n')]).records, [
    { type: 'end', reason: 'of a later version' },
  ])
  t.end()
})

t.test('what is no record is an error that names its line, after all that is good', (t) => {
  for (const bad of [
    'nope',
    '[]',
    'null',
    '1',
    '{}',
    '{"type":"end"}',
    '{"type":"end","reason":1}',
    '{"type":"unknown"}',
    EVENT_LINE.slice(0, -1),
    ROW_LINE.replace('[1,-1]', '[1]'),
  ]) {
    const bytes = bytesOf(`${EVENT_LINE}\n\n${bad}\n${ROW_LINE}\n`)
    for (const slices of slicings(bytes)) {
      const result = read(slices)
      t.equal(result.records.length, 1, bad)
      t.equal(result.code, 'record/malformed', bad)
      t.equal(result.line, 3, bad)
    }
  }
  const event = read([bytesOf(EVENT_LINE.replace('"seq":0', '"seq":-1'))])
  t.equal(event.line, 1)
  t.match(event.path, /\/seq$/)
  t.end()
})

t.test('a record cut off at the end is an error, a whole one without its newline is not', (t) => {
  const line = encoder.encode(ROW_LINE)
  t.equal(read([line]).records.length, 1)
  for (let cut = 1; cut < line.length; cut++) {
    const result = read([bytesOf(`${EVENT_LINE}\n`), line.slice(0, cut)])
    t.strictSame([result.records.length, result.code, result.line], [1, 'record/malformed', 2])
  }
  t.end()
})

t.test('nothing but blank lines follows the end', (t) => {
  t.strictSame(read([bytesOf(`${END_LINE}\n\n\r\n`)]).records, [{ type: 'end', reason: 'draining' }])
  for (const after of [EVENT_LINE, END_LINE, 'x']) {
    t.strictSame(
      [read([bytesOf(`${END_LINE}\n${after}\n`)]).code, read([bytesOf(`${END_LINE}\n${after}\n`)]).line],
      ['record/malformed', 2],
    )
  }
  const decoder = new RecordDecoder()
  t.equal(decoder.feed(bytesOf(`${EVENT_LINE}\nx\n`)).length, 1)
  t.throws(() => decoder.feed(bytesOf('')), { code: 'record/malformed', facts: { line: 2 } })
  t.throws(() => decoder.end(), { code: 'record/malformed', facts: { line: 2 } })
  t.end()
})

t.test('a reader allows one level and 1 KiB more than what may be sent in', (t) => {
  const line = (data: string) => `{"type":"event","event":{"type":"x","seq":0,"time":0,"data":${data}}}`
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  t.equal(read([bytesOf(line(nested(511)))]).records.length, 1)
  t.equal(read([bytesOf(line(nested(512)))]).code, 'event/invalid')
  const limit = 2000 + 1024
  const full = line(`"${'x'.repeat(limit - line('""').length)}"`)
  t.equal(read([bytesOf(full)], { lineBytes: 2000 }).records.length, 1)
  t.equal(read([bytesOf(`${full} `)], { lineBytes: 2000 }).code, 'request/too-large')
  t.end()
})

t.test('hostile keys and numbers change nothing around them', (t) => {
  const line =
    '{"type":"event","event":{"type":"x","seq":0,"time":0,"data":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"n":1e400}}}'
  const [record] = read([bytesOf(line)]).records as [SessionHistoryRecord & { type: 'event' }]
  const data = record.event.data as Record<string, unknown>
  t.equal(JSON.stringify(Object.keys(data)), '["__proto__","constructor","n"]')
  t.equal(data.n, Infinity)
  t.equal(({} as { polluted?: unknown }).polluted, undefined)
  t.throws(
    () => encodeRecords([record]),
    { code: 'event/invalid', facts: { path: '/data/n' } },
    'never written as null',
  )
  t.end()
})

t.test('encoded text has a newline after every record and no mark', (t) => {
  const records = [EVENT_LINE, ROW_LINE, OMITTED_LINE].map((line) => JSON.parse(line))
  t.equal(encodeRecords(records), `${EVENT_LINE}\n${ROW_LINE}\n${OMITTED_LINE}\n`)
  t.equal(encodeRecords([]), '')
  t.end()
})
