// The surface: what counts as a message, where its group begins, and what the model sees.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { SessionEvent } from '../../codec/event.ts'
import { foldSurface, groupStart, isMessage, messageSlice } from '../../codec/surface.ts'
import { inTime, logEvents } from '../support/arbitraries.ts'

function user(seq: number, text: string): SessionEvent {
  return { type: 'user/message', seq, time: 0, data: { role: 'user', content: text }, surfaceOp: 'append' }
}

function assistant(seq: number, content: string, sourceEventSeqs: number[] = []): SessionEvent {
  const data = { turn: 0, step: 0, message: { role: 'assistant', content } }
  return { type: 'assistant/message', seq, time: 0, data, sourceEventSeqs, surfaceOp: 'append' }
}

function replacement(seq: number, start: number, end: number, text = `${start}..${end}`): SessionEvent {
  return { ...user(seq, text), surfaceOp: { op: 'replace', start, end } }
}

function seqs(events: SessionEvent[]): number[] {
  return foldSurface(events).map(({ seq }) => seq)
}

t.test('a message is a user or assistant message that was appended', (t) => {
  const cases: [string, SessionEvent['surfaceOp'], boolean][] = [
    ['user/message', 'append', true],
    ['assistant/message', 'append', true],
    ['tool/result', 'append', false],
    ['user/message', { op: 'replace', start: 0, end: 0 }, false],
    ['assistant/message', { op: 'replace', start: 0, end: 0 }, false],
    ['user/message', undefined, false],
    ['x', 'append', false],
  ]
  for (const [type, surfaceOp, expected] of cases) t.equal(isMessage({ type, surfaceOp }), expected)
  t.equal(isMessage({ type: 'user/message' }), false)
  t.end()
})

t.test('a group starts at the earliest of a message and its sources', (t) => {
  t.equal(groupStart(9, undefined), 9)
  t.equal(groupStart(9, []), 9)
  t.equal(groupStart(9, [5, 3, 7]), 3)
  t.equal(groupStart(9, [0]), 0)
  const many = Array.from({ length: 500_000 }, (_, k) => k + 1)
  t.equal(groupStart(500_001, many), 1, 'the list may be longer than a call takes arguments')
  t.end()
})

t.test('where the message lies in the text of its event', (t) => {
  const cases: [string, string, string | undefined][] = [
    ['user/message', '{"content":"a"}', '{"content":"a"}'],
    ['user/message', '{"message":{"content":"a"},"more":1}', '{"content":"a"}'],
    ['user/message', '{"message":"text","content":"a"}', '{"message":"text","content":"a"}'],
    ['user/message', '{"message":null}', '{"message":null}'],
    ['user/message', '{"message":{"content":[]}}', '{"content":[]}'],
    ['user/message', '"text"', '"text"'],
    ['user/message', '{"message":{"a":1},"message":{"b":2}}', '{"b":2}'],
    ['user/message', '{"m\\u0065ssage":{"a":1.0}}', '{"a":1.0}'],
    ['user/message', '{"nested":{"message":{"a":1}}}', '{"nested":{"message":{"a":1}}}'],
    ['tool/result', '{"turn":0,"message":{"content":[]}}', '{"content":[]}'],
    ['tool/result', '{"turn":0}', '{"turn":0}'],
    ['tool/result', 'null', 'null'],
    ['assistant/message', '{"message":{"content":"a"}}', '{"content":"a"}'],
    ['assistant/message', '{"message":{"content":[{"type":"text"}]}}', '{"content":[{"type":"text"}]}'],
    ['assistant/message', '{"message":{"content":1e400}}', '{"content":1e400}'],
    ['assistant/message', '{"message":{"content":"","content":"b"}}', '{"content":"","content":"b"}'],
    ['assistant/message', '{"message":{"content":"b","content":""}}', undefined],
    ['assistant/message', '{"message":{"content":""}}', undefined],
    ['assistant/message', '{"message":{"content":[]}}', undefined],
    ['assistant/message', '{"message":{"content":null}}', undefined],
    ['assistant/message', '{"message":{"role":"assistant"}}', undefined],
    ['assistant/message', '{"message":"text"}', undefined],
    ['assistant/message', '{"content":"a"}', undefined],
    ['assistant/message', '7', undefined],
  ]
  for (const [type, data, expected] of cases) {
    for (const text of [
      `{"type":"${type}","seq":1,"time":0,"data":${data},"surfaceOp":"append"}`,
      `{"data":${data},"message":{"content":"of the envelope"},"type":"${type}"}`,
    ]) {
      const slice = messageSlice(type, text)
      t.equal(slice && text.slice(slice.start, slice.end), expected)
    }
  }
  t.end()
})

