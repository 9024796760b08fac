// The rules of the log on the plainest storage there is: numbering, duplicates, gaps, packing, the surface, page starts.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { SessionEvent } from '../../codec/index.ts'
import { deltaText, isMessage, members, packEvents, parseInputLine, validateRecord } from '../../codec/index.ts'
import type {
  LogState,
  LogStorage,
  NewRecord,
  NewSurfaceEntry,
  NumberedItem,
  StoredEvent,
} from '../../src/history/index.ts'
import { LogWriter } from '../../src/history/index.ts'
import { inTime, logEvents } from '../support/arbitraries.ts'
import type { LineForm } from '../support/logs.ts'
import {
  assistantMessage,
  lineOf,
  logBytes,
  pageStartOf,
  recordLine,
  textDelta,
  textDeltas,
  unplaced,
  userMessage,
} from '../support/logs.ts'

const SEED = 4_711
const NOW = 1_800_000_000_000

/** Arrays, searched from one end. It also counts how often each line was written. */
class MemoryLog implements LogStorage {
  records: NewRecord[] = []
  readonly surface: (NewSurfaceEntry & { replacedBy?: number })[] = []
  inserts = 0
  state: LogState = { head: -1, messages: 0, bytes: 0, run: undefined, pieces: 0, unstored: 0 }

  append(lines: readonly string[], options: { expectedSeq?: number; now?: number } = {}) {
    const items = lines.map((text, index): NumberedItem => ({ line: index + 1, item: parseInputLine(text) }))
    return new LogWriter(this.state, this, options.now ?? NOW).append(items, options)
  }

  insertRecord(record: NewRecord): void {
    const last = this.records.at(-1)?.last ?? -1
    if (record.first !== last + 1) throw new Error(`record ${record.first} follows ${last}`)
    this.records.push(record)
    this.inserts++
  }

  deleteRecords(from: number): void {
    this.records = this.records.filter(({ first }) => first < from)
  }

  insertSurface(entry: NewSurfaceEntry): void {
    this.surface.push(entry)
  }

  surfaceEntry(seq: number) {
    const entry = this.surface.find((each) => each.seq === seq)
    return entry && { position: entry.position, live: entry.replacedBy === undefined }
  }

  hideSurface(fromPosition: number, toPosition: number, bySeq: number): void {
    for (const entry of this.surface) {
      const { position, replacedBy } = entry
      if (replacedBy === undefined && position >= fromPosition && position <= toPosition) entry.replacedBy = bySeq
    }
  }

  messageBefore(seq: number) {
    return this.surface.findLast((entry) => entry.message && entry.seq < seq)
  }

  *storedEvents(from: number): Generator<StoredEvent> {
    for (const { line } of this.records) {
      const record = validateRecord(JSON.parse(line))
      if (record.type === 'omitted') throw new Error('an omitted range is stored')
      if (record.type === 'event') {
        const { seq, time } = record.event
        if (seq >= from) yield { seq, time, text: line.slice('{"type":"event","event":'.length, -1) }
      } else {
        for (const { delta, seq, time } of members(record.event)) {
          if (seq >= from) yield { seq, time, text: deltaText(delta, seq, time) }
        }
      }
    }
  }

  /** The stored lines, with the open run as its row. */
  lines(): string[] {
    const { run } = this.state
    const closed = this.records.filter(({ first }) => run === undefined || first < run.firstSeq)
    return [...closed.map(({ line }) => line), ...(run?.lines() ?? [])]
  }

  events(): SessionEvent[] {
    return [...this.storedEvents(0)].map(({ text }) => JSON.parse(text))
  }

  texts(): string[] {
    return [...this.storedEvents(0)].map(({ text }) => text)
  }
}

function line(event: object): string {
  return JSON.stringify(event)
}

const forms = fc.array(fc.constantFrom<LineForm>('bare', 'record', 'spaced', 'turned'), { minLength: 1, maxLength: 9 })
/** How many events each request takes, over and over. */
const sizes = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 5 })

