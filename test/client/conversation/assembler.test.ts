import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import t from 'tap'
import type { SessionEvent, SessionHistoryRecord } from '../../../codec/index.ts'
import { packEvents } from '../../../codec/index.ts'
import type {
  AnyDefinition,
  ChatAssistantView,
  Definition,
  ItemView,
  JournalChange,
} from '../../../src/client/index.ts'
import { CONVERSATION, ConversationAssembler, ConversationError } from '../../../src/client/index.ts'
import { inTime } from '../../support/arbitraries.ts'
import {
  callToken,
  choices,
  disorderedLog,
  journalChanges,
  logOf,
  message,
  orderlyLog,
  question,
  single,
  stepEnd,
  stepStart,
  textToken,
  turnEnd,
  turnStart,
} from '../../support/conversations.ts'

function opened(entries: readonly SessionHistoryRecord[], from = 0): JournalChange {
  return { type: 'replace', entries, from, hasMore: from > 0, reason: 'opened' }
}

function assembled(...changes: JournalChange[]) {
  const assembler = new ConversationAssembler(CONVERSATION)
  for (const change of changes) assembler.apply(change)
  return assembler
}

function viewsOf(assembler: ConversationAssembler<typeof CONVERSATION>) {
  return { chat: assembler.view('chat'), trajectory: assembler.view('trajectory') }
}

function viewsOfAll(events: readonly SessionEvent[]) {
  return viewsOf(assembled(opened(single(events))))
}

for (const [name, log] of Object.entries({ disordered: disorderedLog, orderly: orderlyLog })) {
  t.test(`any way into the window ends in the same views: ${name} logs`, async () => {
    fc.assert(
      fc.property(log, choices, (events, numbers) => {
        const assembler = new ConversationAssembler(CONVERSATION)
        for (const change of journalChanges(events, numbers)) {
          assembler.apply(change)
          // Looking at a view in between changes nothing.
          if ((numbers[0] as number) % 2 === 0) viewsOf(assembler)
        }
        deepStrictEqual(viewsOf(assembler), viewsOfAll(events))
      }),
      inTime(2000),
    )
  })
}

t.test('at every moment the views are those of the window as it is', async () => {
  // Case B32: what was seen live is what a cold reading shows.
  fc.assert(
    fc.property(disorderedLog, choices, (events, numbers) => {
      const assembler = new ConversationAssembler(CONVERSATION)
      let from = 0
      let to = 0
      for (const change of journalChanges(events, numbers)) {
        assembler.apply(change)
        if (change.type === 'status' || change.type === 'compact') continue
        const count = change.entries.reduce((sum, entry) => sum + membersOf(entry), 0)
        if (change.type !== 'append') from = change.from
        if (change.type === 'replace') to = from
        if (change.type !== 'prepend') to += count
        const whole = assembled(opened(single(events.slice(from, to)), from))
        deepStrictEqual(viewsOf(assembler), viewsOf(whole))
      }
    }),
    inTime(300),
  )
})

function membersOf(entry: SessionHistoryRecord): number {
  return entry.type === 'chunks' ? entry.event.data.dt.length + 1 : 1
}

const LOG = logOf([
  question('first'),
  turnStart(1),
  stepStart(1, 1),
  ...'abc'.split('').map((text) => textToken(text)),
  message([{ type: 'text', text: 'abc' }]),
  stepEnd(1, 1),
  turnEnd(1),
  question('second'),
  turnStart(2),
  stepStart(2, 1),
  ...'defg'.split('').map((text) => textToken(text, { turn: 2 })),
])

t.test('what did not change is the same object, what changed is not', async (t) => {
  const assembler = assembled(opened(packEvents(LOG)))
  const before = assembler.view('chat')
  t.equal(assembler.view('chat'), before, 'a view that is asked for twice is the same')
  assembler.apply({ type: 'status', status: 'live' })
  t.equal(assembler.view('chat'), before, 'a status changes no view')

  const [next] = logOf([...LOG.map(({ type, data }) => ({ type, data })), textToken('h', { turn: 2 })]).slice(-1)
  assembler.apply({ type: 'append', entries: [{ type: 'event', event: next as SessionEvent }] })
  const after = assembler.view('chat')
  t.not(after, before)
  t.same(
    after.map((item, at) => item === before[at]),
    [true, true, true, true, false, true],
    'only the step that goes on is another',
  )
  const trajectory = assembler.view('trajectory')
  assembler.apply({
    type: 'append',
    entries: single([{ ...question('third'), seq: LOG.length + 1, time: 0 } as SessionEvent]),
  })
  t.equal(assembler.view('trajectory'), trajectory, 'a question is nothing to the trajectory')
})

