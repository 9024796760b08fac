import { readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Test } from 'tap'
import t from 'tap'
import type { SessionEvent, SessionHistoryRecord } from '../../../codec/index.ts'
import { decodeSessionLog, expandRecord, packEvents } from '../../../codec/index.ts'
import type { ChatItem, ConversationOptions, Definition, HistoryPage, ItemView } from '../../../src/client/index.ts'
import { CONVERSATION, ConversationAssembler, HistoryClient, userMessage } from '../../../src/client/index.ts'
import type { EventBody } from '../../support/conversations.ts'
import {
  logOf,
  message,
  question,
  single,
  stepEnd,
  stepStart,
  textToken,
  turnEnd,
  turnStart,
} from '../../support/conversations.ts'
import { startService, until } from '../../support/service.ts'
import { ModelService } from '../model-service.ts'
import { activeResources } from '../watching.ts'

/** A turn of one question and one answer of some tokens. */
function talk(turn: number, tokens: number): EventBody[] {
  const text = Array.from({ length: tokens }, (_, at) => `${turn}.${at} `)
  return [
    question(`question ${turn}`),
    turnStart(turn),
    stepStart(turn),
    ...text.map((token) => textToken(token, { turn })),
    message([{ type: 'text', text: text.join('') }], { turn }),
    stepEnd(turn),
    turnEnd(turn),
  ]
}

/** The bodies of a log with each message naming the tokens that made it. */
function settled(bodies: EventBody[]): EventBody[] {
  let tokens: number[] = []
  return bodies.map((body, seq) => {
    if (body.type === 'step/start') tokens = []
    if (body.type === 'assistant/chunk') tokens.push(seq)
    return body.type === 'assistant/message' ? { ...body, sourceEventSeqs: tokens } : body
  })
}

async function session(t: Test, ...bodies: EventBody[]) {
  const service = await startService(t)
  const client = new HistoryClient({ baseUrl: service.url, reconnect: { firstDelay: 1, longestDelay: 4 } })
  t.teardown(() => client.close())
  await service.append('s', bodies.length === 0 ? [question('first')] : bodies)
  const of = (options?: ConversationOptions<typeof CONVERSATION>) => {
    const conversation = client.session('s').conversation(options)
    t.teardown(() => conversation.close())
    return conversation
  }
  return { service, client, of, append: (...more: EventBody[]) => service.append('s', more) }
}

t.test('one call and one subscription are all that a user interface needs', async (t) => {
  const { of, append } = await session(t, ...talk(1, 5), ...talk(2, 5))
  const conversation = of()
  t.equal(conversation.status, 'connecting')
  t.same(conversation.view('chat'), [])
  let told = 0
  const leave = conversation.subscribe(() => told++)
  await until(() => conversation.status === 'live')
  t.ok(told > 0)
  t.equal(conversation.error, undefined)
  t.equal(conversation.hasMore, false)
  const before = conversation.view('chat')
  t.same(
    before.map(({ kind }) => kind),
    ['user', 'assistant', 'turn-tail', 'user', 'assistant', 'turn-tail'],
  )
  t.match(conversation.view('trajectory'), [{ kind: 'request' }, { kind: 'request' }])

  // B1: what was there stays, and there is exactly one answer more, growing.
  await append(...talk(3, 4).slice(0, 5))
  await until(() => conversation.view('chat').length === 9)
  const live = conversation.view('chat')
  t.ok(before.every((item, at) => item === live[at]))
  t.match(live[7], { kind: 'assistant', status: 'running', deltas: 2, blocks: [{ text: '3.0 3.1 ' }] })
  const atLeaving = told
  leave()
  leave()
  await append(...talk(3, 4).slice(5))
  await until(() => conversation.view('chat').length === 9 && conversation.view('chat')[7]?.kind === 'assistant')
  await until(() => JSON.stringify(conversation.view('chat')[7]).includes('"settled"'))
  t.equal(told, atLeaving, 'who has left hears nothing')
})

