// Packing: the records of a log are a function of its events alone, cut exactly at the limits, and lose nothing.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { Delta, SessionEvent } from '../../codec/event.ts'
import { deltaEvent, deltaOf, deltaText, LIMITS } from '../../codec/event.ts'
import { expandRecords } from '../../codec/expand.ts'
import { deltaBytes, members, Packer, packEvents, Run } from '../../codec/pack.ts'
import type { ChunkRowEvent, SessionHistoryRecord } from '../../codec/record.ts'
import {
  eventRecordLine,
  recordRange,
  rowFragments,
  rowRecordLine,
  sliceRow,
  validateRecord,
} from '../../codec/record.ts'
import { delta as anyDelta, inTime, logEvents, seqNumber, timeNumber } from '../support/arbitraries.ts'

const MAX = Number.MAX_SAFE_INTEGER

function textDelta(fragment: string): Delta {
  return { kind: 'text-delta', turn: 1, step: 2, index: 0, id: undefined, name: undefined, fragment }
}

function toolDelta(fragment: string, id = 'call_1', name: string | undefined = undefined): Delta {
  return { kind: 'tool-call-delta', turn: 1, step: 2, index: 0, id, name, fragment }
}

/** The events of these fragments, each a millisecond after the one before. */
function textEvents(fragments: readonly string[], seq = 0): SessionEvent[] {
  return fragments.map((fragment, k) => deltaEvent(textDelta(fragment), seq + k, 1000 + seq + k))
}

/** A record as `event` or as the number of its members, which is all that the tables of cuts are about. */
function shape(record: SessionHistoryRecord): 'event' | number {
  return record.type === 'chunks' ? rowFragments(record.event).length : 'event'
}

function lineOf(record: SessionHistoryRecord): string {
  return record.type === 'chunks' ? rowRecordLine(record.event) : eventRecordLine(JSON.stringify(record.event))
}

function bytesOf(record: SessionHistoryRecord): number {
  return Buffer.byteLength(lineOf(record))
}

/** The packing rules once more, with nothing kept between two members: each time the whole row is written and measured. */
function packedByTheRules(events: readonly SessionEvent[]): SessionHistoryRecord[] {
  const records: SessionHistoryRecord[] = []
  let run: SessionEvent[] = []
  const rowOf = (run: readonly SessionEvent[]): ChunkRowEvent => {
    const deltas = run.map((event) => deltaOf(event)!)
    const { kind, turn, step, index, id, name } = deltas[0]!
    const dt = run.slice(1).map((event, k) => event.time - run[k]!.time)
    const fragments = deltas.map(({ fragment }) => fragment)
    const { seq, time } = run[0]!
    if (kind === 'tool-call-delta') {
      const named = name === undefined ? {} : { name }
      return {
        type: 'chunkrow/tool-call-chunks',
        seq,
        time,
        data: { turn, step, index, id: id!, ...named, dt, args: fragments },
      }
    }
    const type = kind === 'text-delta' ? 'chunkrow/text-chunks' : 'chunkrow/reasoning-chunks'
    return { type, seq, time, data: { turn, step, index, dt, texts: fragments } }
  }
  const within = (run: readonly SessionEvent[]) =>
    run.length <= 4096 && Buffer.byteLength(rowRecordLine(rowOf(run))) <= 1024 * 1024
  const joins = (event: SessionEvent): boolean => {
    const last = run.at(-1)
    if (last === undefined || event.seq !== last.seq + 1 || !Number.isSafeInteger(event.time - last.time)) return false
    const { fragment: _, ...block } = deltaOf(event)!
    const { fragment: __, ...lastBlock } = deltaOf(last)!
    return JSON.stringify(block) === JSON.stringify(lastBlock) && within([...run, event])
  }
  const close = () => {
    if (run.length >= 3) records.push({ type: 'chunks', event: rowOf(run) })
    else for (const event of run) records.push({ type: 'event', event })
    run = []
  }
  for (const event of events) {
    if (deltaOf(event) !== undefined && joins(event)) {
      run.push(event)
      continue
    }
    close()
    if (deltaOf(event) !== undefined && within([event])) run = [event]
    else records.push({ type: 'event', event })
  }
  close()
  return records
}

