import { Buffer } from 'node:buffer'
import t from 'tap'
import type { BatchLimits, EventBatch } from '../../src/cli/event-batches.ts'
import { readEventBatches } from '../../src/cli/event-batches.ts'

const LIMITS: BatchLimits = { bytes: 1000, lines: 4, pause: 20, lineBytes: 5000 }

const bare = (data: unknown) => JSON.stringify({ type: 'note', data })
const numbered = (seq: number) => JSON.stringify({ type: 'note', seq, time: 1, data: seq })
const row = (seq: number) =>
  `{"type":"chunks","event":{"type":"chunkrow/text-chunks","seq":${seq},"time":1,"data":{"turn":1,"step":1,"index":0,"dt":[0,0],"texts":["a","b","c"]}}}`

async function* pieces(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}

async function batchesOf(input: AsyncIterable<Uint8Array>, limits = LIMITS): Promise<EventBatch[]> {
  const batches: EventBatch[] = []
  for await (const batch of readEventBatches(input, limits)) batches.push(batch)
  return batches
}

t.test('a batch ends at its limit of lines and of bytes', async (t) => {
  const five = await batchesOf(pieces([1, 2, 3, 4, 5].map((n) => `${bare(n)}\n`).join('')))
  t.strictSame(
    five.map(({ events, places }) => [events, ...places]),
    [
      [4, 1, 2, 3, 4],
      [1, 5],
    ],
  )
  t.equal(five[0]?.lines, [1, 2, 3, 4].map((n) => `${bare(n)}\n`).join(''))

  const wide = bare('é'.repeat(200))
  const bytes = Buffer.byteLength(wide) + 1
  const exact = await batchesOf(pieces(`${wide}\n${wide}\n${wide}`), { ...LIMITS, bytes: 2 * bytes })
  t.strictSame(
    exact.map(({ events }) => events),
    [2, 1],
  )
  const less = await batchesOf(pieces(`${wide}\n${wide}\n${wide}`), { ...LIMITS, bytes: 2 * bytes - 1 })
  t.strictSame(
    less.map(({ events }) => events),
    [1, 1, 1],
  )
  const alone = await batchesOf(pieces(`${bare(1)}\n${bare('x'.repeat(3000))}\n${bare(2)}\n`))
  t.strictSame(
    alone.map(({ places }) => places),
    [[1], [2], [3]],
    'a line over the limit goes alone',
  )
})

t.test('lines with a seq and lines without one go apart; the members of a row are counted', async (t) => {
  const batches = await batchesOf(pieces([bare(1), numbered(1), row(2), '', bare(2), bare(3)].join('\r\n')))
  t.strictSame(
    batches.map(({ numbered, events, nextSeq, places }) => [numbered, events, numbered ? nextSeq : 0, places]),
    [
      [false, 1, 0, [1]],
      [true, 4, 5, [2, 3]],
      [false, 2, 0, [5, 6]],
    ],
  )
})

t.test('nothing in, nothing out', async (t) => {
  t.strictSame(await batchesOf(pieces()), [])
  t.strictSame(await batchesOf(pieces('\n', '', ' \r\n')), [])
  t.strictSame(
    (await batchesOf(pieces('\ufeff'.concat(bare(1))))).map(({ lines }) => lines),
    [`${bare(1)}\n`],
  )
})

t.test('what is there is given when the input pauses, and half a line waits for its other half', async (t) => {
  const more = Promise.withResolvers<void>()
  async function* pausing() {
    yield Buffer.from(`${bare(1)}\n${bare(2).slice(0, 5)}`)
    await more.promise
    yield Buffer.from(`${bare(2).slice(5)}\n`)
  }
  const seen: string[] = []
  for await (const { lines } of readEventBatches(pausing(), LIMITS)) {
    seen.push(lines)
    // The rest of the input comes only after this, so nothing but the pause can have given the first line.
    more.resolve()
  }
  t.strictSame(seen, [`${bare(1)}\n`, `${bare(2)}\n`])
})

t.test('a bad line ends it, after the lines before it', async (t) => {
  const cases: [string, { code: string; facts: object }][] = [
    ['no json', { code: 'event/invalid', facts: { line: 3 } }],
    ['{"type":"session","id":"x"}', { code: 'record/malformed', facts: { line: 3 } }],
    ['{"type":"omitted","event":{}}', { code: 'record/malformed', facts: { line: 3 } }],
    ['{"type":"note","seq":1,"data":1}', { code: 'event/invalid', facts: { line: 3, path: '/time' } }],
    [bare('x'.repeat(6000)), { code: 'request/too-large', facts: { line: 3, limit: 5000 } }],
  ]
  for (const [line, error] of cases) {
    const seen: number[] = []
    const reading = async () => {
      for await (const { places } of readEventBatches(pieces(`${bare(1)}\n\n${line}\n${bare(2)}\n`), LIMITS)) {
        seen.push(...places)
      }
    }
    await t.rejects(reading(), error)
    t.strictSame(seen, [1])
  }
})

t.test('a failure of the input comes out, also while a batch is on its way', async (t) => {
  const broken = new Error('the pipe is gone')
  async function* failing() {
    yield Buffer.from(`${bare(1)}\n${bare(2)}\n${bare(3)}\n${bare(4)}\n${bare(5)}\n`)
    throw broken
  }
  const seen: number[] = []
  const reading = async () => {
    for await (const { places } of readEventBatches(failing(), LIMITS)) {
      seen.push(...places)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  await t.rejects(reading(), broken)
  t.strictSame(seen, [1, 2, 3, 4], 'what was not given when it failed is not sent')
})