t.test('an open turn is known as soon as it is open', async (t) => {
  // B5: nothing has come of it yet.
  const { of } = await session(t, question('go'), turnStart(1), stepStart(1))
  const conversation = of()
  await until(() => conversation.status === 'live')
  t.match(conversation.view('chat'), [
    { kind: 'user' },
    { kind: 'assistant', status: 'running', isVisible: false, blocks: [] },
    { kind: 'turn-tail', status: 'open' },
  ])
})

t.test('a producer that dies leaves its part, and the next answer is another one', async (t) => {
  // B29
  const half = [question('go'), turnStart(1), stepStart(1), textToken('half an ans')]
  const { of, append } = await session(t, ...half)
  const conversation = of()
  await until(() => conversation.status === 'live')
  await append(turnEnd(1, 'crashed'), turnStart(2), stepStart(2), textToken('a new one', { turn: 2 }))
  await until(() => conversation.view('chat').length === 5)
  t.match(
    conversation.view('chat').filter(({ kind }) => kind === 'assistant'),
    [
      { turn: 1, status: 'closed', isInterrupted: true, blocks: [{ text: 'half an ans' }] },
      { turn: 2, status: 'running', blocks: [{ text: 'a new one' }] },
    ],
  )
})

t.test('older pages are in the views when loadOlder() has resolved', async (t) => {
  const bodies = [1, 2, 3, 4, 5].flatMap((turn) => talk(turn, 6))
  const { of, append } = await session(t, ...bodies)
  const conversation = of({ maxMessages: 2 })
  const early = of({ maxMessages: 2 })
  t.equal(await early.loadOlder(), true, 'it may be asked before the window is open')
  await conversation.ready()
  t.ok(conversation.hasMore)
  await append(...talk(6, 6))
  await until(() => conversation.view('chat').some((item) => item.kind === 'turn-tail' && item.turn === 6))
  let loads = 0
  for (let more = true; more; loads++) {
    const length = conversation.view('chat').length
    more = await conversation.loadOlder()
    t.ok(conversation.view('chat').length > length)
  }
  t.equal(loads, 4)
  t.equal(await conversation.loadOlder(), false)
  const whole = new ConversationAssembler(CONVERSATION)
  whole.apply({ type: 'append', entries: single(logOf([...bodies, ...talk(6, 6)])) })
  t.same(
    conversation.view('chat').map(({ kind, seq }) => [kind, seq]),
    whole.view('chat').map(({ kind, seq }) => [kind, seq]),
  )
})

t.test('older pages are in the views also when the newer ones cannot be followed any more', async (t) => {
  const events = logOf([1, 2, 3, 4, 5].flatMap((turn) => talk(turn, 6)))
  const service = await ModelService.start(t, {
    fault: ({ what, count }) => (what === 'follow' && count > 1 ? { status: 403, code: 'auth/forbidden' } : undefined),
  })
  service.append(...events)
  const client = new HistoryClient({ baseUrl: service.url, reconnect: { firstDelay: 1, longestDelay: 4 } })
  t.teardown(() => client.close())
  const conversation = client.session('s').conversation({ maxMessages: 2 })
  await conversation.ready()
  service.drop()
  await until(() => conversation.status === 'failed')
  let told = 0
  conversation.subscribe(() => told++)
  const before = conversation.view('chat').length
  const [first, second] = await Promise.all([conversation.loadOlder(), conversation.loadOlder()])
  t.strictSame([first, second, told], [true, true, 1], 'calls that overlap share one page')
  t.ok(conversation.view('chat').length > before)
  while (await conversation.loadOlder());
  const whole = new ConversationAssembler(CONVERSATION)
  whole.apply({ type: 'append', entries: single(events) })
  t.same(conversation.view('chat'), whole.view('chat'))
  t.match(conversation, { status: 'failed', error: { code: 'auth/forbidden' }, hasMore: false })
  conversation.close()
  await t.rejects(conversation.loadOlder(), { code: 'journal/closed' })
})