t.test('any log comes back from its records as it was', (t) => {
  fc.assert(
    fc.property(logEvents, (events) => {
      const records = packEvents(events)
      assert.deepEqual([...expandRecords(records)], events)
      let next = 0
      for (const record of records) {
        validateRecord(JSON.parse(lineOf(record)))
        const { from, to } = recordRange(record)
        assert.equal(from, next)
        next = to
      }
      assert.equal(next, events.length)
    }),
    inTime(500),
  )
  t.end()
})

t.test('packing follows the rules', (t) => {
  fc.assert(
    fc.property(logEvents, (events) => {
      assert.deepEqual(packEvents(events), packedByTheRules(events))
    }),
    inTime(500),
  )
  t.end()
})

t.test('packing follows the rules where bytes decide', (t) => {
  const unit = fc.constantFrom('a', 'é', '漢', '😀', '"', '\u0001', '\ud83d', 'a\n')
  const fragments = fc.array(fc.tuple(unit, fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 400_000 }))), {
    minLength: 2,
    maxLength: 9,
  })
  fc.assert(
    fc.property(fragments, fc.constantFrom('text-delta', 'tool-call-delta'), (drawn, kind) => {
      const events = drawn.map(([unit, times], k) => {
        const fragment = unit.repeat(times)
        return deltaEvent(kind === 'text-delta' ? textDelta(fragment) : toolDelta(fragment, 'é"', '\u2028'), k, k * k)
      })
      const records = packEvents(events)
      assert.deepEqual(records, packedByTheRules(events))
      assert.deepEqual([...expandRecords(records)], events)
    }),
    inTime(40),
  )
  t.end()
})

t.test('the records do not depend on how the events came', (t) => {
  fc.assert(
    fc.property(logEvents, fc.array(fc.boolean()), (events, splits) => {
      // A run is taken up again from its row at any member, as a store does after each batch.
      const lines: string[] = []
      let run: Run | undefined
      const close = () => {
        for (const line of run?.lines() ?? []) lines.push(line)
        run = undefined
      }
      for (const [at, event] of events.entries()) {
        const delta = deltaOf(event)
        if (splits[at] && run !== undefined && run.length >= 3) {
          const [record] = run.records()
          run = Run.ofRow((record as { event: ChunkRowEvent }).event)
        }
        if (delta !== undefined && run?.accepts(delta, event.seq, event.time)) run.add(delta, event.seq, event.time)
        else {
          close()
          if (delta !== undefined) run = new Run(delta, event.seq, event.time)
          else lines.push(eventRecordLine(JSON.stringify(event)))
        }
      }
      close()
      assert.deepEqual(lines, packEvents(events).map(lineOf))
    }),
    inTime(500),
  )
  t.end()
})

t.test('each push gives what it completed, and end the rest', (t) => {
  const packer = new Packer()
  const [a, b, c, d] = textEvents(['a', 'b', 'c', 'd'])
  const other: SessionEvent = { type: 'x', seq: 3, time: 0, data: null }
  t.same(packer.push(a!), [])
  t.same(packer.push(b!), [])
  t.same(packer.push(c!), [])
  t.same(packer.push(other).map(shape), [3, 'event'])
  t.same(packer.end(), [])
  t.same(packer.push(d!), [])
  t.same(packer.end(), [{ type: 'event', event: d }])
  t.same(packer.end(), [])
  t.end()
})

