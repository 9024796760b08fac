import fc from 'fast-check'
import t from 'tap'
import type { Range } from '../../codec/index.ts'
import { recordRange } from '../../codec/index.ts'
import { arrange, inOrder } from '../../src/client/record-order.ts'
import { inTime } from '../support/arbitraries.ts'
import { assertCovers, packedRange, textDeltas } from '../support/logs.ts'

interface Line {
  record: ReturnType<typeof packedRange>[number]
}

const LOG = textDeltas(0, 60)

/** One record for each range: an event, or a row. */
function lines(...ranges: [from: number, to: number][]): Line[] {
  return ranges.flatMap(([from, to]) => packedRange(LOG, from, to).map((record) => ({ record })))
}

const seqs = (some: Line[]) => some.map(({ record }) => [recordRange(record).from, recordRange(record).to])

t.test('what is next is ready, what is old is gone, what is ahead is held', async (t) => {
  const cases: [string, [number, number][], number, object][] = [
    ['nothing', [], 5, { ready: [], next: 5, ahead: undefined }],
    [
      'next',
      [
        [5, 6],
        [6, 10],
        [10, 11],
      ],
      5,
      {
        ready: [
          [5, 6],
          [6, 10],
          [10, 11],
        ],
        next: 11,
        ahead: undefined,
      },
    ],
    [
      'wholly old',
      [
        [0, 4],
        [4, 5],
      ],
      5,
      { ready: [], next: 5, ahead: undefined },
    ],
    [
      'old, then next',
      [
        [0, 5],
        [5, 6],
        [5, 6],
        [6, 7],
      ],
      5,
      {
        ready: [
          [5, 6],
          [6, 7],
        ],
        next: 7,
        ahead: undefined,
      },
    ],
    [
      'ahead',
      [
        [5, 6],
        [8, 12],
        [6, 7],
      ],
      5,
      {
        ready: [[5, 6]],
        next: 6,
        ahead: {
          missing: { from: 6, to: 8 },
          held: [
            [8, 12],
            [6, 7],
          ],
        },
      },
    ],
    ['one ahead', [[6, 7]], 5, { ready: [], next: 5, ahead: { missing: { from: 5, to: 6 }, held: [[6, 7]] } }],
  ]
  for (const [name, ranges, next, expected] of cases) {
    const { ready, next: end, ahead, failure } = arrange(lines(...ranges), next)
    t.strictSame(
      { ready: seqs(ready), next: end, ahead: ahead && { ...ahead, held: seqs(ahead.held) } },
      expected,
      name,
    )
    t.equal(failure, undefined)
  }
})

t.test('a record that is in part old is a failure, once what was good before it is given', async (t) => {
  for (const [from, to] of [
    [3, 7],
    [5, 9],
    [0, 60],
  ] as const) {
    const { ready, failure } = arrange(lines([5, 6], [from, to], [9, 10]), 5)
    t.strictSame(seqs(ready), [[5, 6]])
    t.match(failure, { code: 'answer/malformed' })
  }
})

t.test('any deliveries: each missing range is read once, and all is given once and in order', async (t) => {
  const range = fc
    .tuple(fc.nat(50), fc.constantFrom(1, 1, 1, 4))
    .map(([from, length]): [number, number] => [from, from + length])
  const property = fc.asyncProperty(fc.array(range, { maxLength: 20 }), fc.nat(20), async (ranges, start) => {
    let next = start
    const given: Line[] = []
    const missing: Range[] = []
    async function* read({ from, to }: Range) {
      missing.push({ from, to })
      yield lines([from, to])
    }
    let failed = false
    try {
      const missed = async function* (range: Range) {
        for await (const batch of read(range)) {
          yield batch
        }
      }
      for await (const batch of inOrder(lines(...ranges), () => next, missed)) {
        given.push(...batch)
        next = recordRange(batch.at(-1)!.record).to
      }
    } catch {
      failed = true
    }
    assertCovers(
      given.map(({ record }) => record),
      start,
      next,
    )
    if (!failed && next < Math.max(start, ...ranges.map(([, to]) => to))) throw new Error('something was left')
    if (new Set(missing.map(({ from }) => from)).size !== missing.length) throw new Error('a range was read twice')
  })
  await fc.assert(property, inTime(500))
  t.pass()
})
