// Pages: which range they are, what their body is in each mode and media type, and how little they read for it.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import type { ChunksMode } from '../../codec/index.ts'
import type { HistoryStore, ReadOptions, StoredRecord } from '../../src/history/index.ts'
import { History, Page } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { logEvents } from '../support/arbitraries.ts'
import {
  assistantMessage,
  bodyOfEvents,
  collect,
  linesOf,
  messagesLog,
  pageText,
  recordsOf,
  textDeltas,
  userMessage,
} from '../support/logs.ts'

const SEED = 99
const MODES: readonly ChunksMode[] = ['packed', 'expanded', 'omit']

const store = await openSqliteStore(join(t.testdir(), 'pages.db'))
t.teardown(() => store.close())
const history = new History(store)
let ids = 0

async function stored(events: Parameters<typeof bodyOfEvents>[0]): Promise<string> {
  const id = `s${ids++}`
  await history.create(id, undefined)
  await history.append(id, bodyOfEvents(events), {})
  return id
}

interface Read {
  from: number
  to: number
  options: ReadOptions
  records: readonly StoredRecord[]
}

type ReadOf = HistoryStore['read']

/** The same store with another way to read. */
function reading(read: ReadOf): HistoryStore {
  return new Proxy(store, {
    get(target, name: keyof HistoryStore) {
      return name === 'read' ? read : target[name].bind(target)
    },
  })
}

/** The same store, which notes what is read of it. */
function watched(): { store: HistoryStore; reads: Read[] } {
  const reads: Read[] = []
  const read: ReadOf = async (log, from, to, options) => {
    const records = await store.read(log, from, to, options)
    reads.push({ from, to, options, records })
    return records
  }
  return { store: reading(read), reads }
}

t.test('the JSON document holds the same records', async () => {
  await fc.assert(
    fc.asyncProperty(logEvents, fc.nat(), fc.nat(), fc.constantFrom(...MODES), async (events, one, other, chunks) => {
      const id = await stored(events)
      const [fromSeq, toSeq] = [one, other].map((seq) => seq % (events.length + 1)).sort((a, b) => a - b)
      const page = await history.range({ id }, { fromSeq, toSeq, chunks })
      const lines = linesOf(await collect(page.bytes('ndjson')))
      const head = { epoch: page.epoch, from: page.from, to: page.to, hasMore: page.from > 0 }
      assert.equal(
        await collect(page.bytes('json')),
        `${JSON.stringify(head).slice(0, -1)},"records":[${lines.join(',')}]}\n`,
      )
    }),
    { seed: SEED, numRuns: 100, interruptAfterTimeLimit: 2_000, markInterruptAsFailure: false },
  )
})

t.test('an empty page is whole, in both media types', async (t) => {
  const id = await stored([])
  for (const chunks of MODES) {
    const page = await history.page({ id }, { maxMessages: 50, chunks })
    t.match(page, { from: 0, to: 0, hasMore: false, head: -1, fixed: false })
    t.equal(await collect(page.bytes('ndjson')), '')
    t.strictSame(JSON.parse(await collect(page.bytes('json'))), {
      epoch: page.epoch,
      from: 0,
      to: 0,
      hasMore: false,
      records: [],
    })
  }
})

