import t from 'tap'
import { packEvents } from '../../../codec/index.ts'
import type { TurnTailView } from '../../../src/client/index.ts'
import { ConversationAssembler, turnTail } from '../../../src/client/index.ts'
import type { EventBody } from '../../support/conversations.ts'
import {
  chunk,
  logOf,
  message,
  question,
  retry,
  stepEnd,
  stepStart,
  textToken,
  turnEnd,
  turnStart,
} from '../../support/conversations.ts'

type Timed = EventBody & { time?: number }

function tails(...bodies: Timed[]): readonly TurnTailView[] {
  const assembler = new ConversationAssembler({ tails: [turnTail] })
  assembler.apply({ type: 'append', entries: packEvents(logOf(bodies)) })
  return assembler.view('tails')
}

const at = (time: number, body: EventBody): Timed => ({ ...body, time })
const text = [{ type: 'text', text: 'x' }]
const used = (outputTokens: number, place = {}) => message(text, { ...place, usage: { outputTokens } })

/** Tokens at these times. */
const tokens = (times: readonly number[], place = {}) => times.map((time) => at(time, textToken('x', place)))

t.test('a turn from its start to its end', async (t) => {
  const log = [
    at(1_000, turnStart()),
    at(1_000, question('?')),
    at(1_100, stepStart()),
    at(1_200, textToken('')),
    ...tokens([1_300, 1_400, 1_700]),
    at(1_800, used(50)),
    at(1_900, stepEnd()),
    at(2_000, turnEnd()),
  ]
  t.match(tails(...log.slice(0, 1)), [{ kind: 'turn-tail', turn: 1, seq: 0, status: 'open', startedAt: 1_000 }])
  t.match(tails(...log.slice(0, 5)), [{ status: 'open', seq: 3, timeToFirstToken: 300 }])
  t.strictSame(tails(...log), [
    {
      ...{
        kind: 'turn-tail',
        id: '1',
        turn: 1,
        seq: 9,
        isComplete: true,
        status: 'closed',
        reason: { kind: 'completed' },
      },
      ...{ startedAt: 1_000, endedAt: 2_000, closing: { step: 1, seq: 7, messageId: 'm1-1' }, timeToFirstToken: 300 },
      tokensPerSecond: 100,
    },
  ])
})

t.test('the speed is that of the steps, without the tools between them', async (t) => {
  const second = { turn: 1, step: 2 }
  const [tail] = tails(
    at(0, turnStart()),
    at(0, stepStart()),
    ...tokens([100, 200]),
    at(300, used(10)),
    at(300, stepEnd()),
    at(60_000, stepStart(1, 2)),
    ...tokens([60_100, 60_400], second),
    at(60_500, used(30, second)),
    at(60_600, turnEnd()),
  )
  t.match(tail, { closing: { step: 2 }, tokensPerSecond: 100 })
})

t.test('what a failed request sent is not counted against the one that succeeded', async (t) => {
  const [tail] = tails(
    ...[at(0, turnStart()), at(0, stepStart()), ...tokens([100, 200]), at(300, retry(1)), ...tokens([9_000, 9_500])],
    ...[at(9_600, used(20)), at(9_700, turnEnd())],
  )
  t.match(tail, { timeToFirstToken: 100, tokensPerSecond: 40 })
})

t.test('the usage may be that of the chunk', async (t) => {
  const usage = chunk(1, 1, { type: 'usage', usage: { outputTokens: 5 } })
  const log = [
    at(0, turnStart()),
    at(0, stepStart()),
    ...tokens([0, 1_000]),
    at(1_000, usage),
    at(1_100, message(text)),
  ]
  t.match(tails(...log, at(1_200, turnEnd())), [{ tokensPerSecond: 5 }])
  t.match(tails(...log.slice(0, -1), at(1_200, turnEnd(1, 'aborted'))), [
    { tokensPerSecond: 5, reason: { kind: 'aborted' }, closing: undefined },
  ])
})

t.test('what is not known is absent', async (t) => {
  const absent = (tail: TurnTailView | undefined, ...names: string[]) => {
    for (const name of names) t.notOk(Object.hasOwn(tail ?? {}, name), name)
  }
  const [begun] = tails(at(100, textToken('x')), ...tokens([200, 300]), used(10), turnEnd())
  t.match(begun, { isComplete: false, status: 'closed' })
  absent(begun, 'timeToFirstToken', 'tokensPerSecond', 'startedAt')
  const [single] = tails(turnStart(), stepStart(), textToken('x'), used(10), turnEnd())
  absent(single, 'tokensPerSecond')
  const [back] = tails(at(0, turnStart()), at(0, stepStart()), ...tokens([500, 400]), used(10), turnEnd())
  absent(back, 'tokensPerSecond')
  const [early] = tails(at(500, turnStart()), stepStart(), at(400, textToken('x')))
  absent(early, 'timeToFirstToken')
  const [unused] = tails(turnStart(), stepStart(), ...tokens([100, 200]), message(text), turnEnd())
  absent(unused, 'tokensPerSecond')
  absent(tails(turnStart(), turnEnd())[0], 'closing', 'timeToFirstToken', 'tokensPerSecond')
  t.same(tails(question('?'), { type: 'turn/end', data: { turn: 'one' } }), [])
})