t.test('tokens that a message settles can be left out, and the views show what the message says', async (t) => {
  const bodies = settled([1, 2, 3, 4, 5, 6].flatMap((turn) => talk(turn, 6)))
  const cut = bodies.findIndex(({ data }) => (data as { content?: string }).content === 'question 6')
  const { client, of, append } = await session(t, ...bodies.slice(0, cut))
  const options = { chunks: 'omit', maxMessages: 2 } as const
  const target = client.session('s')
  const journal = target.journal(options)
  const assembler = new ConversationAssembler(CONVERSATION)
  const reading = (async () => {
    for await (const change of journal) assembler.apply(change)
  })()
  const recordsOf = async (page: HistoryPage) => {
    const records: SessionHistoryRecord[] = []
    for await (const record of page.records) records.push(record)
    return records
  }
  await until(() => journal.status === 'live')
  const opened = journal.from
  let pages = await recordsOf(await target.page(options))
  t.strictSame(journal.entries, pages)
  t.ok(pages.some(({ type }) => type === 'omitted'))

  // What is appended comes as it is appended: no message has settled it yet.
  await append(...bodies.slice(cut))
  await until(() => journal.to === bodies.length)
  const live = await recordsOf(await target.range({ fromSeq: cut, chunks: 'packed' }))
  await until(() => journal.entries.length === pages.length + live.length)
  while (journal.hasMore) {
    const { from } = journal
    await journal.loadOlder()
    pages = [...(await recordsOf(await target.page({ ...options, beforeSeq: from }))), ...pages]
  }
  t.ok(journal.from < opened)
  t.strictSame(journal.entries, [...pages, ...live])

  const [omitting, whole] = [of(options), of({ maxMessages: 500 })]
  await Promise.all([omitting.ready(), whole.ready()])
  while (await omitting.loadOlder());
  await until(() => assembler.view('chat').length === whole.view('chat').length)
  const shown = (items: readonly ChatItem[]) =>
    items.map((item) => (item.kind === 'assistant' ? [item.turn, item.status, item.blocks] : [item.seq, item.kind]))
  t.strictSame(shown(omitting.view('chat')), shown(whole.view('chat')))
  t.strictSame(shown(assembler.view('chat')), shown(whole.view('chat')))
  journal.close()
  await reading
})

t.test('views of one’s own', async (t) => {
  const { client } = await session(t, ...talk(1, 3))
  const conversation = client.session('s').conversation({ definitions: { asked: [userMessage] } })
  t.teardown(() => conversation.close())
  await until(() => conversation.status === 'live')
  t.match(conversation.view('asked'), [{ kind: 'user', message: { content: 'question 1' } }])
  t.throws(() => conversation.view('chat' as 'asked'), { name: 'TypeError', message: /"chat"/ })
  t.throws(() => client.session('s').conversation({ maxMessages: 0 }), { name: 'TypeError' })
  t.throws(() => client.session('s').conversation({ pages: 1 } as object), { name: 'TypeError' })
})

t.test('a deleted session is ended, a missing one failed, and the views stay', async (t) => {
  const { client, of } = await session(t, ...talk(1, 3))
  const conversation = of()
  await until(() => conversation.status === 'live')
  await client.sessions.delete('s')
  await until(() => conversation.status === 'ended')
  t.equal(conversation.view('chat').length, 3)
  const missing = of()
  await t.rejects(missing.ready(), { code: 'session/not-found' })
  t.equal(missing.status, 'failed')
  t.match(missing.error, { code: 'session/not-found' })
})

t.test('a definition that throws fails the conversation and closes the connection', async (t) => {
  const { client } = await session(t, ...talk(1, 3))
  const broken: Definition<null, ItemView> = {
    ...{ name: 'broken', initial: () => null, match: () => raise('broken'), start: () => {}, update: () => false },
    view: () => undefined,
  }
  const conversation = client.session('s').conversation({ definitions: { all: [broken] } })
  let told = 0
  conversation.subscribe(() => told++)
  await until(() => conversation.status === 'failed')
  t.match(conversation.error, { message: 'broken' })
  t.ok(told > 0, 'and it is told')
})

