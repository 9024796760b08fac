import t from 'tap'
import { Coverage } from '../../src/client/coverage.ts'

type Part = [from: number, to: number]

/** The code of the error that the parts of a range end in, or undefined. */
function outcome([from, to]: Part, parts: Part[]): string | undefined {
  const coverage = new Coverage({ from, to })
  try {
    for (const [from, to] of parts) coverage.take({ from, to })
    coverage.end()
    return undefined
  } catch (error) {
    return (error as { code: string }).code
  }
}

t.test('a range is covered by parts that join, and by nothing else', async (t) => {
  const whole: [Part, Part[]][] = [
    [[0, 0], []],
    [[5, 5], []],
    [[0, 1], [[0, 1]]],
    [
      [3, 9],
      [
        [3, 4],
        [4, 8],
        [8, 9],
      ],
    ],
  ]
  for (const [range, parts] of whole) t.equal(outcome(range, parts), undefined, JSON.stringify([range, parts]))
  const incomplete: [Part, Part[]][] = [
    [[0, 1], []],
    [[3, 9], [[3, 8]]],
  ]
  for (const [range, parts] of incomplete) t.equal(outcome(range, parts), 'answer/incomplete', JSON.stringify(parts))
  const wrong: [Part, Part[]][] = [
    [[0, 0], [[0, 1]]],
    [[3, 9], [[2, 9]]],
    [[3, 9], [[4, 9]]],
    [[3, 9], [[3, 10]]],
    [
      [3, 9],
      [
        [3, 5],
        [6, 9],
      ],
    ],
    [
      [3, 9],
      [
        [3, 5],
        [4, 9],
      ],
    ],
    [
      [3, 9],
      [
        [3, 5],
        [3, 5],
      ],
    ],
    [
      [3, 9],
      [
        [3, 9],
        [9, 10],
      ],
    ],
  ]
  for (const [range, parts] of wrong) t.equal(outcome(range, parts), 'answer/malformed', JSON.stringify(parts))
})
