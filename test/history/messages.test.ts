// The model-visible surface: operations folded in order, messages as they were sent, batches that join.

import { join } from 'node:path'
import t from 'tap'
import type { SessionEvent } from '../../codec/index.ts'
import { foldSurface } from '../../codec/index.ts'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { bodyOf, bodyOfEvents, collect, linesOf, messagesLog, textDeltas, userMessage } from '../support/logs.ts'

const store = await openSqliteStore(join(t.testdir(), 'messages.db'))
t.teardown(() => store.close())
const history = new History(store)

async function surface(id: string): Promise<string[]> {
  const stream = await history.messages({ id }, {})
  return linesOf(await collect(stream.bytes()))
}

t.test('a message is the text that was sent, wherever the event keeps it', async (t) => {
  await history.create('texts', undefined)
  const on = '"surfaceOp":"append"'
  const lines = [
    `{"type":"user/message",${on},"data":{"b":1.0,"2":1e400,"content":"é\\u00e9"}}`,
    `{"type":"user/message",${on},"data":{"message":{"x":-0},"other":1}}`,
    `{"type":"user/message",${on},"data":{"message":"text"}}`,
    `{"type":"user/message",${on},"data":"plain"}`,
    `{"type":"user/message",${on},"data":{"message":{"a":1},"message":{"a":2}}}`,
    `{"type":"assistant/message",${on},"data":{"message":{"content":[{"type":"text"}],"n":9007199254740993}}}`,
    `{"type":"assistant/message",${on},"data":{"message":{"content":[]}}}`,
    `{"type":"assistant/message",${on},"data":{"message":{"content":""}}}`,
    `{"type":"assistant/message",${on},"data":{"message":{"content":null}}}`,
    `{"type":"assistant/message",${on},"data":{"message":{}}}`,
    `{"type":"assistant/message",${on},"data":{}}`,
    `{"type":"tool/result",${on},"data":{"turn":0,"message":{"content":[]},"error":null}}`,
    `{"type":"tool/result",${on},"data":{"turn":0}}`,
    '{"type":"user/message","data":{"content":"not on the surface"}}',
  ]
  await history.append('texts', bodyOf(...lines), {})
  t.strictSame(await surface('texts'), [
    '{"seq":0,"message":{"b":1.0,"2":1e400,"content":"é\\u00e9"}}',
    '{"seq":1,"message":{"x":-0}}',
    '{"seq":2,"message":{"message":"text"}}',
    '{"seq":3,"message":"plain"}',
    '{"seq":4,"message":{"a":2}}',
    '{"seq":5,"message":{"content":[{"type":"text"}],"n":9007199254740993}}',
    '{"seq":11,"message":{"content":[]}}',
    '{"seq":12,"message":{"turn":0}}',
  ])
})

t.test('a surface larger than a batch is told whole and in its order', async (t) => {
  await history.create('large', undefined)
  const text = 'x'.repeat(30_000)
  const filled = (event: SessionEvent): SessionEvent => ({ ...event, data: { content: `${event.seq} ${text}` } })
  const replace = (seq: number, start: number, end: number): SessionEvent =>
    filled({ ...userMessage(seq), surfaceOp: { op: 'replace', start, end } })
  const events = [
    ...messagesLog(60).map(filled),
    ...textDeltas(60, 70),
    replace(70, 3, 20),
    filled(userMessage(71)),
    replace(72, 70, 25),
  ]
  await history.append('large', bodyOfEvents(events), {})
  t.strictSame(
    await surface('large'),
    foldSurface(events).map(({ seq, message }) => JSON.stringify({ seq, message })),
  )
  const stream = await history.messages({ id: 'large' }, {})
  t.match(stream, { head: 72, to: 73 })
})

t.test('what is appended while it is told changes nothing of it', async (t) => {
  await history.create('moving', undefined)
  const text = 'x'.repeat(100_000)
  const events = messagesLog(9).map((event) => ({ ...event, data: { content: text } }))
  await history.append('moving', bodyOfEvents(events), {})
  const body = (await history.messages({ id: 'moving' }, {})).bytes()
  const first = await body.next()
  await history.append(
    'moving',
    bodyOfEvents([{ ...userMessage(9), surfaceOp: { op: 'replace', start: 0, end: 8 } }]),
    {},
  )
  const told = linesOf(Buffer.from(first.value ?? []).toString() + (await collect(body)))
  t.strictSame(
    told.map((line) => JSON.parse(line).seq),
    [0, 1, 2, 3, 4, 5, 6, 7, 8],
  )
  t.strictSame(
    (await surface('moving')).map((line) => JSON.parse(line).seq),
    [9],
  )
})

t.test('no message, no line', async (t) => {
  await history.create('none', undefined)
  t.strictSame(await surface('none'), [])
  await history.append('none', bodyOfEvents(textDeltas(0, 5)), {})
  t.strictSame(await surface('none'), [])
})
