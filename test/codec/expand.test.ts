// Expanding: a row gives its events back exactly, whole or in part, and nothing comes of a malformed one.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { deltaOf, deltaText } from '../../codec/event.ts'
import { expandRecord, expandRecords, expandRowLines } from '../../codec/expand.ts'
import { packEvents } from '../../codec/pack.ts'
import { Problem } from '../../codec/problem.ts'
import type { ChunkRowEvent, SessionHistoryRecord } from '../../codec/record.ts'
import { eventRecordLine, rowFragments } from '../../codec/record.ts'
import { inTime, logEvents } from '../support/arbitraries.ts'

const FIXTURES = ['text-row', 'reasoning-row', 'tool-call-row', 'tool-call-row-unnamed']

/** The record of a fixture, and the texts of its members, which the slices of one member give. */
function fixture(name: string): { record: { type: 'chunks'; event: ChunkRowEvent }; texts: string[] } {
  const [first, ...rest] = readFileSync(new URL(`../fixtures/records/${name}.ndjson`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
  const texts: string[] = []
  for (const line of rest) {
    const { from, to, records } = JSON.parse(line)
    if (to === from + 1) texts.push(JSON.stringify(records[0].event))
  }
  return { record: JSON.parse(first!), texts }
}

t.test('a row expands to its events, key by key', (t) => {
  for (const name of FIXTURES) {
    const { record, texts } = fixture(name)
    t.equal(texts.length, rowFragments(record.event).length)
    t.strictSame(
      expandRecord(record).map((event) => JSON.stringify(event)),
      texts,
      name,
    )
    t.strictSame([...expandRowLines(record.event)], texts.map(eventRecordLine), name)
  }
  t.end()
})

t.test('the lines of any part are those of its members', (t) => {
  for (const name of FIXTURES) {
    const { record, texts } = fixture(name)
    const { seq } = record.event
    for (let from = -1; from <= texts.length + 1; from++) {
      for (let to = -1; to <= texts.length + 1; to++) {
        // Past the safe integers a sum is not the seq it should be.
        if (!Number.isSafeInteger(seq + Math.max(from, to))) continue
        const lines = [...expandRowLines(record.event, seq + from, seq + to)]
        const part = texts.slice(Math.max(0, from), Math.max(0, to)).map(eventRecordLine)
        t.strictSame(lines, part, `${name} ${from}..${to}`)
      }
    }
  }
  t.end()
})

t.test('lines are the one text of each delta', (t) => {
  fc.assert(
    fc.property(logEvents, (events) => {
      for (const record of packEvents(events)) {
        if (record.type !== 'chunks') continue
        const { seq } = record.event
        for (const [k, line] of [...expandRowLines(record.event)].entries()) {
          const event = events[seq + k]!
          const text = deltaText(deltaOf(event)!, event.seq, event.time)
          assert.equal(line, eventRecordLine(text))
        }
      }
    }),
    inTime(500),
  )
  t.end()
})

t.test('an event record is its event', (t) => {
  const record: SessionHistoryRecord = { type: 'event', event: { type: 'x', seq: 1, time: 2, data: { a: [1] } } }
  t.equal(expandRecord(record)[0], record.event)
  t.end()
})

t.test('an omitted range does not expand', (t) => {
  const record: SessionHistoryRecord = {
    type: 'omitted',
    event: { type: 'chunkrow/omitted', seq: 5, time: 0, data: { count: 3 } },
  }
  t.throws(() => expandRecord(record), { code: 'record/malformed', facts: { path: '/type' } })
  t.end()
})

t.test('a malformed row gives no event at all', (t) => {
  const good = fixture('text-row').record
  const bad = structuredClone(good)
  rowFragments(bad.event)[4] = 7 as unknown as string
  t.throws(() => expandRecord(bad), { code: 'record/malformed', facts: { path: '/event/data/texts/4' } })
  const given: number[] = []
  t.throws(() => {
    for (const event of expandRecords([good, bad, good])) given.push(event.seq)
  }, Problem)
  t.same(given, [41, 42, 43, 44, 45], 'the records before it were given whole')
  t.end()
})

t.test('a row of a million members is given line by line', (t) => {
  const count = 1_000_000
  const row: ChunkRowEvent = {
    type: 'chunkrow/text-chunks',
    seq: 0,
    time: 0,
    data: { turn: 0, step: 0, index: 0, dt: new Array(count - 1).fill(1), texts: new Array(count).fill('') },
  }
  const lines = expandRowLines(row, count - 2)
  t.match(lines.next().value, `"seq":${count - 2},"time":${count - 2},`)
  t.match(lines.next().value, `"seq":${count - 1},"time":${count - 1},`)
  t.equal(lines.next().done, true)
  t.end()
})
