import t from 'tap'
import { OmittedRanges } from '../../../src/client/conversation/omitted-ranges.ts'

function ranges(...seqs: number[]): OmittedRanges {
  const omitted = new OmittedRanges()
  for (const seq of seqs) omitted.add(seq)
  return omitted
}

t.test('a range lies between two seqs when it begins there', async (t) => {
  const omitted = ranges(5, 20, 40)
  for (const [after, before, expected] of [
    [0, 5, false],
    [4, 6, true],
    [5, 20, false],
    [5, 21, true],
    [20, 40, false],
    [39, 41, true],
    [40, 99, false],
    [0, 99, true],
  ] as const) {
    t.equal(omitted.isBetween(after, before), expected, `${after} to ${before}`)
  }
  t.equal(ranges().isBetween(0, 99), false)
})

t.test('those of an older part stand before', async (t) => {
  const omitted = ranges(30)
  omitted.putBefore(ranges(3))
  omitted.putBefore(ranges())
  t.ok(omitted.isBetween(2, 4))
  t.ok(omitted.isBetween(29, 31))
  t.notOk(omitted.isBetween(3, 30))
})