t.test('what a run continues with, and what ends it', (t) => {
  const first = toolDelta('', 'call_1', 'run')
  const cases: [string, Partial<Delta>, number, number, boolean][] = [
    ['the same', {}, 6, 100, true],
    ['a step back in time', {}, 6, -1000, true],
    ['the next seq but one', {}, 7, 100, false],
    ['the same seq', {}, 5, 100, false],
    ['another turn', { turn: 2 }, 6, 100, false],
    ['another step', { step: 3 }, 6, 100, false],
    ['another index', { index: 1 }, 6, 100, false],
    ['another id', { id: 'call_2' }, 6, 100, false],
    ['an empty id', { id: '' }, 6, 100, false],
    ['another name', { name: 'ran' }, 6, 100, false],
    ['no name', { name: undefined }, 6, 100, false],
    ['an empty name', { name: '' }, 6, 100, false],
    ['another kind', { kind: 'text-delta', id: undefined, name: undefined }, 6, 100, false],
  ]
  for (const [name, change, seq, time, accepted] of cases) {
    t.equal(new Run(first, 5, 100).accepts({ ...first, ...change }, seq, time), accepted, name)
  }
  t.notOk(new Run(toolDelta('', 'a', undefined), 5, 0).accepts(toolDelta('', 'a', ''), 6, 0), 'an empty name is a name')
  t.notOk(new Run(textDelta(''), 5, 0).accepts({ ...textDelta(''), kind: 'reasoning-delta' }, 6, 0))
  const gaps: [number, number, boolean][] = [
    [0, MAX, true],
    [-1, MAX - 1, true],
    [-1, MAX, false],
    [MAX, 0, true],
    [MAX, -1, false],
    [-MAX, MAX, false],
  ]
  for (const [before, after, accepted] of gaps) {
    t.equal(new Run(textDelta(''), 0, before).accepts(textDelta(''), 1, after), accepted, `from ${before} to ${after}`)
  }
  t.end()
})

