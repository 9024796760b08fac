// The bench's figures mean nothing unless its fixtures are what they say: exact counts, the same bytes on every machine,
// logs that the codec reads, and records that come out as the packing rules have it.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import t from 'tap'
import type { LogHeader, LogPiece } from '../../bench/fixtures/index.ts'
import {
  DEMO_FILE,
  demoSessionLog,
  eventsOf,
  HEAVY_PAGE,
  HUGE_PAGE,
  heavyPageHeader,
  heavyPagePieces,
  hugePageHeader,
  hugePagePieces,
  isRun,
  LONG_SESSION,
  logBytes,
  logLines,
  longSessionHeader,
  longSessionPieces,
} from '../../bench/fixtures/index.ts'
import type { SessionEvent } from '../../codec/index.ts'
import {
  decodeSessionLog,
  decodeStorageRecord,
  encodeRecords,
  foldSurface,
  groupStart,
  isMessage,
  packEvents,
  parseHeaderLine,
  recordRange,
} from '../../codec/index.ts'

for (const flavour of ['short', 'words'] as const) {
  t.test(`the page of 416,756 events, ${flavour}: exact counts`, async (t) => {
    const runs: number[] = []
    let ordinary = 0
    for (const piece of hugePagePieces(flavour)) {
      if (isRun(piece)) runs.push(piece.fragments.length)
      else ordinary++
    }
    t.equal(ordinary, HUGE_PAGE.ordinary)
    t.equal(runs.length, HUGE_PAGE.runs)
    t.same([...new Set(runs)].sort(), [3587, 3588])

    const events = [...eventsOf(hugePagePieces(flavour))]
    t.equal(events.length, HUGE_PAGE.events)
    t.equal(events.filter(isDelta).length, HUGE_PAGE.deltas)
    t.equal(events.filter(isMessage).length, HUGE_PAGE.messages)
    t.ok(isMessage(events[0]!), 'the page of all messages begins with the session')
    t.ok(
      events.every((event, place) => event.seq === place),
      'seqs without a hole',
    )

    const records = packEvents(events)
    t.equal(records.length, HUGE_PAGE.records)
    t.equal(records.filter((record) => record.type === 'chunks').length, HUGE_PAGE.runs)
    t.equal(foldSurface(events).filter(({ type }) => type !== 'tool/result').length, HUGE_PAGE.messages)
  })
}

t.test('the page of words is as large as the real one', async (t) => {
  const events = [...eventsOf(hugePagePieces('words'))]
  t.ok(within(Buffer.byteLength(encodeRecords(packEvents(events))), 6_362_724, 0.02), 'packed')
  let raw = 0
  for (const event of events) raw += Buffer.byteLength(JSON.stringify(event)) + 1
  t.ok(within(raw, 69_433_638, 0.02), 'raw')
})

t.test('the heavy page: 26,562 chunks, 50 messages, each settled by its message', async (t) => {
  for (const sources of ['all', 'edges'] as const) {
    const events = [...eventsOf(heavyPagePieces(sources))]
    const chunks = events.filter(({ type }) => type === 'assistant/chunk')
    t.equal(chunks.length, HEAVY_PAGE.chunks)
    const messages = events.filter(isMessage)
    t.equal(messages.length, HEAVY_PAGE.messages)
    t.equal(messages[0]?.seq, 0, 'the page of all messages begins with the session')

    const settled = new Set<number>()
    for (const message of messages) {
      for (let seq = groupStart(message.seq, message.sourceEventSeqs); seq < message.seq; seq++) settled.add(seq)
    }
    t.ok(
      chunks.every(({ seq }) => settled.has(seq)),
      `every chunk lies between a message and its group start (${sources})`,
    )
  }
  const named = [...eventsOf(heavyPagePieces('all'))].flatMap(({ type, sourceEventSeqs }) =>
    type === 'assistant/message' ? (sourceEventSeqs ?? []) : [],
  )
  t.equal(named.length, HEAVY_PAGE.chunks, 'the messages of `all` name each chunk once')
})

t.test('a long session has whole turns of 500 events and five messages, whatever its length', async (t) => {
  const events = [...eventsOf(longSessionPieces(10_000))]
  t.equal(events.length, 10_000)
  for (let start = 0; start < events.length; start += LONG_SESSION.eventsOfTurn) {
    const turn = events.slice(start, start + LONG_SESSION.eventsOfTurn)
    t.equal(turn.filter(isMessage).length, LONG_SESSION.messagesOfTurn)
    t.equal(turn.at(-1)?.type, 'turn/end')
  }
  t.throws(() => [...longSessionPieces(10_001)], { message: /whole turns/ })
})

const logs: readonly [string, LogHeader, () => Iterable<LogPiece>, string][] = [
  ['huge, short', hugePageHeader('huge'), () => hugePagePieces('short'), 'c415ff8ea24427b8'],
  ['huge, words', hugePageHeader('huge'), () => hugePagePieces('words'), '0357f0075eae891f'],
  ['heavy', heavyPageHeader('heavy'), () => heavyPagePieces('all'), 'd84106e3248ada6d'],
  ['long', longSessionHeader('long'), () => longSessionPieces(10_000), 'f1fc97daca41be5d'],
]

for (const [name, header, pieces, hash] of logs) {
  t.test(`${name}: the same bytes on every machine`, async (t) => {
    const digest = createHash('sha256')
    for (const bytes of logBytes(header, pieces(), 'packed')) digest.update(bytes)
    t.equal(digest.digest('hex').slice(0, 16), hash)
  })

  t.test(`${name}: a log that the codec reads, gapless`, async (t) => {
    let next = 0
    for (const [place, line] of [...logLines(header, pieces(), 'packed')].entries()) {
      if (place === 0) {
        parseHeaderLine(line)
        continue
      }
      const item = decodeStorageRecord(line)
      if (item.kind === 'event') {
        if (item.event.seq !== next++) t.fail(`line ${place + 1} has the seq ${item.event.seq}`)
      } else {
        const range = recordRange({ type: 'chunks', event: item.row })
        if (range.from !== next) t.fail(`line ${place + 1} begins with the seq ${range.from}`)
        next = range.to
      }
    }
    t.ok(next > 0)
  })
}

t.test('the packed layout and the one of events tell the same log', async (t) => {
  const rows = decodeSessionLog([...logLines(heavyPageHeader('heavy'), heavyPagePieces('all'), 'packed')].join('\n'))
  const records = packEvents(eventsOf(heavyPagePieces('all')))
  t.same(
    rows.items.map((item) => (item.kind === 'row' ? item.row : JSON.parse(item.event.text))),
    records.map(({ event }) => event),
  )
  const lines = [...logLines(heavyPageHeader('heavy'), heavyPagePieces('all'), 'events')].slice(1)
  t.same(
    lines.map((line) => JSON.parse(line)),
    [...eventsOf(heavyPagePieces('all'))],
  )
})

t.test('the demo session is what its generator writes, and small', async (t) => {
  const text = readFileSync(DEMO_FILE, 'utf8')
  t.equal(text, demoSessionLog())
  const { header, items } = decodeSessionLog(text)
  t.equal(header.id, 'demo')
  t.ok(items.length < 60)
  t.equal(items.filter((item) => item.kind === 'row').length, 6)
})

function isDelta(event: SessionEvent): boolean {
  return event.type === 'assistant/chunk' && /"chunk":\{"type":"[a-z-]+-delta"/.test(JSON.stringify(event.data))
}

function within(value: number, expected: number, part: number): boolean {
  return Math.abs(value - expected) <= expected * part
}