function requests(events: readonly SessionEvent[], each: readonly number[]): SessionEvent[][] {
  const cut: SessionEvent[][] = []
  for (let at = 0, turn = 0; at < events.length; turn++) {
    const size = each[turn % each.length] as number
    cut.push(events.slice(at, at + size))
    at += size
  }
  return cut
}

t.comment(`seed ${SEED}`)

t.test('the records are a function of the events: not of batches, forms or rows, closed run or open', async () => {
  fc.assert(
    fc.property(logEvents, sizes, forms, fc.boolean(), (events, each, form, asRows) => {
      const log = new MemoryLog()
      let place = 0
      for (const request of requests(events, each)) {
        const lines = asRows
          ? packEvents(request).map(recordLine)
          : request.map((event) => lineOf(event, form[place++ % form.length] as LineForm))
        assert.deepEqual(log.append(lines), { appended: request.length, duplicates: 0 })
      }
      assert.deepEqual(log.lines(), packEvents(events).map(recordLine))
      assert.equal(log.state.head, events.length - 1)
      assert.equal(log.state.bytes, logBytes(events))
      assert.equal(log.state.messages, events.filter(isMessage).length)
      // Each event once, and at most once more as part of its row.
      const most = events.length + packEvents(events).length
      if (log.inserts > most) throw new Error(`${log.inserts} inserts for ${events.length} events`)
    }),
    { ...inTime(2_000), seed: SEED },
  )
})

t.test(
  'a page start found by each message’s own reach is the one the rule gives, overlapping groups included',
  async () => {
    fc.assert(
      fc.property(logEvents, fc.nat(), fc.integer({ min: 1, max: 6 }), (events, endDrawn, maxMessages) => {
        const log = new MemoryLog()
        log.append(events.map(line))
        const end = endDrawn % (events.length + 1)
        const counted = log.surface.filter(({ seq, message }) => message && seq < end).slice(-maxMessages)
        const found = counted.length < maxMessages ? 0 : Math.min(...counted.map(({ pageStart }) => pageStart))
        if (found !== pageStartOf(events, end, maxMessages)) {
          assert.equal(found, pageStartOf(events, end, maxMessages))
          throw new Error('the page start differs')
        }
      }),
      { ...inTime(3_000), seed: SEED },
    )
  },
)

t.test('a page start walks back through chains of groups', async (t) => {
  const log = new MemoryLog()
  // 0 1 [2] 3 [4: from 1] 5 [6: from 3] 7 [8: from 5]
  log.append([
    line(textDelta(0)),
    line(textDelta(1)),
    line(userMessage(2)),
    line(textDelta(3)),
    line(assistantMessage(4, [1])),
    line(textDelta(5)),
    line(assistantMessage(6, [3])),
    line(textDelta(7)),
    line(assistantMessage(8, [5])),
  ])
  const starts = Object.fromEntries(log.surface.map(({ seq, pageStart }) => [seq, pageStart]))
  t.strictSame(starts, { 2: 2, 4: 1, 6: 1, 8: 1 })
})

t.test('requests repeated in any order and overlap store each event once', async () => {
  fc.assert(
    fc.property(
      logEvents.filter((events) => events.length > 0),
      fc.array(fc.tuple(fc.nat(), fc.nat({ max: 12 })), { maxLength: 12 }),
      (events, ranges) => {
        const log = new MemoryLog()
        for (const [drawn, size] of [...ranges, ...events.map((_, at) => [at, 3] as const)]) {
          // Anywhere that is not beyond the head.
          const from = drawn % Math.min(log.state.head + 2, events.length)
          const request = events.slice(from, from + size)
          const before = log.state.head
          const { appended, duplicates } = log.append(request.map(line))
          assert.equal(appended + duplicates, request.length)
          assert.equal(log.state.head, before + appended)
        }
        if (
          log.texts().join('\n') !==
          events
            .slice(0, log.state.head + 1)
            .map(line)
            .join('\n')
        ) {
          throw new Error('the log is not the events')
        }
      },
    ),
    { ...inTime(500), seed: SEED },
  )
})