t.test('cursors name the range; beyond the log they are refused with the head', async (t) => {
  const id = await stored(messagesLog(10))
  const { epoch } = await history.describe(id)
  const open = { head: 9, fixed: false }
  const fixed = { head: undefined, fixed: true }
  const table: [query: { beforeSeq?: number; throughSeq?: number; maxMessages?: number }, expected: object][] = [
    [{}, { from: 7, to: 10, hasMore: true, ...open }],
    [{ maxMessages: 500 }, { from: 0, to: 10, hasMore: false, ...open }],
    [{ maxMessages: 10 }, { from: 0, to: 10, hasMore: false, ...open }],
    [{ beforeSeq: 10 }, { from: 7, to: 10, ...fixed }],
    [{ beforeSeq: 4 }, { from: 1, to: 4, hasMore: true, ...fixed }],
    [{ beforeSeq: 3 }, { from: 0, to: 3, hasMore: false, ...fixed }],
    [{ beforeSeq: 0 }, { from: 0, to: 0, hasMore: false, ...fixed }],
    [{ throughSeq: -1 }, { from: 0, to: 0, hasMore: false, ...fixed }],
    [{ throughSeq: 9 }, { from: 7, to: 10, ...fixed }],
    [
      { throughSeq: 5, beforeSeq: 9 },
      { from: 3, to: 6, ...fixed },
    ],
    [
      { throughSeq: 9, beforeSeq: 5 },
      { from: 2, to: 5, ...fixed },
    ],
  ]
  for (const [query, expected] of table) {
    const page = await history.page({ id }, { maxMessages: 3, chunks: 'packed', ...query })
    t.match(page, { epoch, ...expected }, JSON.stringify(query))
  }
  const ahead = (path: string) => ({ code: 'history/ahead', facts: { path, head: 9, epoch } })
  const page = (query: object) => history.page({ id }, { maxMessages: 3, chunks: 'packed', ...query })
  await t.rejects(page({ beforeSeq: 11 }), ahead('beforeSeq'))
  await t.rejects(page({ throughSeq: 10 }), ahead('throughSeq'))
  await t.rejects(page({ throughSeq: 10, beforeSeq: 3 }), ahead('throughSeq'), 'case B12: never silently less')

  const ranges: [query: { fromSeq?: number; toSeq?: number }, expected: object][] = [
    [{}, { from: 0, to: 10, hasMore: false, ...open }],
    [{ fromSeq: 4 }, { from: 4, to: 10, hasMore: true, ...open }],
    [{ fromSeq: 10 }, { from: 10, to: 10, hasMore: true, ...open }],
    [{ toSeq: 10 }, { from: 0, to: 10, ...fixed }],
    [
      { fromSeq: 4, toSeq: 4 },
      { from: 4, to: 4, ...fixed },
    ],
    [{ toSeq: 0 }, { from: 0, to: 0, ...fixed }],
  ]
  const range = (query: object) => history.range({ id }, { chunks: 'packed', ...query })
  for (const [query, expected] of ranges) t.match(await range(query), expected, JSON.stringify(query))
  await t.rejects(range({ fromSeq: 11 }), ahead('fromSeq'))
  await t.rejects(range({ toSeq: 11 }), ahead('toSeq'))
  await t.rejects(range({ fromSeq: 5, toSeq: 4 }), { code: 'request/invalid', facts: { path: 'fromSeq' } })
  await t.rejects(page({ epoch: 'another' }), { code: 'session/replaced', facts: { epoch, head: 9 } })
})

t.test('the tag names the bytes: other bytes have another, and the same page the same for ever', async (t) => {
  const id = await stored(messagesLog(4))
  const tags = new Set<string>()
  const other = await stored(messagesLog(4))
  for (const each of [id, other]) {
    for (const chunks of MODES) {
      for (const beforeSeq of [3, 4]) {
        for (const maxMessages of [1, 2]) {
          const page = await history.page({ id: each }, { beforeSeq, maxMessages, chunks })
          tags.add(page.tag('ndjson'))
          tags.add(page.tag('json'))
        }
      }
    }
  }
  t.equal(tags.size, 2 * 3 * 2 * 2 * 2)
  const before = (await history.page({ id }, { beforeSeq: 4, maxMessages: 2, chunks: 'packed' })).tag('ndjson')
  await history.append(id, bodyOfEvents([userMessage(4)]), {})
  t.equal((await history.page({ id }, { beforeSeq: 4, maxMessages: 2, chunks: 'packed' })).tag('ndjson'), before)
})

t.test('a row is sliced at any two edges', async (t) => {
  const events = [userMessage(0), ...textDeltas(1, 9), userMessage(9), ...textDeltas(10, 15)]
  const id = await stored(events)
  for (let fromSeq = 0; fromSeq <= 15; fromSeq++) {
    for (let toSeq = fromSeq; toSeq <= 15; toSeq++) {
      for (const chunks of MODES) {
        const page = await history.range({ id }, { fromSeq, toSeq, chunks })
        assert.equal(await collect(page.bytes('ndjson')), pageText(events, fromSeq, toSeq, chunks))
      }
    }
  }
  t.pass()
})

