// The session log that is exported: the header as it was given, rows in storage form or every event on its own line.

import { join } from 'node:path'
import t from 'tap'
import { decodeSessionLog } from '../../codec/index.ts'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import {
  assistantMessage,
  bodyOfEvents,
  bytesOf,
  collect,
  linesOf,
  textDelta,
  textDeltas,
  userMessage,
} from '../support/logs.ts'

const store = await openSqliteStore(join(t.testdir(), 'export.db'))
t.teardown(() => store.close())
const history = new History(store)

const CALLS = ['{"a', '":', '1}'].map((argumentsDelta, at) => ({
  type: 'assistant/chunk',
  seq: 5 + at,
  time: 1_785_000_000_000 - at,
  data: { turn: 0, step: 0, chunk: { type: 'tool-call-delta', index: 1, id: 'c1', name: 'bash', argumentsDelta } },
}))
const EVENTS = [userMessage(0), ...textDeltas(1, 5), ...CALLS, assistantMessage(8, [1, 5]), textDelta(9), textDelta(10)]
const FIELDS = '{"cwd":"/tmp","createdAt":5,"agentPreset":{"b":1.0},"__proto__":1}'
const HEADER =
  '{"type":"session","version":0,"id":"s","createdAt":5,"cwd":"/tmp","agentPreset":{"b":1.0},"__proto__":1}'

async function exported(id: string, layout: 'packed' | 'events'): Promise<string> {
  return collect((await history.exportLog(id, { layout })).bytes())
}

t.test('rows are in storage form, events verbatim', async (t) => {
  await history.create('s', FIELDS)
  await history.append('s', bodyOfEvents(EVENTS), {})
  const lines = EVENTS.map((event) => JSON.stringify(event))
  t.strictSame(linesOf(await exported('s', 'packed')), [
    HEADER,
    lines[0],
    '{"type":"text-chunks","seq0":1,"time0":1785000000001,"data":{"turn":0,"step":0,"index":0,"dt":[1,1,1],"texts":["x","x","x","x"]}}',
    '{"type":"tool-call-chunks","seq0":5,"time0":1785000000000,"data":{"turn":0,"step":0,"index":1,"id":"c1","name":"bash","dt":[-1,-1],"args":["{\\"a","\\":","1}"]}}',
    ...lines.slice(8),
  ])
  t.strictSame(linesOf(await exported('s', 'events')), [HEADER, ...lines])
  t.match(await history.exportLog('s', { layout: 'packed' }), { head: 10, to: 11 })
})

t.test('the codec reads it, whichever layout', async (t) => {
  for (const layout of ['packed', 'events'] as const) {
    const { header, items } = decodeSessionLog(await exported('s', layout))
    t.equal(header.text, HEADER)
    t.equal(items.length, layout === 'packed' ? 6 : 11)
  }
})

t.test('an empty session is its header', async (t) => {
  await history.create('empty', '{"createdAt":-5}')
  t.equal(await exported('empty', 'packed'), '{"type":"session","version":0,"id":"empty","createdAt":-5}\n')
})

t.test('a header that came in a file goes out as it came', async (t) => {
  const header = '{"createdAt":5,"version":0,"x":{"b":1e0},"id":"own-order","type":"session","parentSession":"p"}'
  async function* file(): AsyncGenerator<Uint8Array> {
    yield bytesOf(`${header.replaceAll(',', ' , ')}\n${JSON.stringify(userMessage(0))}\n`)
  }
  await history.importLog(file(), {})
  t.strictSame(linesOf(await exported('own-order', 'packed')), [header, JSON.stringify(userMessage(0))])
  t.match(await history.create('own-order', '{"x":{"b":1e0}}'), { created: false, session: { parentSession: 'p' } })
})

t.test('an export is of the log as it stood when it began', async (t) => {
  await history.create('moving', '{"createdAt":1}')
  const text = 'x'.repeat(100_000)
  await history.append('moving', bodyOfEvents([0, 1, 2, 3, 4].map((seq) => ({ ...userMessage(seq), data: text }))), {})
  const body = (await history.exportLog('moving', { layout: 'packed' })).bytes()
  const first = await body.next()
  await history.append('moving', bodyOfEvents([userMessage(5)]), {})
  const whole = linesOf(Buffer.from(first.value ?? []).toString() + (await collect(body)))
  t.equal(whole.length, 6)
})
