import t from 'tap'
import type { JsonValue } from '../../../codec/index.ts'
import { ConversationAssembler, toolCall, userMessage } from '../../../src/client/index.ts'
import type { EventBody } from '../../support/conversations.ts'
import { logOf, question, single, turnEnd } from '../../support/conversations.ts'

function called(callId: string, turn = 1): EventBody {
  return { type: 'tool/call', data: { turn, step: 1, callId, name: 'bash', arguments: '{"command":"ls"}' } }
}

function result(message: JsonValue, rest: { [key: string]: JsonValue } = {}): EventBody {
  return { type: 'tool/result', data: { turn: 1, step: 1, message, ...rest }, surfaceOp: 'append' }
}

function answered(...bodies: EventBody[]) {
  const assembler = new ConversationAssembler({ calls: [toolCall] })
  assembler.apply({ type: 'append', entries: single(logOf(bodies)) })
  return assembler.view('calls')
}

const content = (toolCallId: string, isError = false) => ({ content: [{ type: 'tool-result', toolCallId, isError }] })

t.test('a call, then its result', async (t) => {
  t.strictSame(answered(called('a')), [
    {
      ...{ kind: 'tool-call', id: '1:a', callId: 'a', seq: 0, isComplete: true, status: 'running', turn: 1, step: 1 },
      ...{ name: 'bash', argsRaw: '{"command":"ls"}', startedAt: 1_001 },
    },
  ])
  const meta = { ms: 5 }
  t.match(answered(called('a'), called('b'), result(content('a'), { meta })), [
    { callId: 'a', status: 'done', endedAt: 1_003, result: content('a'), meta },
    { callId: 'b', status: 'running' },
  ])
})

t.test('a result is found by the id that it, its source or its content names', async (t) => {
  for (const body of [
    result({ content: [] }, { callId: 'a' }),
    result({ source: { kind: 'tool', callId: 'a' } }),
    result(content('a')),
  ]) {
    t.match(answered(called('a'), body), [{ status: 'done' }])
  }
  t.match(answered(called('a'), result({ content: 'nameless' })), [{ status: 'running' }])
})

t.test('a result may be a failure', async (t) => {
  t.match(answered(called('a'), result(content('a', true))), [{ status: 'failed' }])
  t.match(answered(called('a'), result(content('a'), { error: { code: 'denied' } })), [
    { status: 'failed', error: { code: 'denied' } },
  ])
})

t.test('a result without a message is its content', async (t) => {
  const flat = (isError: boolean): EventBody => {
    return { type: 'tool/result', data: { turn: 1, callId: 'a', content: 'files', isError }, surfaceOp: 'append' }
  }
  t.match(answered(called('a'), flat(false)), [{ status: 'done', result: 'files' }])
  t.match(answered(called('a'), flat(true)), [{ status: 'failed', result: 'files' }])
})

t.test('a result whose call is on an older page is there, and says so', async (t) => {
  t.match(answered(result(content('a'))), [{ callId: 'a', status: 'done', isComplete: false, name: undefined }])
})

t.test('a call without a result when its turn ends is unanswered', async (t) => {
  t.match(answered(called('a'), called('b', 2), turnEnd()), [
    { callId: 'a', status: 'unanswered' },
    { callId: 'b', status: 'running' },
  ])
  t.match(answered(called('a'), turnEnd(), result(content('a'))), [{ status: 'done' }], 'it may still come')
})

t.test('one id in two turns is two calls', async (t) => {
  t.equal(answered(called('call_0', 1), called('call_0', 2)).length, 2)
})

t.test('a user message is one item; what replaces it for the model is none', async (t) => {
  const assembler = new ConversationAssembler({ users: [userMessage] })
  const copy: EventBody = { ...question('summary'), surfaceOp: { op: 'replace', start: 0, end: 0 } }
  const plain: EventBody = { type: 'user/message', data: 'not shown to the model' }
  assembler.apply({ type: 'append', entries: single(logOf([question('hello'), copy, plain])) })
  t.strictSame(assembler.view('users'), [
    {
      ...{ kind: 'user', id: '0', seq: 0, time: 1_001, text: 'hello' },
      message: { role: 'user', content: 'hello' },
    },
  ])
})
