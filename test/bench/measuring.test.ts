// The instruments of the bench: what they say of known values and of known servers.

import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import t from 'tap'
import { appendLoad, BATCH_EVENTS, tokenBatch } from '../../bench/measuring/append-load.ts'
import { timeGet } from '../../bench/measuring/http-get.ts'
import { inTurns } from '../../bench/measuring/page-probe.ts'
import { columns, ratio, resultLine, single, spread, table } from '../../bench/measuring/report.ts'
import { overlap, pairRatios, percentile, summarise } from '../../bench/measuring/statistics.ts'
import { linesOf } from '../../bench/references/lines-file.ts'
import { deltaText, parseEventText } from '../../codec/index.ts'

t.test(
  'percentile: the smallest value that so many do not exceed; the median of an even count is a mean',
  async (t) => {
    const hundred = Array.from({ length: 100 }, (_, place) => 100 - place)
    for (const [percent, expected] of [
      [1, 1],
      [50, 50.5],
      [95, 95],
      [99, 99],
      [100, 100],
    ] as const) {
      t.equal(percentile(hundred, percent), expected, `p${percent} of 1 to 100`)
    }
    t.equal(percentile([7], 99), 7)
    t.equal(percentile([3, 1, 2], 50), 2)
    t.throws(() => percentile([], 50), RangeError)
    t.same(summarise([10, 9, 2]), { median: 9, least: 2, most: 10, count: 3 }, 'numbers in order, not texts')
  },
)

t.test('ratio: of pairs, because pairs share their slow moments', async (t) => {
  t.match(ratio('r', [10, 100, 12], [5, 50, 6]), { value: 2, least: 2, most: 2, count: 3, unit: 'x' })
})

t.test('pairRatios: as many as there are pairs', async (t) => {
  t.same(pairRatios([10, 100, 12], [5, 50]), [2, 2])
  t.same(pairRatios([], [1]), [])
})

t.test('overlap: a value in common, the edges included', async (t) => {
  const at = (least: number, most: number) => ({ least, most })
  for (const [a, b, expected] of [
    [at(1, 2), at(3, 4), false],
    [at(1, 3), at(3, 4), true],
    [at(1, 9), at(3, 4), true],
    [at(3, 4), at(1, 9), true],
    [at(5, 6), at(3, 4), false],
  ] as const) {
    t.equal(overlap(a, b), expected)
    t.equal(overlap(b, a), expected)
  }
})

t.test('columns: each as wide as its widest cell', async (t) => {
  t.same(
    columns(
      [
        ['a', '1', 'x'],
        ['bcd', '23', ''],
      ],
      [1],
    ),
    ['  a     1  x', '  bcd  23'],
  )
  t.same(columns([], []), [])
})

t.test('resultLine: one line of JSON with the machine, only where a section has one', async (t) => {
  const section = { title: 'Title', figures: [], label: 'SOME_RESULT', result: { times: [1.23456, 7], name: 'x\ny' } }
  const line = resultLine(section, { cores: 2 }, true) as string
  t.equal(line, 'SOME_RESULT {"machine":{"cores":2},"quick":true,"times":[1.235,7],"name":"x\\ny"}')
  t.equal(resultLine({ title: 'Title', figures: [] }, { cores: 2 }, true), undefined)
})

t.test('table: aligned, with spreads only of several measurements', async (t) => {
  const figures = [single('one', 'bytes', 6_266_719), spread('several', 'ms', [1.5, 2.25, 3], 'a note')]
  t.equal(
    table({ title: 'Title', figures }),
    ['Title', '  one      6,266,719 bytes', '  several          2.25 ms  1.50 – 3 of 3  a note'].join('\n'),
  )
})

t.test('inTurns: round by round, results by probe', async (t) => {
  const order: string[] = []
  const probe = (name: string) => async () => `${name}${order.push(name)}`
  t.same(await inTurns(2, [probe('a'), probe('b')]), [
    ['a1', 'a3'],
    ['b2', 'b4'],
  ])
})

t.test('timeGet: first byte of the body, last byte of the framing, any slicing', async (t) => {
  const port = await serve(t, async (_request, response) => {
    response.flushHeaders()
    for (const piece of ['{"seq":0}\n', '{"seq":1}', '\n']) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      response.write(piece)
    }
    response.end()
  })
  const { first, last, wireBytes } = await timeGet(port, '/')
  t.ok(first > 0 && last > first)
  t.ok(wireBytes > 20)
})

t.test('timeGet: an error or a cut-off body is no time', async (t) => {
  const refusing = await serve(t, (_request, response) => response.writeHead(404).end('no'))
  await t.rejects(timeGet(refusing, '/'), { message: /not a chunked 200/ })
  const cutting = await serve(t, (_request, response) => {
    response.write('{"seq":0}\n', () => response.destroy())
  })
  await t.rejects(timeGet(cutting, '/'))
})

t.test('tokenBatch: consecutive deltas in the one text that they have', async (t) => {
  let next = 0
  for (const place of [0, 1, 2, 29, 30, 31]) {
    const lines = [...linesOf(tokenBatch(place))]
    t.equal(lines.length, BATCH_EVENTS)
    next = place * BATCH_EVENTS
    for (const line of lines) {
      const text = line.toString().trimEnd()
      const { delta, seq, time } = parseEventText(text)
      if (!delta || seq !== next++ || deltaText(delta, seq, time as number) !== text) t.fail(text)
    }
  }
})

t.test('appendLoad: one request in flight a session, each session in order, all counted', async (t) => {
  const inFlight = new Map<string, number>()
  const sent = new Map<string, number>()
  const port = await serve(t, async (request, response) => {
    const url = request.url as string
    inFlight.set(url, (inFlight.get(url) ?? 0) + 1)
    if (inFlight.get(url) !== 1) t.fail('a second request before the answer')
    let body = ''
    for await (const piece of request) body += piece
    const place = sent.get(url) ?? 0
    if (body !== tokenBatch(place).toString()) t.fail(`not batch ${place} of ${url}`)
    sent.set(url, place + 1)
    inFlight.set(url, 0)
    response.end('{}')
  })
  const result = await appendLoad({ port, ids: ['a', 'b', 'c'], batches: 40, warmUpMs: 0, measureMs: 60_000 })
  t.same([...sent.keys()].sort(), ['/v1/sessions/a/events', '/v1/sessions/b/events', '/v1/sessions/c/events'])
  t.ok(
    [...sent.values()].some((count) => count === 40),
    'it ends when one has sent everything',
  )
  t.ok(result.batches > 0 && result.latencies.length === result.batches)
})

t.test('appendLoad: a refusal ends it', async (t) => {
  const port = await serve(t, (_request, response) => response.writeHead(409).end('{}'))
  await t.rejects(appendLoad({ port, ids: ['a'], batches: 2, warmUpMs: 0, measureMs: 1_000 }), {
    message: /append refused/,
  })
})

async function serve(t: Test, listener: RequestListener): Promise<number> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
