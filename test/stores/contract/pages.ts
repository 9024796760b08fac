// Pages and the surface: walks that nothing moves, batches that join, readers beside writers.

import assert from 'node:assert/strict'
import type { Test } from 'tap'
import type { SessionEvent } from '../../../codec/index.ts'
import { foldSurface } from '../../../codec/index.ts'
import type { HistoryStore } from '../../../src/history/index.ts'
import {
  assistantMessage,
  bodyOfEvents,
  messagesLog,
  pageRecords,
  pageText,
  textDelta,
  textDeltas,
  userMessage,
  walkPages,
} from '../../support/logs.ts'
import { MODES, type Subject } from './subject.ts'

export function pagesContract(t: Test, subject: Subject): void {
  const { store, history, created, stored, rangeText } = subject
  t.test('messages of one and the same time are paged by their place', async (t) => {
    // Case A4.
    const events = messagesLog(45)
    const id = await stored(events)
    const seen: number[] = []
    for await (const page of walkPages(history, { id }, { maxMessages: 20 })) {
      seen.unshift(...(await pageRecords(page)).map(({ event }) => event.seq))
    }
    t.strictSame(seen, [...events.keys()])
  })

  t.test('messages appended during a walk move nothing of it', async (t) => {
    // Case A5.
    const events = messagesLog(200)
    const id = await stored(events)
    const seen: number[] = []
    let head = 199
    for await (const page of walkPages(history, { id }, { maxMessages: 9 })) {
      seen.unshift(...(await pageRecords(page)).map(({ event }) => event.seq))
      await history.append(id, bodyOfEvents([userMessage(++head)]), {})
    }
    t.strictSame(seen, [...events.keys()])
  })

  t.test('an ever growing run costs nothing but itself at any edge', async (t) => {
    const events = [userMessage(0), ...textDeltas(1, 9), assistantMessage(9, [1]), ...textDeltas(10, 12)]
    const id = await created()
    for (const event of events) {
      await history.append(id, bodyOfEvents([event]), {})
      const to = event.seq + 1
      for (let from = 0; from <= to; from++) {
        for (const chunks of MODES)
          assert.equal(await rangeText(id, from, to, chunks), pageText(events, from, to, chunks))
      }
    }
    t.equal((await history.describe(id)).head, 11)
  })

  t.test('reads come in bounded batches that join', async (t) => {
    const events = [...messagesLog(40), ...textDeltas(40, 60), userMessage(60), ...textDeltas(61, 70)]
    const id = await stored(events)
    const { log } = await history.describe(id)
    for (const chunkLines of [true, false]) {
      for (const maxBytes of [0, 1, 500, 1e9]) {
        const seen: number[] = []
        for (let at = 3; at < 66; ) {
          const records = await store.read(log, at, 66, { maxBytes, chunkLines })
          assert(records.length > 0)
          const bytes = records.slice(0, -1).reduce((sum, { line }) => sum + (line?.length ?? 0), 0)
          // The open run is one record more, however large.
          if (maxBytes <= 1) assert(records.length <= 2)
          assert(bytes <= Math.max(maxBytes, 500) + 5_000)
          for (const { first, last, kind, line } of records) {
            for (let seq = Math.max(first, at); seq <= Math.min(last, 65); seq++) seen.push(seq)
            const inside = first >= 3 && last < 66
            assert.equal(line === undefined, !chunkLines && kind !== 'event' && inside && first < 61)
          }
          at = (records.at(-1)?.last as number) + 1
        }
        t.strictSame(
          seen,
          Array.from({ length: 63 }, (_, index) => index + 3),
          `${maxBytes} bytes, lines ${chunkLines}`,
        )
      }
    }
    const surface: number[] = []
    for (let after: Parameters<HistoryStore['readSurface']>[2], reads = 0; ; reads++) {
      const { messages, next } = await store.readSurface(log, 69, after, 1)
      surface.push(...messages.map(({ seq }) => seq))
      if (!next) {
        t.ok(reads >= 40, 'one message a read')
        break
      }
      after = next
    }
    t.strictSame(surface, [...messagesLog(40).keys(), 60])
    t.strictSame(await store.messageGroups(log, 0, 70), [])
    t.equal(await store.pageStart(log, 70, 1), 60)
    t.equal(await store.pageStart(log, 60, 1), 39)
    t.equal(await store.pageStart(log, 60, 41), 0)
    t.equal(await store.pageStart(log, 0, 1), 0)
  })

  t.test('messages are counted from a seq on, up to a limit', async (t) => {
    const replaced: SessionEvent = { ...userMessage(6), surfaceOp: { op: 'replace', start: 0, end: 0 } }
    const result: SessionEvent = { ...userMessage(7), type: 'tool/result' }
    const { surfaceOp: _, ...unsurfaced } = userMessage(8)
    const events = [
      ...messagesLog(2),
      ...textDeltas(2, 5),
      assistantMessage(5, [2, 3, 4]),
      replaced,
      result,
      unsurfaced,
    ]
    const { log } = await history.describe(await stored([...events, userMessage(9)]))
    const messages = [0, 1, 5, 9]
    for (let from = 0; from <= 11; from++) {
      const count = messages.filter((seq) => seq >= from).length
      for (let limit = 1; limit <= 6; limit++) {
        assert.equal(
          await store.countMessages(log, from, limit),
          Math.min(count, limit),
          `from ${from}, up to ${limit}`,
        )
      }
    }
    t.equal(await store.countMessages((await history.describe(await created())).log, 0, 9), 0)
  })

  t.test('the surface is told as it stood at the head that is asked for', async (t) => {
    const replace = (seq: number, start: number, end: number): SessionEvent => ({
      ...userMessage(seq),
      surfaceOp: { op: 'replace', start, end },
    })
    const events = [...messagesLog(4), replace(4, 1, 2), userMessage(5), replace(6, 0, 4), replace(7, 3, 5)]
    const id = await stored(events)
    const { log } = await history.describe(id)
    for (let head = -1; head < events.length; head++) {
      const { messages } = await store.readSurface(log, head, undefined, 1e6)
      t.strictSame(
        messages.map(({ seq }) => seq),
        foldSurface(events.slice(0, head + 1)).map(({ seq }) => seq),
        `at ${head}`,
      )
    }
  })

  t.test('readers and writers go on beside one another', async (t) => {
    // Case H3.
    const id = await created()
    let done = false
    const reading = Array.from({ length: 4 }, async () => {
      let pages = 0
      while (!done) {
        await pageRecords(await history.page({ id }, { maxMessages: 3, chunks: 'omit' }))
        pages++
      }
      return pages
    })
    for (let at = 0; at < 300; at += 3) {
      await history.append(
        id,
        bodyOfEvents([textDelta(at), textDelta(at + 1), assistantMessage(at + 2, [at, at + 1])]),
        {},
      )
    }
    done = true
    for (const pages of await Promise.all(reading)) t.ok(pages > 0)
    t.equal((await history.describe(id)).messages, 100)
  })
}