t.test('an append costs what it changes, whatever the window holds', async (t) => {
  const costs = [10, 400].map((turns) => {
    const calls = { match: 0, update: 0, view: 0 }
    const counted = CONVERSATION.chat.map((definition): AnyDefinition => {
      return {
        name: definition.name,
        initial: definition.initial,
        start: definition.start as AnyDefinition['start'],
        match(event) {
          calls.match++
          return definition.match(event)
        },
        update(context, match) {
          calls.update++
          return (definition as AnyDefinition).update(context, match)
        },
        view(context) {
          calls.view++
          return (definition as AnyDefinition).view(context)
        },
      }
    })
    const window = Array.from({ length: turns }, (_, at) => {
      const place = { turn: at + 1 }
      return [turnStart(at + 1), stepStart(at + 1), textToken('x', place), message([], place), turnEnd(at + 1)]
    })
    const log = logOf([
      ...window.flat(),
      turnStart(9999),
      stepStart(9999),
      ...Array(20).fill(textToken('x', { turn: 9999 })),
    ])
    const assembler = new ConversationAssembler({ chat: counted })
    assembler.apply(opened(single(log.slice(0, -20))))
    assembler.view('chat')
    for (const name of ['match', 'update', 'view'] as const) calls[name] = 0
    for (const event of log.slice(-20)) {
      assembler.apply({ type: 'append', entries: single([event]) })
      assembler.view('chat')
    }
    return calls
  })
  t.strictSame(
    costs[0],
    { match: 80, update: 40, view: 21 },
    'each token is told to its step and its turn, and shown by its step',
  )
  t.strictSame(costs[1], costs[0])
})

t.test('a compacted run changes no view, before its start is there and after', async (t) => {
  const from = 4
  const assembler = assembled(opened(single(LOG.slice(from)), from))
  const before = viewsOf(assembler)
  const run = LOG.filter(({ seq }) => seq >= 12)
  assembler.apply({ type: 'compact', from: 12, to: 16, entries: packEvents(run) })
  t.equal(assembler.view('chat'), before.chat)
  assembler.apply({ type: 'prepend', entries: packEvents(LOG.slice(0, from)), from: 0, hasMore: false })
  t.strictSame(viewsOf(assembler), viewsOfAll(LOG))
})

t.test('each record is one input, whatever it stands for', async (t) => {
  const packed = packEvents(LOG)
  t.equal(packed.length, LOG.length - 2 - 3)
  t.equal(assembled(opened(packed)).inputs, packed.length)
})

t.test('a step whose start is not in the window is incomplete until it is', async (t) => {
  const assembler = assembled(opened(single(LOG.slice(4, 9)), 4))
  const [step] = assembler.view('chat')
  t.match(step, { kind: 'assistant', seq: 4, isComplete: false, status: 'settled', turn: 1, step: 1 })
  assembler.apply({ type: 'prepend', entries: single(LOG.slice(0, 4)), from: 0, hasMore: false })
  t.match(assembler.view('chat')[1], { kind: 'assistant', seq: 3, isComplete: true, startedAt: 1_003 })
})

t.test('a turn that ends after the page closes the steps of older pages', async (t) => {
  const log = logOf([turnStart(), stepStart(), textToken('a'), turnEnd(), question('next')])
  const assembler = assembled(opened(single(log.slice(3)), 3))
  assembler.apply({ type: 'prepend', entries: single(log.slice(0, 3)), from: 0, hasMore: false })
  t.match(assembler.view('chat')[0], { kind: 'assistant', status: 'closed', isInterrupted: true })
})