t.test('events without seq are numbered, and stamped when they have no time', async (t) => {
  const log = new MemoryLog()
  log.append(['{"type":"a","data":1.0}', '{"time":5,"type":"b","data":{"2":1e400,"1":-0}}'])
  log.append([line(unplaced(textDelta(9), false)), line(unplaced(textDelta(9), true))], { now: NOW + 7 })
  t.strictSame(log.texts(), [
    `{"seq":0,"time":${NOW},"type":"a","data":1.0}`,
    '{"seq":1,"time":5,"type":"b","data":{"2":1e400,"1":-0}}',
    line({ ...textDelta(2), time: NOW + 7 }),
    line({ ...textDelta(3), time: textDelta(9).time }),
  ])
})

t.test('seqs ascend whatever the clock does', async (t) => {
  // Case I1: the server's clock stepped back an hour and a second, and forward an hour.
  const log = new MemoryLog()
  const clocks = [NOW, NOW - 3_600_000, NOW - 3_601_000, NOW + 3_600_000, NOW]
  for (const now of clocks) log.append([line(unplaced(textDelta(0), false))], { now })
  t.strictSame(
    log.events().map(({ seq, time }) => [seq, time]),
    clocks.map((time, seq) => [seq, time]),
  )
  t.equal(log.lines().length, 1, 'the run packs over the steps')
})

t.test('times of the client’s own choosing order nothing', async (t) => {
  // Case I2: client clocks ten minutes off either way.
  const log = new MemoryLog()
  const times = [NOW, NOW + 600_000, NOW - 600_000, 0, -1]
  log.append(times.map((time, seq) => line({ type: 'x', seq, time, data: seq })))
  t.strictSame(
    log.events().map(({ data }) => data),
    [0, 1, 2, 3, 4],
  )
})

t.test('expectedSeq numbers from there and repeats safely; a time that the server gave is not compared', async (t) => {
  const log = new MemoryLog()
  const lines = ['{"type":"a","data":1}', line(unplaced(textDelta(0), false)), '{"type":"b","time":3,"data":2}']
  t.strictSame(log.append(lines, { expectedSeq: 0 }), { appended: 3, duplicates: 0 })
  t.strictSame(log.append(lines, { expectedSeq: 0, now: NOW + 1 }), { appended: 0, duplicates: 3 })
  t.strictSame(log.append([...lines.slice(1), '{"type":"c","data":3}'], { expectedSeq: 1, now: NOW + 2 }), {
    appended: 1,
    duplicates: 2,
  })
  t.equal(log.state.head, 3)
  t.throws(() => log.append(['{"type":"a","data":2}'], { expectedSeq: 0 }), {
    code: 'append/conflict',
    facts: { seq: 0, head: 3, line: 1 },
  })
  t.throws(
    () => log.append(['{"type":"b","time":4,"data":2}'], { expectedSeq: 2 }),
    { code: 'append/conflict' },
    'a time that was given is compared',
  )
  t.throws(() => log.append(['{"type":"a","data":2}'], { expectedSeq: 5 }), {
    code: 'append/gap',
    facts: { expectedSeq: 4, head: 3, line: 1 },
  })
  t.strictSame(log.append([line({ type: 'x', seq: 4, time: 1, data: 1 })], { expectedSeq: 4 }), {
    appended: 1,
    duplicates: 0,
  })
  t.throws(() => log.append([line({ type: 'x', seq: 5, time: 1, data: 1 })], { expectedSeq: 4 }), {
    code: 'request/invalid',
    facts: { path: 'expectedSeq' },
  })
})

