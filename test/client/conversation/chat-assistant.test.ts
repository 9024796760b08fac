import fc from 'fast-check'
import t from 'tap'
import type { SessionEvent } from '../../../codec/index.ts'
import { packEvents } from '../../../codec/index.ts'
import type { ChatAssistantView } from '../../../src/client/index.ts'
import { CONVERSATION, ConversationAssembler, chatAssistant } from '../../../src/client/index.ts'
import { inTime } from '../../support/arbitraries.ts'
import type { EventBody } from '../../support/conversations.ts'
import {
  callToken,
  chunk,
  logOf,
  message,
  orderlyLog,
  question,
  retry,
  stepEnd,
  stepStart,
  textToken,
  turnEnd,
  turnStart,
} from '../../support/conversations.ts'

function stepsOf(events: readonly SessionEvent[]): readonly ChatAssistantView[] {
  const assembler = new ConversationAssembler({ steps: [chatAssistant] })
  assembler.apply({ type: 'append', entries: packEvents(events) })
  return assembler.view('steps')
}

/** The one step of a log, before its last `after` events and at its end. */
function step(...bodies: (EventBody & { time?: number })[]): ChatAssistantView {
  const [only, ...more] = stepsOf(logOf(bodies))
  if (!only || more.length > 0) throw new Error('the log has not one step')
  return only
}

const text = (content: string) => [{ type: 'text', text: content }]

t.test('a step as it goes on', async (t) => {
  const log = [
    stepStart(),
    chunk(1, 1, { type: 'block-start', index: 0, blockType: 'text' }),
    ...['', ' ', '\n', 'Hi'].map((fragment) => textToken(fragment)),
  ]
  t.match(step(...log.slice(0, 1)), { status: 'running', isVisible: false, blocks: [], startedAt: 1_001 })
  t.notOk(Object.hasOwn(step(...log.slice(0, 1)), 'deltas'), 'no token, no figure')
  t.match(step(...log.slice(0, 3)), { isVisible: false, deltas: 1, lastDeltaSeq: 2, firstToken: undefined })
  t.match(step(...log.slice(0, 4)), { isVisible: false, firstToken: { seq: 3, time: 1_004 }, firstVisible: undefined })
  t.match(step(...log), { isVisible: true, firstToken: { seq: 3 }, firstVisible: { seq: 5, time: 1_006 }, deltas: 4 })
  t.match(step(...log, message(text('Hi'), { usage: { outputTokens: 4 } })), {
    status: 'settled',
    isInterrupted: false,
    messageId: 'm1-1',
    messageSeq: 6,
    usage: { outputTokens: 4 },
    blocks: [{ type: 'text', index: 0, text: 'Hi' }],
  })
})

t.test('a tool call shows once it has a name; its name is a first token', async (t) => {
  t.match(step(stepStart(), callToken('a', undefined, '')), { isVisible: false, firstToken: undefined, deltas: 1 })
  const named = step(stepStart(), ...['', '{', '}'].map((args) => callToken('a', 'write', args)))
  t.match(named, { isVisible: true, firstToken: { seq: 1 }, firstVisible: undefined, deltas: 3, lastDeltaSeq: 3 })
})

t.test('a retry clears what came, hides the step, and keeps the first token', async (t) => {
  const failed = [stepStart(), textToken('half'), chunk(1, 1, { type: 'usage', usage: { outputTokens: 1 } }), retry(1)]
  t.match(step(...failed), {
    ...{ status: 'running', isVisible: false, blocks: [], firstToken: { seq: 1 }, firstVisible: undefined, deltas: 1 },
    ...{ retry: { seq: 3, retry: 1, maxRetries: 3, delayMs: 10, failure: { code: 'rate' } }, usage: undefined },
  })
  t.match(step(...failed, textToken('whole')), {
    ...{ isVisible: true, firstToken: { seq: 1 }, firstVisible: { seq: 4 }, deltas: 2 },
    blocks: [{ text: 'whole' }],
  })
})

t.test('how a step ends', async (t) => {
  const begun = [stepStart(), textToken('half')]
  t.match(step(...begun, stepEnd()), { status: 'closed', isInterrupted: true, blocks: [{ text: 'half' }] })
  t.match(step(...begun, turnEnd()), { status: 'closed', isInterrupted: true, blocks: [{ text: 'half' }] })
  t.match(step(...begun, turnEnd(2)), { status: 'running' }, 'another turn ends')
  t.match(step(stepStart(), stepEnd()), { status: 'closed', isInterrupted: false, isVisible: false }, 'nothing came')
  t.match(step(stepStart(), retry(1), stepEnd()), { status: 'closed', isInterrupted: true, isVisible: false })
  t.match(step(...begun, message(text('half'), { interrupted: true })), { status: 'settled', isInterrupted: true })
  t.match(step(...begun, stepEnd(), message(text('late'))), { status: 'settled', isInterrupted: false })
  const settled = step(...begun, message(text('whole')), stepEnd(), textToken('late'), turnEnd())
  t.match(settled, { status: 'settled', isInterrupted: false, deltas: 1, blocks: [{ text: 'whole' }] })
})