function raise(reason: string): never {
  throw new Error(reason)
}

t.test('a listener that throws holds up nobody, and is not swallowed', async (t) => {
  const { of } = await session(t, ...talk(1, 3))
  const conversation = of()
  const thrown: unknown[] = []
  process.setUncaughtExceptionCaptureCallback((error) => thrown.push(error))
  t.teardown(() => process.setUncaughtExceptionCaptureCallback(null))
  let told = 0
  const leave = conversation.subscribe(() => raise('listener'))
  conversation.subscribe(() => told++)
  await until(() => conversation.status === 'live')
  leave()
  await nextTurn()
  process.setUncaughtExceptionCaptureCallback(null)
  t.ok(told > 0)
  t.equal(thrown.length, told)
  t.match(thrown[0], { message: 'listener' })
})

t.test('who was unsubscribed by another listener is not called any more', async (t) => {
  const { of } = await session(t, ...talk(1, 3))
  const conversation = of()
  let told = 0
  const leave: (() => void)[] = []
  conversation.subscribe(() => leave[0]?.())
  leave.push(conversation.subscribe(() => told++))
  await conversation.ready()
  t.equal(told, 0)
})

t.test('closing leaves nothing, whenever it comes', async (t) => {
  const { service, client } = await session(t, ...talk(1, 3))
  const before = activeResources().length
  const stop = new AbortController()
  const conversations = [0, 1, 2].map(() => client.session('s').conversation({ signal: stop.signal }))
  conversations[0]?.close()
  await t.rejects(conversations[0]?.ready() as Promise<unknown>, { code: 'journal/closed' })
  await until(() => conversations[2]?.status === 'live')
  await t.rejects(conversations[0]?.loadOlder() as Promise<unknown>)
  conversations[1]?.[Symbol.dispose]()
  stop.abort()
  await client.close()
  await until(() => activeResources().length <= before)
  t.equal(service.log.length, 0)
})

t.test('a session as a harness wrote it folds alike in every form', async (t) => {
  // B2: a stored part first, then all of it again from the beginning, gives each text once.
  const events = await demoEvents()
  const viewsOf = (assembler: ConversationAssembler<typeof CONVERSATION>) => {
    return [assembler.view('chat'), assembler.view('trajectory')]
  }
  const packed = new ConversationAssembler(CONVERSATION)
  const from = { type: 'replace', from: 0, hasMore: false, reason: 'opened' } as const
  packed.apply({ ...from, entries: packEvents(events.slice(0, 40)) })
  packed.apply({ ...from, entries: packEvents(events) })
  const scalar = new ConversationAssembler(CONVERSATION)
  scalar.apply({ ...from, entries: single(events) })
  t.strictSame(viewsOf(packed), viewsOf(scalar))

  // Without their messages the steps hold what the tokens made: the text of the messages.
  const told = new ConversationAssembler(CONVERSATION)
  const unsettled = events.map((event): SessionEvent => {
    return event.type === 'assistant/message' ? { type: 'x', seq: event.seq, time: event.time, data: null } : event
  })
  told.apply({ ...from, entries: packEvents(unsettled) })
  const steps = packed.view('chat').filter((item) => item.kind === 'assistant')
  const partial = told.view('chat').filter((item) => item.kind === 'assistant')
  t.ok(steps.length > 1)
  t.ok(steps.every(({ status }) => status === 'settled'))
  t.strictSame(
    partial.map(({ blocks }) => blocks),
    steps.map(({ blocks }) => blocks),
  )
})

async function demoEvents(): Promise<SessionEvent[]> {
  const file = await readFile(new URL('../../../src/server/demo-session.jsonl', import.meta.url), 'utf8')
  return decodeSessionLog(file).items.flatMap((item): SessionEvent[] => {
    if (item.kind === 'event') return [JSON.parse(item.event.text)]
    return [...expandRecord({ type: 'chunks', event: item.row })]
  })
}