t.test('omit leaves out the chunks of the page’s own messages, and reads no line of them', async (t) => {
  const tool = {
    type: 'tool/result',
    seq: 12,
    time: 1,
    data: { message: { content: 'r' } },
    surfaceOp: 'append' as const,
  }
  const start = { type: 'block-start', index: 0, blockType: 'text' }
  const block = { type: 'assistant/chunk', seq: 13, time: 13, data: { turn: 0, step: 0, chunk: start } }
  const events = [
    ...textDeltas(0, 3),
    userMessage(3),
    ...textDeltas(4, 12),
    tool,
    block,
    assistantMessage(14, [5, 13]),
    ...textDeltas(15, 20),
  ]
  const id = await stored(events)
  const seen = watched()
  const page = await new History(seen.store).range({ id }, { chunks: 'omit' })
  const text = await collect(page.bytes('ndjson'))
  t.equal(text, pageText(events, 0, 20, 'omit'))
  t.strictSame(
    recordsOf(text).map(({ type, event }) => [type, event.seq]),
    [
      ['chunks', 0],
      ['event', 3],
      ['event', 4],
      ['omitted', 5],
      ['event', 12],
      ['omitted', 13],
      ['event', 14],
      ['chunks', 15],
    ],
  )
  for (const { options, records, from, to } of seen.reads) {
    for (const { kind, line, first, last } of records) {
      const inside = first >= from && last < to
      if (!options.chunkLines && inside) t.equal(line === undefined, kind !== 'event', `record ${first}`)
    }
  }
  // A page that ends inside the group knows nothing of its message, and sends the tokens.
  const cut = await history.page({ id }, { beforeSeq: 13, maxMessages: 1, chunks: 'omit' })
  t.equal(await collect(cut.bytes('ndjson')), pageText(events, 3, 13, 'omit'))
})

t.test(
  'a body is pulled: nothing is read before it is asked for, little at first, nothing after it is left',
  async (t) => {
    const text = 'x'.repeat(10_000)
    const id = await stored(messagesLog(200).map((event) => ({ ...event, data: { content: text } })))
    for (const chunks of MODES) {
      const seen = watched()
      const page = await new History(seen.store).page({ id }, { maxMessages: 150, chunks })
      const body = page.bytes('ndjson')
      t.equal(seen.reads.length, 0)
      await body.next()
      t.equal(seen.reads.length, 1)
      t.ok((seen.reads[0]?.options.maxBytes ?? 0) <= 16 * 1024, 'the first line leaves at once')
      await body.next()
      t.equal(seen.reads.length, 2)
      await body.return(undefined)
      t.equal((await body.next()).done, true)
      t.equal(seen.reads.length, 2)
    }
  },
)

t.test('lines before a huge event leave without it', async (t) => {
  // Case A12.
  const text = 'x'.repeat(20_000)
  const events = [{ ...userMessage(0), data: text }, { ...userMessage(1), data: 'x'.repeat(5_000_000) }, userMessage(2)]
  const id = await stored(events)
  for (const chunks of MODES) {
    const body = (await history.range({ id }, { chunks })).bytes('ndjson')
    const first = await body.next()
    t.equal(Buffer.from(first.value ?? []).toString(), pageText(events, 0, 1, chunks))
    t.ok((await collect(body)) === pageText(events, 1, 3, chunks))
  }
})

t.test('a page over a store that gives no record fails instead of turning for ever', async (t) => {
  const id = await stored(messagesLog(3))
  const session = await history.describe(id)
  const silent = reading(async () => [])
  for (const chunks of MODES) {
    const page = new Page(silent, session, { from: 0, to: 3, fixed: true, chunks })
    await t.rejects(collect(page.bytes('ndjson')), /no record/)
  }
})