t.test('a turn that ends in the newest page closes steps that come with the third page back', async (t) => {
  const log = logOf([turnStart(), stepStart(), textToken('a'), turnEnd(), stepStart(2), turnEnd(2), question('next')])
  const assembler = assembled(opened(single(log.slice(6)), 6))
  for (const [from, to] of [
    [5, 6],
    [3, 5],
    [2, 3],
    [0, 2],
  ] as const) {
    assembler.apply({ type: 'prepend', entries: single(log.slice(from, to)), from, hasMore: from > 0 })
    t.strictSame(viewsOf(assembler), viewsOf(assembled(opened(single(log.slice(from)), from))))
  }
})

t.test('a second start of one id begins another step, and what comes then is of that one', async (t) => {
  const log = logOf([
    stepStart(),
    textToken('first'),
    stepStart(),
    textToken('second'),
    message([{ type: 'text', text: 'second' }]),
    turnEnd(),
  ])
  const steps = assembled(opened(single(log)))
    .view('chat')
    .filter(({ kind }) => kind === 'assistant')
  t.match(steps, [
    { seq: 1, status: 'running', blocks: [{ text: 'first' }] },
    { seq: 3, status: 'settled', blocks: [{ text: 'second' }] },
  ])
})

t.test('an omitted range is nothing but unknown figures', async (t) => {
  const tokens = 'abcde'.split('').map((text) => textToken(text))
  const log = logOf([
    turnStart(),
    stepStart(),
    ...tokens,
    message([{ type: 'text', text: 'abcde' }]),
    stepEnd(),
    turnEnd(),
  ])
  const omitted: SessionHistoryRecord[] = [
    ...single(log.slice(0, 2)),
    { type: 'omitted', event: { type: 'chunkrow/omitted', seq: 2, time: 1_003, data: { count: 5 } } },
    ...single(log.slice(7)),
  ]
  const whole = assembled(opened(single(log))).view('chat')[0]
  t.match(whole, { deltas: 5, lastDeltaSeq: 6, firstToken: { seq: 2 }, firstVisible: { seq: 2 } })
  for (const cut of [0, 1, 2, 3, 4]) {
    const from = omitted[cut]?.event.seq ?? 0
    const assembler = assembled(opened(omitted.slice(cut), from))
    if (cut > 0) assembler.apply({ type: 'prepend', entries: omitted.slice(0, cut), from: 0, hasMore: false })
    const [step, tail] = assembler.view('chat')
    const { deltas: _1, lastDeltaSeq: _2, firstToken: _3, firstVisible: _4, ...rest } = whole as ChatAssistantView
    // It stands at its first sign, which is its message here.
    t.strictSame(step, { ...rest, seq: 7 }, `cut at ${cut}`)
    t.notOk(Object.hasOwn(tail ?? {}, 'timeToFirstToken'))
    t.notOk(Object.hasOwn(tail ?? {}, 'tokensPerSecond'))
  }
})

t.test('changes that do not join are refused by name', async (t) => {
  const gap = { name: 'ConversationError', code: 'conversation/gap' }
  t.throws(() => assembled(opened(single(LOG.slice(0, 4))), { type: 'append', entries: single(LOG.slice(5)) }), gap)
  t.throws(() => assembled(opened(single(LOG.slice(0, 4))), { type: 'append', entries: single(LOG.slice(3)) }), gap)
  t.throws(() => assembled(opened(single([LOG[0], LOG[2]] as SessionEvent[]))), gap)
  const prepend = (entries: SessionEvent[], from: number): JournalChange => {
    return { type: 'prepend', entries: single(entries), from, hasMore: from > 0 }
  }
  t.throws(() => assembled(opened(single(LOG.slice(4)), 4), prepend(LOG.slice(0, 3), 0)), gap)
  t.throws(() => assembled(opened(single(LOG.slice(4)), 4), prepend(LOG.slice(1, 4), 0)), gap)
  const row = packEvents(LOG.slice(12))
  t.throws(() => assembled(opened(single(LOG)), { type: 'compact', from: 13, to: 16, entries: row }), gap)
  t.throws(() => assembled().view('other' as 'chat'), { name: 'TypeError', message: /"other".*chat,trajectory/ })
})

