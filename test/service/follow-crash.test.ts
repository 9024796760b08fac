// Case B28: the service is killed under followers at any moment, and each goes on at its last event by itself, on what is
// really stored. The long form is `npm run test:crash:follow`.

import { join } from 'node:path'
import t from 'tap'
import { followCrashRounds } from './follow-crash.ts'

const ROUNDS = 5

t.test(`${ROUNDS} rounds of kill -9 under followers`, async (t) => {
  const directory = t.testdir({ cache: {} })
  // Each round starts a process; what it parses is the same every time.
  process.env.NODE_COMPILE_CACHE = join(directory, 'cache')
  const { events, acknowledged, losses } = await followCrashRounds(directory, ROUNDS, 1)
  t.ok(acknowledged > 100)
  t.ok(events >= acknowledged)
  t.ok(losses >= ROUNDS * 5, 'the readers that stayed were told of each loss')
})