t.test('a run ends at any event that does not pack', (t) => {
  const events = textEvents(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  const chunk = { type: 'text-delta', index: 0, text: 'd' }
  const others: [string, Partial<SessionEvent>][] = [
    ['an unknown envelope key', { unknown: 1 } as Partial<SessionEvent>],
    ['ignorable', { ignorable: true }],
    ['an unknown data key', { data: { turn: 1, step: 2, chunk, more: 1 } }],
    ['an unknown chunk key', { data: { turn: 1, step: 2, chunk: { ...chunk, more: 1 } } }],
    ['a turn of -0', { data: { turn: -0, step: 2, chunk } }],
    ['another type', { type: 'x' }],
  ]
  for (const [name, change] of others) {
    const log = events.map((event, k) => (k === 3 ? { ...event, ...change } : event))
    t.same(packEvents(log).map(shape), [3, 'event', 3], name)
    t.strictSame([...expandRecords(packEvents(log))], log, name)
  }
  t.end()
})

t.test('runs of three and more are rows', (t) => {
  const shapes = [[], ['event'], ['event', 'event'], [3], [4]]
  for (const [count, expected] of shapes.entries()) {
    t.same(packEvents(textEvents(new Array(count).fill('a'))).map(shape), expected, `${count} members`)
  }
  t.end()
})

t.test('a row holds at most 4,096 members', (t) => {
  const table: [number, ('event' | number)[]][] = [
    [4095, [4095]],
    [4096, [4096]],
    [4097, [4096, 'event']],
    [4098, [4096, 'event', 'event']],
    [4099, [4096, 3]],
    [8192, [4096, 4096]],
    [8193, [4096, 4096, 'event']],
  ]
  for (const [count, expected] of table) {
    t.same(packEvents(textEvents(new Array(count).fill(' a'))).map(shape), expected, `${count} members`)
  }
  t.end()
})

const UNITS: [string, string][] = [
  ['one byte', 'a'],
  ['two bytes', 'é'],
  ['three bytes', '漢'],
  ['four bytes', '😀'],
  ['short escapes', '"'],
  ['long escapes', '\u0001'],
  ['lone surrogates', '\udc00'],
  ['a line separator', '\u2028'],
]

/** A text that makes `bytes` in JSON, quotes not counted, as nearly as may be of `unit`. */
function filling(unit: string, bytes: number): string {
  const each = Buffer.byteLength(JSON.stringify(unit)) - 2
  return unit.repeat(Math.floor(bytes / each)) + 'x'.repeat(bytes % each)
}

t.test('a row line holds at most 1 MiB', (t) => {
  const limit = 1024 * 1024
  for (const [name, unit] of UNITS) {
    const base = new Run(textDelta('a'), 0, 1000)
    base.add(textDelta('b'), 1, 1001)
    // The third member adds a comma and one digit to the gaps, a comma and two quotes to the texts.
    const room = limit - base.rowBytes - 2 - 3
    for (const over of [-1, 0, 1]) {
      const events = textEvents(['a', 'b', filling(unit, room + over), 'c', 'd', 'e'])
      const records = packEvents(events)
      t.strictSame(records, packedByTheRules(events), `${name}, ${over} over`)
      // One byte too many, and the big member starts the next row, for which it alone is small enough.
      if (over > 0) t.same(records.slice(0, 2).map(shape), ['event', 'event'])
      else t.same(records.map(shape), [3, 3], `${name}, ${over} over: the cut`)
      if (over <= 0) t.equal(bytesOf(records[0]!), limit + over, `${name}, ${over} over: bytes`)
    }
  }
  t.end()
})

t.test('a member that alone breaks the limit is an event and ends the row', (t) => {
  const limit = 1024 * 1024
  for (const [name, unit] of UNITS) {
    const room = limit - new Run(textDelta(''), 3, 1003).rowBytes
    for (const over of [-1, 0, 1]) {
      const fragment = filling(unit, room + over)
      t.equal(Run.fits(textDelta(fragment), 3, 1003), over <= 0, `${name}, ${over} over: fits`)
      const events = textEvents(['a', 'b', 'c', fragment, 'd', 'e', 'f', 'g'])
      const records = packEvents(events)
      t.same(records.map(shape), [3, 'event', 4], `${name}, ${over} over`)
      t.same(records[1], { type: 'event', event: events[3] })
    }
  }
  t.equal(Run.fits(toolDelta('', '"'.repeat(limit / 2)), 0, 0), false, 'the id counts')
  t.equal(Run.fits(toolDelta('', '', '漢'.repeat(limit / 3)), 0, 0), false, 'the name counts')
  t.end()
})

t.test('a long id fills each row by itself', (t) => {
  const id = 'i'.repeat(LIMITS.rowBytes - 1000)
  const events = Array.from({ length: 240 }, (_, k) => deltaEvent(toolDelta('ab', id, 'run'), k, k))
  const records = packEvents(events)
  t.same(records, packedByTheRules(events))
  t.ok(records.length >= 2 && records.every((record) => bytesOf(record) <= LIMITS.rowBytes))
  t.end()
})

t.test('rowBytes and deltaBytes are the true sizes at all times', (t) => {
  fc.assert(
    fc.property(
      anyDelta,
      seqNumber.filter((seq) => seq < MAX - 20),
      timeNumber,
      fc.array(fc.tuple(anyDelta, fc.oneof(fc.integer({ min: -12_000, max: 12_000 }), fc.maxSafeInteger())), {
        maxLength: 12,
      }),
      (first, seq, time, rest) => {
        assert.equal(deltaBytes(first, seq, time), Buffer.byteLength(deltaText(first, seq, time)))
        const run = new Run(first, seq, time)
        assert.equal(run.rowBytes, sizeAsRow(run))
        for (const [{ fragment }, gap] of rest) {
          const next = { ...first, fragment }
          const at = run.lastTime + gap
          if (!Number.isSafeInteger(at)) continue
          // Asked for one and given another must not confuse the count.
          run.accepts({ ...first, fragment: `${fragment}"` }, run.nextSeq, at)
          assert.equal(run.accepts(next, run.nextSeq, at), true)
          if (gap % 2 === 0) run.accepts({ ...first, fragment: '漢' }, run.nextSeq, at)
          run.add(next, run.nextSeq, at)
          assert.equal(run.rowBytes, sizeAsRow(run))
          assert.equal(run.lastTime, at)
        }
      },
    ),
    inTime(500),
  )
  t.end()
})

/** The size of a run's row, also of one that is too short to be written as one. */
function sizeAsRow(run: Run): number {
  const deltas: Delta[] = []
  const times: number[] = []
  for (const record of run.records()) {
    if (record.type === 'chunks') return bytesOf(record)
    deltas.push(deltaOf(record.event as SessionEvent)!)
    times.push(record.event.time)
  }
  const { kind, turn, step, index, id, name } = deltas[0]!
  const dt = times.slice(1).map((time, k) => time - times[k]!)
  const fragments = deltas.map(({ fragment }) => fragment)
  const named = name === undefined ? {} : { name }
  const event =
    kind === 'tool-call-delta'
      ? { type: 'chunkrow/tool-call-chunks', data: { turn, step, index, id, ...named, dt, args: fragments } }
      : {
          type: kind === 'text-delta' ? 'chunkrow/text-chunks' : 'chunkrow/reasoning-chunks',
          data: { turn, step, index, dt, texts: fragments },
        }
  return Buffer.byteLength(rowRecordLine({ seq: run.firstSeq, time: run.firstTime, ...event } as ChunkRowEvent))
}

t.test('the lines and records of a part of a run are those of the slice of its row', (t) => {
  const times = [1000, 1004, 990, 990, 991, 2000]
  for (const delta of [textDelta(''), toolDelta('', 'é', undefined), toolDelta('', 'é', 'run')]) {
    const run = new Run({ ...delta, fragment: '0' }, 7, times[0]!)
    for (let k = 1; k < times.length; k++) run.add({ ...delta, fragment: `\ud83d${k}` }, 7 + k, times[k]!)
    const row = (run.records()[0] as { event: ChunkRowEvent }).event
    for (let from = 6; from <= 14; from++) {
      for (let to = 6; to <= 14; to++) {
        const slice = sliceRow(row, from, to)
        const records = Array.isArray(slice)
          ? slice.map((event): SessionHistoryRecord => ({ type: 'event', event }))
          : [{ type: 'chunks' as const, event: slice }]
        t.strictSame(run.records(from, to), records, `${from}..${to}`)
        t.strictSame(run.lines(from, to), records.map(lineOf), `${from}..${to}`)
      }
    }
  }
  t.end()
})

t.test('records share nothing with the run that goes on', (t) => {
  const run = new Run(textDelta('a'), 0, 0)
  for (let k = 1; k < 3; k++) run.add(textDelta('b'), k, k)
  const records = run.records()
  const before = JSON.stringify(records)
  run.add(textDelta('c'), 3, 3)
  t.equal(JSON.stringify(records), before)
  t.equal(run.length, 4)
  t.equal(run.nextSeq, 4)
  t.end()
})

t.test('a row that readers take but no writer makes is read back too', (t) => {
  const row: ChunkRowEvent = {
    type: 'chunkrow/text-chunks',
    seq: 3,
    time: 9,
    data: { turn: 1, step: 2, index: 0, dt: [], texts: ['alone'] },
  }
  t.same([...members(row)], [{ delta: textDelta('alone'), seq: 3, time: 9 }])
  const run = Run.ofRow(row)
  t.ok(run.accepts(textDelta('next'), 4, 10))
  run.add(textDelta('next'), 4, 10)
  t.same(run.records().map(shape), ['event', 'event'])
  t.end()
})

t.test('the members of a row are its events', (t) => {
  fc.assert(
    fc.property(logEvents, (events) => {
      for (const record of packEvents(events)) {
        if (record.type !== 'chunks') continue
        const { seq } = record.event
        const found = [...members(record.event)].map(({ delta, seq, time }) => deltaEvent(delta, seq, time))
        assert.deepEqual(found, events.slice(seq, seq + found.length))
      }
    }),
    inTime(300),
  )
  t.end()
})
