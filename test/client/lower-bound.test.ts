import t from 'tap'
import { lowerBound } from '../../src/client/lower-bound.ts'

t.test('the first place that is not before, wherever it is', async (t) => {
  for (let count = 0; count <= 9; count++) {
    for (let expected = 0; expected <= count; expected++) {
      t.equal(
        lowerBound(count, (place) => place < expected),
        expected,
        `${expected} of ${count}`,
      )
    }
  }
})
