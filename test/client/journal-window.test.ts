import fc from 'fast-check'
import t from 'tap'
import { recordRange } from '../../codec/index.ts'
import { JournalWindow } from '../../src/client/journal-window.ts'
import { inTime } from '../support/arbitraries.ts'
import {
  assertCovers,
  assistantMessage,
  eventsOf,
  packedRange,
  textDelta,
  textDeltas,
  userMessage,
} from '../support/logs.ts'

const single = (events: ReturnType<typeof textDeltas>) => events.map((event) => ({ type: 'event' as const, event }))

t.test('a window begins empty and grows at both ends', async (t) => {
  const window = new JournalWindow({ compacting: true })
  t.match(window, { from: 0, to: 0, hasMore: false, epoch: undefined, status: 'connecting' })
  const log = [userMessage(0), userMessage(1), ...textDeltas(2, 8), userMessage(8)]
  t.match(window.replace('e1', 2, packedRange(log, 2, 8), 'opened'), {
    type: 'replace',
    from: 2,
    hasMore: true,
    reason: 'opened',
  })
  t.match(window, { from: 2, to: 8, hasMore: true, epoch: 'e1' })
  for (const change of window.append(packedRange(log, 8, 9))) change()
  const older = packedRange(log, 0, 2)
  t.match(window.prepend({ epoch: 'e1', from: 2 }, { from: 0, to: 2 }, older), {
    type: 'prepend',
    from: 0,
    hasMore: false,
  })
  t.match(window, { from: 0, to: 9, hasMore: false })
  assertCovers(window.entries, 0, 9)
})

t.test('a page that does not join changes nothing', async (t) => {
  const log = textDeltas(0, 30)
  const window = new JournalWindow({ compacting: true })
  window.replace('e1', 10, packedRange(log, 10, 20), 'opened')
  const asked = { epoch: 'e1', from: 10 }
  const cases: [string, object, { from: number; to: number }, [number, number], string][] = [
    ['another end', asked, { from: 5, to: 9 }, [5, 9], 'answer/malformed'],
    ['nothing', asked, { from: 10, to: 10 }, [10, 10], 'answer/malformed'],
    ['fewer records than it says', asked, { from: 5, to: 10 }, [5, 9], 'answer/malformed'],
    ['asked for another window', { epoch: 'e1', from: 11 }, { from: 5, to: 10 }, [5, 10], 'journal/moved'],
    ['asked for another log', { epoch: 'e2', from: 10 }, { from: 5, to: 10 }, [5, 10], 'journal/moved'],
  ]
  for (const [name, given, page, [from, to], code] of cases) {
    t.throws(() => window.prepend(given as typeof asked, page, packedRange(log, from, to)), { code }, name)
    t.match(window, { from: 10, to: 20 })
  }
})

t.test('a change is made when it is told, not before', async (t) => {
  const window = new JournalWindow({ compacting: true })
  window.replace('e1', 0, [], 'opened')
  const [append, compact, ...rest] = window.append(single([...textDeltas(0, 4), userMessage(4)]))
  t.strictSame([window.to, rest.length], [0, 0])
  t.match(append?.(), { type: 'append', entries: { length: 5 } })
  t.equal(window.entries.length, 5)
  t.match(compact?.(), { type: 'compact', from: 0, to: 4, entries: [{ type: 'chunks' }] })
  t.equal(window.entries.length, 2)
})

t.test('as many records as there are may come together', async (t) => {
  const window = new JournalWindow({ compacting: false })
  window.replace('e1', 0, [], 'opened')
  const records = single(Array.from({ length: 300_000 }, (_, seq) => userMessage(seq)))
  for (const change of window.append(records)) change()
  t.equal(window.to, 300_000)
  t.equal(window.entries.length, 300_000)
})

t.test('only closed runs of three and more single tokens become rows', async (t) => {
  const cases: [string, ReturnType<typeof textDeltas>, [number, number][]][] = [
    ['an open run', textDeltas(0, 9), []],
    ['two', [...textDeltas(0, 2), userMessage(2)], []],
    ['three', [...textDeltas(0, 3), userMessage(3)], [[0, 3]]],
    ['another block', [...textDeltas(0, 3), textDelta(3, 'x', 1)], [[0, 3]]],
    [
      'two runs',
      [...textDeltas(0, 3), userMessage(3), ...textDeltas(4, 9), userMessage(9)],
      [
        [0, 3],
        [4, 9],
      ],
    ],
    ['no token', [userMessage(0), assistantMessage(1, [0]), userMessage(2)], []],
  ]
  for (const [name, events, compacted] of cases) {
    for (const cut of [1, 2, events.length]) {
      const window = new JournalWindow({ compacting: true })
      window.replace('e1', 0, [], 'opened')
      const told: [number, number][] = []
      for (let at = 0; at < events.length; at += cut) {
        for (const change of window.append(single(events.slice(at, at + cut)))) {
          const made = change()
          if (made.type === 'compact') told.push([made.from, made.to])
        }
      }
      t.strictSame(told, compacted, `${name}, ${cut} at a time`)
      t.strictSame(await eventsOf(window.entries), events)
    }
  }
})

t.test('a row that comes after single tokens of the same run leaves both as they are', async (t) => {
  const log = [...textDeltas(0, 12), userMessage(12)]
  const window = new JournalWindow({ compacting: true })
  window.replace('e1', 0, [], 'opened')
  for (const part of [single(log.slice(0, 5)), packedRange(log, 5, 12), single(log.slice(12))]) {
    for (const change of window.append(part)) change()
  }
  t.strictSame(
    window.entries.map((record) => [record.type, record.event.seq]),
    [
      ['chunks', 0],
      ['chunks', 5],
      ['event', 12],
    ],
  )
})

t.test('whatever is appended, compacted and prepended, the window holds the log', async (t) => {
  const kinds = fc.array(fc.nat(4), { minLength: 1, maxLength: 60 })
  const property = fc.asyncProperty(
    kinds,
    fc.nat(),
    fc.array(fc.integer({ min: 1, max: 9 })),
    async (all, opening, cuts) => {
      const log = all.map((kind, seq) => (kind === 0 ? userMessage(seq) : textDelta(seq, 'x', kind % 2)))
      let at = opening % (log.length + 1)
      const window = new JournalWindow({ compacting: true })
      window.replace('e1', at, [], 'opened')
      for (const cut of [...cuts, log.length]) {
        const from = Math.max(0, window.from - cut)
        if (cut % 3 === 0 && from < window.from) {
          window.prepend(
            { epoch: 'e1', from: window.from },
            { from, to: window.from },
            packedRange(log, from, window.from),
          )
        }
        const part = log.slice(at, at + cut)
        const records = cut % 2 === 0 ? single(part) : packedRange(log, at, at + part.length)
        if (records.length === 0) continue
        at += part.length
        for (const change of window.append(records)) {
          change()
          assertCovers(window.entries, window.from, window.to)
        }
      }
      t.strictSame(await eventsOf(window.entries), log.slice(window.from))
      t.equal(recordRange(window.entries.at(-1) ?? single([textDelta(log.length - 1)])[0]!).to, log.length)
    },
  )
  await fc.assert(property, { ...inTime(150) })
})