t.test('what is no repetition is told with its facts', async (t) => {
  const event = (seq: number, data: unknown = seq): string => line({ type: 'x', seq, time: 1, data })
  const deltas = textDeltas(2, 6)
  const filled = (): MemoryLog => {
    const log = new MemoryLog()
    log.append([event(0), event(1), ...deltas.map(line)])
    return log
  }
  const table: { name: string; lines: string[]; code: string; facts: object }[] = [
    { name: 'a hole', lines: [event(7)], code: 'append/gap', facts: { expectedSeq: 6, head: 5, line: 1 } },
    { name: 'a hole inside', lines: [event(6), event(8)], code: 'append/gap', facts: { expectedSeq: 7, line: 2 } },
    { name: 'a step back inside', lines: [event(6), event(6)], code: 'append/gap', facts: { expectedSeq: 7, line: 2 } },
    {
      name: 'a hole among duplicates',
      lines: [event(0), line(deltas[0] as SessionEvent)],
      code: 'append/gap',
      facts: { expectedSeq: 1, line: 2 },
    },
    {
      name: 'other data',
      lines: [event(0), event(1, 'other')],
      code: 'append/conflict',
      facts: { seq: 1, head: 5, line: 2 },
    },
    {
      name: 'another spelling',
      lines: [event(0).replace('"data":0', '"data":0.0')],
      code: 'append/conflict',
      facts: { seq: 0 },
    },
    {
      name: 'another order of keys',
      lines: ['{"seq":0,"type":"x","time":1,"data":0}'],
      code: 'append/conflict',
      facts: { seq: 0 },
    },
    {
      name: 'another time',
      lines: [event(0).replace('"time":1', '"time":2')],
      code: 'append/conflict',
      facts: { seq: 0 },
    },
    {
      name: 'another fragment in a stored row',
      lines: [line(textDelta(3, 'y'))],
      code: 'append/conflict',
      facts: { seq: 3, line: 1 },
    },
    {
      name: 'a row with another member',
      lines: packEvents([...deltas.slice(0, 3), textDelta(5, 'z')]).map(recordLine),
      code: 'append/conflict',
      facts: { seq: 5, line: 1 },
    },
    {
      name: 'seq after none',
      lines: ['{"type":"x","data":1}', event(6)],
      code: 'event/invalid',
      facts: { line: 2, path: '/seq' },
    },
    {
      name: 'none after seq',
      lines: [event(6), '{"type":"x","data":1}'],
      code: 'event/invalid',
      facts: { line: 2, path: '/seq' },
    },
    {
      name: 'a row after no seq',
      lines: ['{"type":"x","data":1}', ...packEvents(textDeltas(6, 9)).map(recordLine)],
      code: 'event/invalid',
      facts: { line: 2, path: '/seq' },
    },
    {
      name: 'a row beyond',
      lines: packEvents(textDeltas(7, 10)).map(recordLine),
      code: 'append/gap',
      facts: { expectedSeq: 6, line: 1 },
    },
  ]
  for (const { name, lines, code, facts } of table) {
    const log = filled()
    t.throws(() => log.append(lines), { code, facts }, name)
  }
  const log = filled()
  const turned = lineOf(deltas[1] as SessionEvent, 'turned')
  t.not(turned, line(deltas[1] as SessionEvent))
  t.strictSame(log.append([turned]), { appended: 0, duplicates: 1 }, 'a delta is compared by its fields')
  t.strictSame(log.append([]), { appended: 0, duplicates: 0 })
})