t.test('a message without tokens gives blocks and no figures', async (t) => {
  const settled = step(
    stepStart(),
    message([...text('all'), { type: 'tool-call', id: 'a', name: 'w', arguments: '{}' }]),
  )
  t.match(settled, { isVisible: true, firstVisible: { seq: 1 }, blocks: [{ text: 'all' }, { callId: 'a' }] })
  for (const name of ['deltas', 'lastDeltaSeq', 'firstToken']) t.notOk(Object.hasOwn(settled, name), name)
  t.match(step(stepStart(), message('plain text')), { blocks: [{ type: 'text', text: 'plain text' }] })
  t.match(step(stepStart(), textToken('kept'), message(null)), { blocks: [{ text: 'kept' }], status: 'settled' })
})

t.test('a replacement of what the model is shown is no answer', async (t) => {
  const copy: EventBody = { ...message(text('summary')), surfaceOp: { op: 'replace', start: 2, end: 2 } }
  t.match(step(stepStart(), textToken('a'), message(text('a')), copy), { blocks: [{ text: 'a' }], messageSeq: 2 })
})

t.test('an answer stands at its first sign, since harnesses start the step before they log the question', async (t) => {
  const log = logOf([turnStart(), stepStart(), question('?'), textToken('a'), message(text('a')), turnEnd()])
  for (const [events, order] of [
    [3, ['assistant', 'turn-tail', 'user']],
    [4, ['user', 'assistant', 'turn-tail']],
    [6, ['user', 'assistant', 'turn-tail']],
  ] as const) {
    const assembler = new ConversationAssembler(CONVERSATION)
    assembler.apply({ type: 'append', entries: packEvents(log.slice(0, events)) })
    t.same(
      assembler.view('chat').map(({ kind }) => kind),
      order,
      `${events} events`,
    )
  }
  const paged = new ConversationAssembler(CONVERSATION)
  paged.apply({ type: 'append', entries: packEvents(log.slice(2)) })
  const before = paged.view('chat').map(({ id, kind }) => [kind, id])
  paged.apply({ type: 'prepend', entries: packEvents(log.slice(0, 2)), from: 0, hasMore: false })
  t.same(
    paged.view('chat').map(({ id, kind }) => [kind, id]),
    before,
    'an older page moves nothing, and names nothing anew',
  )
})

t.test('a message of no step is an answer of its own', async (t) => {
  const bare: EventBody = {
    type: 'assistant/message',
    data: { message: { role: 'assistant', content: text('hi'), id: 'm' } },
    surfaceOp: 'append',
  }
  const said = step(bare)
  t.match(said, { seq: 0, status: 'settled', isVisible: true, blocks: [{ text: 'hi' }], messageId: 'm', messageSeq: 0 })
  t.notOk(Object.hasOwn(said, 'turn'))
  t.notOk(Object.hasOwn(said, 'startedAt'))
})

t.test('what a block-end brings is visible then', async (t) => {
  const ended = chunk(1, 1, { type: 'block-end', index: 0, block: { type: 'text', text: 'all at once' } })
  t.match(step(stepStart(), ended), { isVisible: true, firstVisible: { seq: 1 }, deltas: undefined })
})

/** The same figures, computed in the plainest way from single events. */
function figuresOf(events: readonly SessionEvent[], turn: number, number: number) {
  let deltas = 0
  let lastDeltaSeq: number | undefined
  let firstToken: number | undefined
  let firstVisible: number | undefined
  let seen = ''
  let isSettled = false
  for (const { type, seq, data } of events) {
    const fields = data as { turn?: number; step?: number; chunk?: { [key: string]: string }; message?: unknown }
    if (fields.turn !== turn || fields.step !== number || isSettled) continue
    if (type === 'llm/retry') {
      seen = ''
      firstVisible = undefined
    }
    if (type === 'assistant/message') {
      firstVisible ??= seq
      isSettled = true
    }
    if (type !== 'assistant/chunk') continue
    const { text = '', argumentsDelta = '', name = '' } = fields.chunk ?? {}
    deltas++
    lastDeltaSeq = seq
    if (text !== '' || argumentsDelta !== '' || name !== '') firstToken ??= seq
    seen += text
    if (seen.trim() !== '') firstVisible ??= seq
  }
  return { deltas, lastDeltaSeq, firstToken, firstVisible }
}

t.test('the figures are those of a plain count', async () => {
  fc.assert(
    fc.property(orderlyLog, (events) => {
      for (const step of stepsOf(events)) {
        const { deltas, lastDeltaSeq, firstToken, firstVisible } = step
        const told = { deltas, lastDeltaSeq, firstToken: firstToken?.seq, firstVisible: firstVisible?.seq }
        const plain = figuresOf(events, step.turn as number, step.step as number)
        if (JSON.stringify(told) !== JSON.stringify(plain)) throw new Error(`${JSON.stringify({ told, plain })}`)
        for (const moment of [firstToken, firstVisible]) {
          if (moment && events[moment.seq]?.time !== moment.time) throw new Error(`the time of ${moment.seq}`)
        }
      }
    }),
    inTime(1000),
  )
})
