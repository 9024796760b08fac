// The three representations of a page: how many records, what is left out, and that nothing else is.

import t from 'tap'
import type { PageFixtureName } from '../../bench/fixtures/index.ts'
import {
  HEAVY_PAGE,
  HUGE_PAGE,
  PAGE_FIXTURE_NAMES,
  pageEvents,
  REPRESENTATIONS,
  represent,
  whiteSpaceStep,
  withOmitted,
} from '../../bench/fixtures/index.ts'
import { fewer, sizesOf } from '../../bench/inventory/bodies.ts'
import type { SessionEvent, SessionHistoryRecord } from '../../codec/index.ts'
import { encodeRecords, expandRecords, recordRange, validateRecord } from '../../codec/index.ts'

/** Records of each representation, in the order of REPRESENTATIONS, and the stretches that the projection leaves out. */
const COUNTS: Readonly<Record<PageFixtureName, { records: readonly number[]; stretches: number }>> = {
  'huge-words': { records: [HUGE_PAGE.events, 262, HUGE_PAGE.records], stretches: 43 },
  'huge-short': { records: [HUGE_PAGE.events, 262, HUGE_PAGE.records], stretches: 43 },
  heavy: { records: [HEAVY_PAGE.chunks + 241, 241, 664], stretches: 45 },
}

for (const name of PAGE_FIXTURE_NAMES) {
  t.test(`${name}: exact counts`, async (t) => {
    const events = pageEvents(name)
    const { records, stretches } = COUNTS[name]
    t.same(
      REPRESENTATIONS.map((as) => represent(events, as).length),
      records,
    )
    const omitted = withOmitted(events)
    t.equal(omitted.filter(({ type }) => type === 'omitted').length, stretches)
    t.equal(omitted.length, (records[1] as number) + stretches)
    let next = 0
    for (const record of omitted) {
      const { from, to } = recordRange(validateRecord(record))
      if (from !== next) t.fail(`a record begins at ${from}, not at ${next}`)
      next = to
    }
    t.equal(next, events.length, 'what was left out is accounted for')
  })
}

t.test(
  'packed on words: at least 90.8 % fewer bytes of JSON, even without the frames of the raw records',
  async (t) => {
    const events = pageEvents('huge-words')
    const packed = Buffer.byteLength(encodeRecords(represent(events, 'packed')))
    let bare = 0
    for (const event of events) bare += Buffer.byteLength(JSON.stringify(event)) + 1
    t.ok(fewer(packed, bare) >= 90.8, `${fewer(packed, bare)} %`)
  },
)

t.test('the projection leaves out the chunks of settled steps and no others', async (t) => {
  const chunk = (seq: number): SessionEvent => {
    return { type: 'assistant/chunk', seq, time: seq, data: { turn: 1, step: 1, chunk: { type: 'finish' } } }
  }
  const message = (seq: number, sourceEventSeqs: number[]): SessionEvent => {
    const data = { turn: 1, step: 1, message: { role: 'assistant', content: [] } }
    return { type: 'assistant/message', seq, time: seq, data, sourceEventSeqs, surfaceOp: 'append' }
  }
  const other = (seq: number): SessionEvent => ({ type: 'hook/invoked', seq, time: seq, data: {} })
  const cases: readonly [string, SessionEvent[], number[]][] = [
    ['all of a step', [chunk(0), chunk(1), message(2, [0, 1])], [2]],
    ['not what came before its group', [chunk(0), chunk(1), message(2, [1])], [0, 2]],
    ['not the unfinished tail', [chunk(0), message(1, [0]), chunk(2)], [1, 2]],
    ['also those that no message names', [chunk(0), chunk(1), other(2), chunk(3), message(4, [0])], [2, 4]],
    ['groups in one another', [chunk(0), chunk(1), message(2, [1]), chunk(3), message(4, [0])], [2, 4]],
    ['nothing without messages', [chunk(0), other(1)], [0, 1]],
  ]
  for (const [what, events, kept] of cases) {
    t.same(
      represent(events, 'projected').map(({ event }) => event.seq),
      kept,
      what,
    )
  }
})

t.test('white space: the same events in each partition', async (t) => {
  const single = whiteSpaceStep(5_000, 'single events')
  t.equal(single.length, 3 + 5_001)
  t.same([...expandRecords(whiteSpaceStep(5_000, 'one row'))], eventsOf(single))
  t.same([...expandRecords(whiteSpaceStep(5_000, 'rows of 4,096'))], eventsOf(single))
  t.equal(whiteSpaceStep(5_000, 'one row').length, 4)
  t.equal(whiteSpaceStep(5_000, 'rows of 4,096').length, 5)
})

t.test('sizes: what a reader of each coding gets', async (t) => {
  const sizes = sizesOf(2, Buffer.from('{"type":"event"}\n'.repeat(500)))
  t.match(sizes, { records: 2, jsonBytes: 8_500 })
  t.ok(sizes.gzipBytes < 200 && sizes.brotliBytes < 200)
  t.equal(fewer(25, 100), 75)
})

function eventsOf(records: readonly SessionHistoryRecord[]): unknown[] {
  return records.map(({ event }) => event)
}