t.test('events off the surface are passed over', (t) => {
  const { surfaceOp: _, ...off } = user(1, 'not on the surface')
  t.strictSame(foldSurface([{ type: 'x', seq: 0, time: 0, data: null }, off, user(2, 'a')]), [
    { seq: 2, type: 'user/message', message: { role: 'user', content: 'a' } },
  ])
  t.same(foldSurface([]), [])
  t.end()
})

t.test('a replacement takes the place of what it names', (t) => {
  const log = [user(0, 'a'), assistant(1, 'b'), user(2, 'c'), assistant(3, 'd')]
  const cases: [string, SessionEvent[], number[]][] = [
    ['one in the middle', [replacement(4, 1, 1)], [0, 4, 2, 3]],
    ['two in the middle', [replacement(4, 1, 2)], [0, 4, 3]],
    ['the first', [replacement(4, 0, 0)], [4, 1, 2, 3]],
    ['the last', [replacement(4, 3, 3)], [0, 1, 2, 4]],
    ['the last, and one more', [replacement(4, 3, 3), user(5, 'e')], [0, 1, 2, 4, 5]],
    ['all', [replacement(4, 0, 3)], [4]],
    ['all, and one more', [replacement(4, 0, 3), user(5, 'e')], [4, 5]],
    ['a replacement', [replacement(4, 0, 1), replacement(5, 4, 4)], [5, 2, 3]],
    ['a later seq before an earlier one', [replacement(4, 0, 1), replacement(5, 4, 2)], [5, 3]],
    ['again and again', [replacement(4, 0, 3), replacement(5, 4, 4), replacement(6, 5, 5), user(7, 'z')], [6, 7]],
  ]
  for (const [name, operations, expected] of cases) t.same(seqs([...log, ...operations]), expected, name)
  t.end()
})

t.test('a replacement that does not fit is an error', (t) => {
  const log = [user(0, 'a'), assistant(1, 'b'), user(2, 'c'), replacement(3, 0, 1)]
  const cases: [string, SessionEvent, string][] = [
    ['a start that is gone', replacement(4, 0, 2), '/surfaceOp/start'],
    ['an end that is gone', replacement(4, 3, 1), '/surfaceOp/end'],
    ['a start that never was', replacement(4, 9, 2), '/surfaceOp/start'],
    ['itself', replacement(4, 4, 4), '/surfaceOp/start'],
    ['the wrong order', replacement(4, 2, 3), '/surfaceOp/end'],
  ]
  for (const [name, event, path] of cases) {
    t.throws(() => foldSurface([...log, event]), { code: 'event/invalid', facts: { path } }, name)
  }
  t.end()
})

t.test('an assistant message without content is on the surface, but not seen', (t) => {
  const log = [user(0, 'a'), assistant(1, ''), user(2, 'c')]
  t.same(seqs(log), [0, 2])
  t.same(seqs([...log, replacement(3, 1, 1)]), [0, 3, 2], 'it can be replaced')
  t.end()
})

/** The surface as a plain list: slow, and plain to see. */
function surfaceAsList(events: readonly SessionEvent[]): SessionEvent[] {
  const surface: SessionEvent[] = []
  const at = (seq: number) => surface.findIndex((event) => event.seq === seq)
  for (const event of events) {
    if (event.surfaceOp === undefined) continue
    if (event.surfaceOp === 'append') surface.push(event)
    else {
      const { start, end } = event.surfaceOp
      surface.splice(at(start), at(end) - at(start) + 1, event)
    }
  }
  return surface
}

t.test('folding any log is folding a list, and its messages are the slices of its texts', (t) => {
  fc.assert(
    fc.property(logEvents, (events) => {
      const expected = surfaceAsList(events).flatMap((event) => {
        const text = JSON.stringify(event)
        const slice = messageSlice(event.type, text)
        if (slice === undefined) return []
        return [{ seq: event.seq, type: event.type, message: JSON.parse(text.slice(slice.start, slice.end)) }]
      })
      assert.deepEqual(foldSurface(events), expected)
    }),
    inTime(1000),
  )
  t.end()
})

t.test('many replacements of a long surface cost what they take away', (t) => {
  const count = 60_000
  const events: SessionEvent[] = []
  for (let seq = 0; seq < count; seq++) events.push(user(seq, ''))
  // Each replaces an entry in the middle, far from both ends.
  for (let seq = count; seq < 2 * count; seq++) events.push(replacement(seq, seq - count / 2 - 1, seq - count / 2 - 1))
  t.equal(foldSurface(events).length, count)
  t.end()
})
