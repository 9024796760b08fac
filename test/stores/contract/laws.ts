// What holds for every log, as properties: it is a function of its events, and nothing else ever shows.

import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Test } from 'tap'
import type { ChunksMode, SessionEvent } from '../../../codec/index.ts'
import { foldSurface, isMessage, packEvents } from '../../../codec/index.ts'
import { hardText, logEvents, nonEmptyLog } from '../../support/arbitraries.ts'
import {
  bodyOf,
  collect,
  eventsOf,
  linesOf,
  logBytes,
  pageRecords,
  pageStartOf,
  pageText,
  recordLine,
  turnedKeys,
  walkPages,
} from '../../support/logs.ts'
import { anyMode, BOX, type Subject } from './subject.ts'

export function lawsContract(t: Test, subject: Subject): void {
  const { history, created, stored, rangeText, wholeText, importText, exportText } = subject
  t.test('pages, counters and messages are functions of the events, at every moment of the log’s life', async () => {
    await fc.assert(
      fc.asyncProperty(
        logEvents,
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }),
        fc.constantFrom('events', 'rows', 'turned'),
        fc.array(fc.tuple(fc.nat(), fc.nat(), anyMode), { minLength: 1, maxLength: 4 }),
        async (events, sizes, form, ranges) => {
          const id = await created()
          for (let at = 0, turn = 0; at < events.length; turn++) {
            const batch = events.slice(at, at + (sizes[turn % sizes.length] as number))
            const lines =
              form === 'rows'
                ? packEvents(batch).map(recordLine)
                : batch.map((event) =>
                    JSON.stringify(
                      form === 'turned' && event.type === 'assistant/chunk' && isPackable(event)
                        ? turnedKeys(event)
                        : event,
                    ),
                  )
            await history.append(id, bodyOf(...lines), {})
            at += batch.length
            // A fixed range has these bytes now, though its last run may still be open, and for ever.
            const [one, other, chunks] = ranges[turn % ranges.length] as [number, number, ChunksMode]
            const [from, to] = [one % (at + 1), other % (at + 1)].sort((a, b) => a - b) as [number, number]
            assert.equal(await rangeText(id, from, to, chunks), pageText(events, from, to, chunks))
          }
          for (const [one, other, chunks] of ranges) {
            const [from, to] = [one, other].map((seq) => seq % (events.length + 1)).sort((a, b) => a - b) as [
              number,
              number,
            ]
            assert.equal(await rangeText(id, from, to, chunks), pageText(events, from, to, chunks))
          }
          const { head, messages, bytes } = await history.describe(id)
          assert.deepEqual(
            { head, messages, bytes },
            { head: events.length - 1, messages: events.filter(isMessage).length, bytes: logBytes(events) },
          )
          const surface = foldSurface(events).map(({ seq, message }) => JSON.stringify({ seq, message }))
          assert.deepEqual(linesOf(await collect((await history.messages({ id }, {})).bytes())), surface)
        },
      ),
      BOX,
    )
  })

  t.test('a walk of pages covers the log once in order, and omitted ranges fetched give back every event', async () => {
    // Cases A1, A9 and A10: whatever the size, no message is cut from what made it, no result is lost.
    await fc.assert(
      fc.asyncProperty(logEvents, fc.integer({ min: 1, max: 6 }), anyMode, async (events, maxMessages, chunks) => {
        const id = await stored(events)
        const walked: SessionEvent[][] = []
        for await (const page of walkPages(history, { id }, { maxMessages, chunks })) {
          assert.equal(page.from, pageStartOf(events, page.to, maxMessages))
          const fetched = async (fromSeq: number, toSeq: number) =>
            pageRecords(await history.range({ id }, { fromSeq, toSeq, chunks: 'packed' }))
          walked.unshift(await eventsOf(await pageRecords(page), fetched))
        }
        assert.deepEqual(walked.flat(), events)
      }),
      BOX,
    )
  })

  t.test('an export imported is the same session, in both layouts and any slicing', async () => {
    await fc.assert(
      fc.asyncProperty(logEvents, fc.boolean(), fc.integer({ min: 1, max: 300 }), async (events, packed, size) => {
        const id = await stored(events)
        const layout = packed ? 'packed' : 'events'
        const file = await exportText(id, layout)
        const { epoch, head } = await history.describe(id)
        assert.deepEqual(await importText(file, { size }), { id, epoch, head, created: false })
        const copy = `copy-${id}`
        const renamed = file.replace(`"id":"${id}"`, `"id":"${copy}"`)
        const imported = await importText(renamed, { size, expectedHead: head })
        assert.deepEqual({ ...imported, epoch: '' }, { id: copy, epoch: '', head, created: true })
        assert.equal(await exportText(copy, layout), renamed)
        assert.equal(await rangeText(copy, 0, head + 1, 'packed'), pageText(events, 0, head + 1, 'packed'))
        const [one, other] = [await history.describe(id), await history.describe(copy)]
        assert.deepEqual([other.messages, other.bytes, other.head], [one.messages, one.bytes, one.head])
        const surface = async (of: string) => collect((await history.messages({ id: of }, {})).bytes())
        assert.equal(await surface(copy), await surface(id))
      }),
      BOX,
    )
  })

  t.test(
    'a failed request changes nothing, and requests repeated in any order and overlap store each event once',
    async () => {
      const faults = [
        '{"type":"x"}',
        'x',
        '{"type":"end","seq":0,"time":0,"data":0}',
        '{"type":"x","seq":900,"time":1,"data":0}',
        '{"type":"x","data":1}',
      ]
      await fc.assert(
        fc.asyncProperty(
          nonEmptyLog,
          fc.array(fc.tuple(fc.nat(), fc.integer({ min: 1, max: 9 }), fc.nat(), fc.constantFrom(...faults)), {
            minLength: 2,
            maxLength: 8,
          }),
          hardText,
          async (events, requests, other) => {
            const id = await created()
            let head = -1
            for (const [drawn, size, place, fault] of requests) {
              const from = drawn % Math.min(head + 2, events.length)
              const batch = events.slice(from, from + size)
              const lines = batch.map((event) => JSON.stringify(event))
              const before = await history.describe(id)
              const text = await wholeText(id)
              const broken = lines.toSpliced(1 + (place % lines.length), 0, fault)
              await assert.rejects(history.append(id, bodyOf(...broken), {}))
              const clash = JSON.stringify({ type: 'x', seq: from, time: 0, data: ['clash', other] })
              if (from <= head)
                await assert.rejects(history.append(id, bodyOf(clash, ...lines.slice(1)), {}), {
                  code: 'append/conflict',
                })
              assert.deepEqual(await history.describe(id), before)
              assert.equal(await wholeText(id), text)
              const { appended, duplicates } = await history.append(id, bodyOf(...lines), {})
              const after = Math.max(head, from + batch.length - 1)
              assert.deepEqual(
                { appended, duplicates },
                { appended: after - head, duplicates: batch.length - (after - head) },
              )
              head = after
            }
            assert.equal(await wholeText(id), pageText(events, 0, head + 1, 'expanded'))
          },
        ),
        BOX,
      )
    },
  )
}

function isPackable(event: SessionEvent): boolean {
  return packEvents([event, event, event].map((each, at) => ({ ...each, seq: event.seq + at }))).length === 1
}
