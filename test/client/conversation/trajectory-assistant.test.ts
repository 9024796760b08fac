import t from 'tap'
import { packEvents } from '../../../codec/index.ts'
import { ConversationAssembler, trajectoryAssistant } from '../../../src/client/index.ts'
import type { EventBody } from '../../support/conversations.ts'
import { logOf, message, retry, stepEnd, stepStart, textToken, turnEnd } from '../../support/conversations.ts'

function request(...bodies: EventBody[]) {
  const assembler = new ConversationAssembler({ requests: [trajectoryAssistant] })
  assembler.apply({ type: 'append', entries: packEvents(logOf(bodies)) })
  return assembler.view('requests')[0]
}

const begun = [stepStart(), textToken('a'), textToken('b')]

t.test('started, with what has come', async (t) => {
  t.strictSame(request(...begun), {
    ...{
      kind: 'request',
      id: '1:1',
      turn: 1,
      step: 1,
      seq: 0,
      isComplete: true,
      status: 'running',
      isInterrupted: false,
    },
    ...{ retries: [], started: { seq: 0, time: 1_001 }, firstToken: { seq: 1, time: 1_002 } },
    ...{ lastToken: { seq: 2, time: 1_003 }, deltas: 2, partial: [{ type: 'text', index: 0, text: 'ab' }] },
  })
})

t.test('retried: each time it was', async (t) => {
  t.match(request(...begun, retry(1), textToken('c'), retry(2)), {
    status: 'running',
    retries: [
      { retry: 1, seq: 3, failure: { code: 'rate' } },
      { retry: 2, seq: 5 },
    ],
    ...{ firstToken: { seq: 1 }, lastToken: { seq: 4 }, deltas: 3, partial: [] },
  })
})

t.test('settled: the message has the answer', async (t) => {
  const settled = request(...begun, message([{ type: 'text', text: 'ab' }], { usage: { outputTokens: 2 } }), stepEnd())
  t.match(settled, { status: 'settled', ended: { seq: 3, time: 1_004 }, usage: { outputTokens: 2 }, messageId: 'm1-1' })
  t.notOk(Object.hasOwn(settled ?? {}, 'partial'))
  t.match(request(...begun, message([], { interrupted: true })), { status: 'settled', isInterrupted: true })
})

t.test('failed: it ended without a message', async (t) => {
  t.match(request(...begun, stepEnd(), turnEnd()), { status: 'failed', ended: { seq: 3 }, turnReason: undefined })
  t.match(request(...begun, turnEnd(1, 'error')), {
    ...{ status: 'failed', isInterrupted: false, ended: { seq: 3 }, turnReason: { kind: 'error' } },
    partial: [{ text: 'ab' }],
  })
})
