// Case H17: a process killed at any moment leaves every acknowledged event, none half, and nothing to repair. The long
// form is `npm run test:crash`.

import { join } from 'node:path'
import t from 'tap'
import { crashRounds } from './crash.ts'

const ROUNDS = Number(process.env.CRASH_ROUNDS ?? 25)

t.test(`${ROUNDS} rounds of kill -9`, async (t) => {
  const directory = t.testdir({ cache: {} })
  // Each round starts a process; what it parses is the same every time.
  process.env.NODE_COMPILE_CACHE = join(directory, 'cache')
  const heads = await crashRounds(directory, ROUNDS)
  for (const head of heads) t.ok(head > 100)
})
