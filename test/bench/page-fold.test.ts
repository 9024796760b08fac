// What the inventory's clients fold: one input a record, and the same views for the same events, however they were sent.

import t from 'tap'
import {
  HUGE_PAGE,
  liveBlock,
  PARTITIONS,
  pageEvents,
  REPRESENTATIONS,
  represent,
  shortTurns,
  whiteSpaceStep,
  withOmitted,
} from '../../bench/fixtures/index.ts'
import { checkFolded } from '../../bench/inventory/client.ts'
import type { Folded } from '../../bench/measuring/page-fold.ts'
import { PageFold, STAGES, twoDefinitions } from '../../bench/measuring/page-fold.ts'
import { readViews } from '../../bench/measuring/view-reading.ts'
import type { SessionHistoryRecord } from '../../codec/index.ts'
import { encodeRecords } from '../../codec/index.ts'

t.test('the heavy page from its bytes: raw and packed, at once and as they come', async (t) => {
  const events = pageEvents('heavy')
  const lastDelta = events.findLast(({ data }) => JSON.stringify(data).includes('-delta"'))?.seq
  for (const as of ['raw', 'packed'] as const) {
    const records = represent(events, as)
    const body = Buffer.from(encodeRecords(records))
    const atOnce = folded(body, 'at once')
    t.equal(atOnce.inputs, records.length, `${as}: one input a record`)
    t.equal(atOnce.lastDeltaSeq, lastDelta)
    t.same(folded(body, 'as they come'), atOnce, `${as}: the same in pieces`)
  }
  const [raw, projected, packed] = REPRESENTATIONS.map((as) => {
    const records = as === 'projected' ? withOmitted(events) : represent(events, as)
    return folded(Buffer.from(encodeRecords(records)), 'at once')
  }) as [Folded, Folded, Folded]
  checkFolded(raw, packed)
  t.equal(raw.deltas, 26_562 - 2 * 111 - 2 * 45, 'all chunks but those that open, close and end')
  t.equal(projected.deltas, 0, 'figures of tokens that were left out are absent')
  t.equal(projected.items, raw.items)
})

t.test('the page of 416,756 events: raw and packed have equal views, every delta is counted', async (t) => {
  const events = pageEvents('huge-words')
  const views = (['raw', 'packed'] as const).map((as) => {
    const records = represent(events, as)
    const fold = new PageFold()
    fold.keep(records)
    fold.fold()
    return fold.folded()
  })
  const [raw, packed] = views as [Folded, Folded]
  checkFolded(raw, packed)
  t.equal(raw.inputs, HUGE_PAGE.events)
  t.equal(packed.inputs, HUGE_PAGE.records)
  t.equal(packed.deltas, HUGE_PAGE.deltas)
  t.equal(packed.lastDeltaSeq, 416_748)
})

t.test('white space: the same views in each partition, and with one change an event', async (t) => {
  const atOnce = PARTITIONS.map((partition) => checksumOf([whiteSpaceStep(10_000, partition)]))
  const live = checksumOf(whiteSpaceStep(10_000, 'single events').map((record) => [record]))
  t.equal(new Set([...atOnce, live]).size, 1)
})

t.test('short turns: seven records each, settled, two items each', async (t) => {
  const records = shortTurns(20)
  t.equal(records.length, 20 * 7)
  t.ok(
    records.every(({ event }, place) => event.seq === place),
    'seqs without a hole',
  )
  const assembler = twoDefinitions()
  assembler.apply({ type: 'append', entries: records })
  const views = assembler.view('chat')
  t.equal(views.length, 20 * 2)
  t.match(readViews(views), { deltas: 40, lastDeltaSeq: 19 * 7 + 4 })
})

t.test('a live block has all of its characters', async (t) => {
  const records = liveBlock(10_007)
  t.ok(records.length > 400 && records.length < 500, 'in fragments of 22 to 24')
  const assembler = twoDefinitions()
  assembler.apply({ type: 'append', entries: records })
  const answer = assembler.view('chat').find((view) => view.kind === 'assistant')
  t.same(
    answer?.blocks.map((block) => (block.type === 'text' ? block.text.length : block.type)),
    [10_007],
  )
})

t.test('reading views: every text counts, tokens of assistants alone', async (t) => {
  const views = [
    { kind: 'assistant', deltas: 3, lastDeltaSeq: 9, blocks: [{ text: 'abc' }, { text: '' }] },
    { kind: 'assistant', blocks: [] },
    { kind: 'tail', deltas: 100, lastDeltaSeq: 100, how: null },
  ]
  const read = readViews(views, { hashed: true })
  t.match(read, { items: 3, deltas: 3, lastDeltaSeq: 9, characters: 'assistant'.length * 2 + 'tail'.length + 3 })
  t.match(read.checksum, /^[0-9a-f]{16}$/)
  t.not(readViews([{ ...views[0], deltas: 4 }, ...views.slice(1)], { hashed: true }).checksum, read.checksum)
  t.equal(readViews(views).checksum, '', 'not asked for')
})

t.test('views that differ, or entries told twice, stop the bench', async (t) => {
  const one: Folded = { items: 1, characters: 2, deltas: 3, lastDeltaSeq: 4, checksum: 'a', records: 5, inputs: 5 }
  t.doesNotThrow(() => checkFolded(one, { ...one, records: 2, inputs: 2 }))
  for (const other of [{ checksum: 'b' }, { items: 2 }, { characters: 0 }, { deltas: 2 }, { lastDeltaSeq: 3 }]) {
    t.throws(() => checkFolded(one, { ...one, ...other }), { message: /raw and packed differ/ })
  }
  t.throws(() => checkFolded(one, { ...one, inputs: 6 }), { message: /6 inputs for 5 records/ })
})

function folded(body: Buffer, how: 'at once' | 'as they come'): Folded {
  const fold = new PageFold()
  const pieceBytes = 10_007
  for (let start = 0; start < body.length; start += pieceBytes) {
    const piece = body.subarray(start, start + pieceBytes)
    if (how === 'at once') fold.take(piece)
    else fold.takeAndFold(piece)
  }
  const last = fold.end()
  fold.fold(how === 'at once' ? undefined : last)
  fold.read()
  if (!STAGES.every((stage) => fold.times[stage] >= 0)) throw new Error('a step took less than no time')
  return fold.folded()
}

function checksumOf(changes: readonly (readonly SessionHistoryRecord[])[]): string {
  const assembler = twoDefinitions()
  for (const entries of changes) assembler.apply({ type: 'append', entries })
  return readViews(assembler.view('chat'), { hashed: true }).checksum
}