t.test('a replacement must name what is on the surface, in its order', async (t) => {
  const message = (seq: number, surfaceOp: unknown): string =>
    line({ type: 'tool/result', seq, time: 1, data: { message: { content: `${seq}` } }, surfaceOp })
  const replace = (seq: number, start: number, end: number): string => message(seq, { op: 'replace', start, end })
  // After it: 0, 5 (in the place of 1 and 2), 4. Never on the surface: 3.
  const filled = (): MemoryLog => {
    const log = new MemoryLog()
    const off = line({ type: 'tool/result', seq: 3, time: 1, data: 1 })
    log.append([
      message(0, 'append'),
      message(1, 'append'),
      message(2, 'append'),
      off,
      message(4, 'append'),
      replace(5, 1, 2),
    ])
    return log
  }
  const live = (log: MemoryLog): number[] =>
    log.surface
      .filter(({ replacedBy }) => replacedBy === undefined)
      .toSorted((a, b) => a.position - b.position)
      .map(({ seq }) => seq)
  t.strictSame(live(filled()), [0, 5, 4])
  const table: [name: string, start: number, end: number, fact: object][] = [
    ['replaced already, start', 1, 4, { path: '/surfaceOp/start' }],
    ['replaced already, end', 0, 2, { path: '/surfaceOp/end' }],
    ['never on the surface', 3, 4, { path: '/surfaceOp/start' }],
    ['wrong order by seq', 4, 0, { path: '/surfaceOp' }],
    ['wrong order by place, right by seq', 4, 5, { path: '/surfaceOp' }],
    ['itself', 6, 6, { path: '/surfaceOp/start' }],
    ['later', 0, 7, { path: '/surfaceOp/end' }],
  ]
  for (const [name, start, end, facts] of table) {
    t.throws(() => filled().append([replace(6, start, end)]), { code: 'event/invalid', facts }, name)
    const unplacedLine = line(unplaced(JSON.parse(replace(6, start, end)), false))
    t.throws(
      () => filled().append(['{"type":"x","data":1}', unplacedLine].slice(1)),
      { code: 'event/invalid', facts: { ...facts, line: 1 } },
      `${name}, numbered here`,
    )
  }
  for (const [start, end, left] of [
    [5, 4, [0, 6]],
    [0, 5, [6, 4]],
    [0, 0, [6, 5, 4]],
    [0, 4, [6]],
  ] as const) {
    const log = filled()
    log.append([replace(6, start, end)])
    t.strictSame(live(log), left, `${start} to ${end}`)
  }
})

t.test('sources are earlier than the event that names them, also when it is numbered here', async (t) => {
  const log = new MemoryLog()
  const { seq: _, ...message } = assistantMessage(0, [1])
  t.throws(() => log.append(['{"type":"x","data":1}', line({ ...message, seq: undefined })]), {
    code: 'event/invalid',
    facts: { line: 2, path: '/sourceEventSeqs/0' },
  })
})

t.test('a delta too large for a row ends the run and is an event', async (t) => {
  const huge = 'é'.repeat(600_000)
  const events = [...textDeltas(0, 3), textDelta(3, huge), ...textDeltas(4, 7)]
  for (const size of [1, 2, 7]) {
    const log = new MemoryLog()
    for (const request of requests(events, [size])) log.append(request.map(line))
    t.strictSame(
      log.records.slice(0, 2).map(({ first, last, kind }) => ({ first, last, kind })),
      [
        { first: 0, last: 2, kind: 'row' },
        { first: 3, last: 3, kind: 'chunk' },
      ],
    )
    t.equal(log.lines().join(), packEvents(events).map(recordLine).join())
  }
})

t.test('a run longer than a row is cut in the same places however it came', async (t) => {
  const events = textDeltas(0, 4_096 * 2 + 2)
  const expected = packEvents(events).map(recordLine)
  t.equal(expected.length, 4)
  for (const size of [events.length, 1_000, 4_096, 4_097]) {
    const log = new MemoryLog()
    for (const request of requests(events, [size])) log.append(request.map(line))
    t.strictSame(
      log.lines().map((text) => text.length),
      expected.map((text) => text.length),
      `${size} a request`,
    )
    t.equal(log.lines().join('\n'), expected.join('\n'))
  }
})

t.test('the bytes of a shown message are those that were sent', async (t) => {
  const log = new MemoryLog()
  const text = '{"type":"user/message","data":{"é\\u0000":1.0,"content":"漢\\ud83d"},"surfaceOp":"append","extra":1}'
  log.append([text])
  const [record] = log.records
  const slice = log.surface[0]?.slice
  t.ok(record && slice)
  const bytes = Buffer.from(record?.line ?? '').subarray(slice?.start, slice?.end)
  t.equal(bytes.toString(), '{"é\\u0000":1.0,"content":"漢\\ud83d"}')
})
