// An append body is read in the order it came, in slices, whatever the slices of its bytes; the first bad line ends it.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { LIMITS, packEvents } from '../../codec/index.ts'
import type { AppendBody, NumberedItem } from '../../src/history/index.ts'
import { AppendInput } from '../../src/history/index.ts'
import { cuts, inTime, logEvents, slicedAt } from '../support/arbitraries.ts'
import { bytesOf, recordLine, textDelta, textDeltas, userMessage } from '../support/logs.ts'

const SEED = 7
const NEVER = () => false

function items(body: AppendBody, enough: () => boolean = NEVER, lineBytes = LIMITS.lineBytes): readonly NumberedItem[] {
  const input = new AppendInput(body, { lineBytes })
  while (!input.read(enough)) {
    // Paused: it goes on where it was.
  }
  return [...input.items()]
}

function ndjson(text: string): AppendBody {
  return { format: 'ndjson', bytes: [bytesOf(text)] }
}

function json(text: string): AppendBody {
  return { format: 'json', bytes: [bytesOf(text)] }
}

const A = '{"type":"a","data":1}'
const B = '{"type":"b","data":"漢😀"}'
const ROW = recordLine(packEvents(textDeltas(0, 3))[0]!)

t.comment(`seed ${SEED}`)

t.test('the items do not depend on the slices of the bytes, on pauses, or on the format', async () => {
  fc.assert(
    fc.property(logEvents, cuts, fc.boolean(), (events, places, pausing) => {
      const lines = events.map((event) => JSON.stringify(event))
      const enough = () => pausing
      const whole = items(ndjson(lines.map((line) => `${line}\n`).join('')))
      assert.equal(whole.length, events.length)
      const cut = (text: string): Uint8Array[] => slicedAt(bytesOf(text), places)
      assert.deepEqual(items({ format: 'ndjson', bytes: cut(lines.join('\r\n')) }, enough), whole)
      assert.deepEqual(items({ format: 'json', bytes: cut(`[${lines.join(' ,\n')}]`) }, enough), whole)
    }),
    { ...inTime(300), seed: SEED },
  )
})

t.test('lines are counted from 1, blank ones too; array elements by their place', async (t) => {
  const lines = (body: AppendBody): number[] => items(body).map(({ line }) => line)
  t.strictSame(lines(ndjson(`\ufeff\n${A}\n\r\n \n${B}`)), [2, 5])
  t.strictSame(lines(ndjson('')), [])
  t.strictSame(lines(ndjson('\n\n')), [])
  t.strictSame(lines(json(`\n[\n${A}\n,\n${ROW}, ${B} ]`)), [1, 2, 3])
  t.strictSame(lines(json('[]')), [])
  t.strictSame(lines(json(A)), [1])
  t.strictSame(items(json(`[${ROW}]`))[0]?.item.kind, 'row')
})

t.test('an error names the first bad line, and the good ones before it were read', async (t) => {
  const table: [name: string, body: AppendBody, code: string, facts: object, good: number][] = [
    ['not JSON', ndjson(`${A}\n\nx\n${B}`), 'event/invalid', { line: 3 }, 1],
    ['a cut line', ndjson(`${A}\n${B.slice(0, -3)}`), 'event/invalid', { line: 2 }, 1],
    [
      'invalid UTF-8',
      { format: 'ndjson', bytes: [bytesOf(`${A}\n`), Uint8Array.of(0xc3, 0x0a)] },
      'record/malformed',
      { line: 2 },
      1,
    ],
    [
      'over the limit',
      ndjson(`${A}\n${' '.repeat(10)}{"type":"a","data":"${'x'.repeat(100)}"}\n`),
      'request/too-large',
      { line: 2, limit: 100 },
      1,
    ],
    [
      'an element over the limit',
      json(`[${A},{"type":"a","data":"${'x'.repeat(100)}"}]`),
      'request/too-large',
      { line: 2, limit: 100 },
      1,
    ],
    ['a bad element', json(`[${A},{"type":"a"}]`), 'event/invalid', { line: 2, path: '/data' }, 1],
    ['a bare value', json('1'), 'event/invalid', { line: 1 }, 0],
    ['an array inside an array', json(`[[${A}]]`), 'event/invalid', { line: 1 }, 0],
    ['an array not closed', json(`[${A}`), 'request/invalid', { line: 1 }, 0],
    ['an element missing', json(`[${A},]`), 'request/invalid', { line: 2 }, 1],
    ['something behind', json(`[${A}] 1`), 'request/invalid', { line: 1 }, 0],
    ['nothing', json(' '), 'request/invalid', { line: 1 }, 0],
    ['JSON that is not UTF-8', { format: 'json', bytes: [Uint8Array.of(0x22, 0xff, 0x22)] }, 'request/invalid', {}, 0],
    ['a reserved type', ndjson('{"type":"end","data":1}'), 'event/invalid', { line: 1, path: '/type' }, 0],
    [
      'a row in storage form',
      ndjson('{"type":"text-chunks","seq0":0,"time0":0,"data":{}}'),
      'record/malformed',
      { line: 1, path: '/type' },
      0,
    ],
  ]
  for (const [name, body, code, facts, good] of table) {
    const input = new AppendInput(body, { lineBytes: 100 })
    t.throws(() => input.read(NEVER), { code, facts }, name)
    t.equal([...input.items()].length, good, `${name}: the good ones`)
  }
})

t.test('a line may have as many bytes as the limit, not one more', async (t) => {
  const frame = '{"type":"a","data":""}'.length
  for (const [text, bytes] of [
    ['x', 1],
    ['é', 2],
    ['漢', 3],
  ] as const) {
    const line = `{"type":"a","data":"${text}${'x'.repeat(10)}"}`
    t.equal(items(ndjson(`${line}\r\n`), NEVER, frame + bytes + 10).length, 1)
    t.throws(() => items(ndjson(`${line}\r\n`), NEVER, frame + bytes + 9), { code: 'request/too-large' })
  }
})

t.test('reading asks whether it is enough: after some tokens, and after any long line', async (t) => {
  const asked = (lines: readonly string[]): number => {
    let asks = 0
    items(ndjson(lines.join('\n')), () => {
      asks++
      return false
    })
    return asks
  }
  const tokens = Array.from({ length: 160 }, (_, seq) => JSON.stringify(textDelta(seq)))
  t.equal(asked(tokens), 10)
  const long = JSON.stringify({ ...userMessage(0), data: 'x'.repeat(100_000) })
  t.equal(asked([long, long, long]), 3, 'three lines of a megabyte are not read in one go')
})