t.test('a row is no start, whatever a definition says', async (t) => {
  const definition: Definition<null, ItemView> = {
    name: 'eager',
    initial: () => null,
    match: () => ({ id: 'all', role: 'start' }),
    start: () => {},
    update: () => false,
    view: ({ firstSeq }) => ({ seq: firstSeq }),
  }
  const eager = new ConversationAssembler({ all: [definition] })
  eager.apply(opened(single(LOG.slice(0, 3))))
  t.same(eager.view('all'), [{ seq: 0 }, { seq: 1 }, { seq: 2 }])
  t.throws(() => eager.apply({ type: 'append', entries: packEvents(LOG.slice(3, 6)) }), ConversationError)
  t.throws(() => new ConversationAssembler({ all: [definition] }).apply(opened(packEvents(LOG.slice(12)), 12)), {
    code: 'conversation/packed-start',
    message: /eager.*12/,
  })
})

t.test('what is no match is refused, and a view that fails is made the next time', async (t) => {
  const log = logOf([question('a'), question('b'), question('c')])
  const definition: Definition<null, ItemView> = {
    name: 'own',
    initial: () => null,
    match: ({ seq }) => ({ id: `${seq}`, role: 'start' }),
    start: () => {},
    update: () => false,
    view: ({ firstSeq }) => ({ seq: firstSeq }),
  }
  for (const match of [
    { id: 'a', role: 'Start' },
    { role: 'update' },
    { group: 'g', role: 'start' },
    { id: 1, role: 'start' },
  ]) {
    const wrong = { ...definition, match: () => match } as unknown as Definition<null, ItemView>
    t.throws(() => new ConversationAssembler({ all: [wrong] }).apply(opened(single(log))), {
      code: 'conversation/bad-match',
    })
  }
  let fails = true
  const failing: typeof definition = {
    ...definition,
    view(context) {
      if (fails && context.id === '1') throw new Error('once')
      return definition.view(context)
    },
  }
  const assembler = new ConversationAssembler({ all: [failing] })
  assembler.apply(opened(single(log.slice(0, 2))))
  t.throws(() => assembler.view('all'), { message: 'once' })
  fails = false
  assembler.apply({ type: 'append', entries: single(log.slice(2)) })
  t.same(assembler.view('all'), [{ seq: 0 }, { seq: 1 }, { seq: 2 }])
})

t.test('what is no definition is refused', async (t) => {
  const make = (definitions: unknown) => () => new ConversationAssembler(definitions as typeof CONVERSATION)
  t.throws(make({ chat: 'assistant' }), { name: 'TypeError', message: /"chat" must be a list/ })
  t.throws(make({ chat: [undefined] }), { name: 'TypeError', message: /has no initial, match, start, update, view/ })
  t.throws(make({ chat: [{ ...CONVERSATION.chat[0], update: 1 }] }), { name: 'TypeError', message: /has no update$/ })
})

t.test('a definition that serves two views is folded once', async (t) => {
  let matched = 0
  const definition: Definition<null, ItemView> = {
    name: 'counting',
    initial: () => null,
    match: () => {
      matched++
      return null
    },
    start: () => {},
    update: () => false,
    view: () => undefined,
  }
  const assembler = new ConversationAssembler({ one: [definition], two: [definition] })
  assembler.apply(opened(single(LOG)))
  t.equal(matched, LOG.length)
  t.same(assembler.view('one'), [])
})

t.test('keys like __proto__ stay data', async (t) => {
  // Case E9.
  const data = JSON.parse(
    '{"turn":1,"step":1,"__proto__":{"polluted":true},"chunk":{"type":"usage","usage":{"__proto__":{"outputTokens":7}}}}',
  )
  const asked = JSON.parse('{"content":"x","__proto__":{"polluted":true}}')
  const log = logOf([
    { type: 'user/message', data: asked, surfaceOp: 'append' },
    { type: 'assistant/chunk', data },
    callToken('__proto__', 'constructor', '{'),
  ])
  const [user, step] = assembled(opened(single(log))).view('chat')
  t.equal(JSON.stringify((user as { message?: unknown }).message), JSON.stringify(asked))
  t.match(step, { blocks: [{ callId: '__proto__', name: 'constructor', argsRaw: '{' }] })
  t.equal(JSON.stringify((step as { usage?: unknown }).usage), '{"__proto__":{"outputTokens":7}}')
  t.equal(({} as { polluted?: unknown }).polluted, undefined)
})
