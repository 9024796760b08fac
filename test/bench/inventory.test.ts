// From samples to the inventory's result, its figures and its chart: small numbers made up for it.

import t from 'tap'
import type { Representation } from '../../bench/fixtures/index.ts'
import { REPRESENTATIONS } from '../../bench/fixtures/index.ts'
import { byRepresentation } from '../../bench/inventory/bodies.ts'
import { inventoryChart } from '../../bench/inventory/chart.ts'
import { inventoryFigures } from '../../bench/inventory/figures.ts'
import type { FixtureResult, FixtureSamples } from '../../bench/inventory/result.ts'
import { inventoryResult } from '../../bench/inventory/result.ts'

const SCALE: Readonly<Record<Representation, number>> = { raw: 100, projected: 5, packed: 10 }

t.test('the result: medians with spreads, percent fewer than raw, ratios of pairs', async (t) => {
  const { representations, hostMs, ratios, events } = resultOf({ loopback: true })
  t.equal(events, 1_000)
  t.match(representations.packed, {
    ...{ records: 10, jsonBytes: 10_000, gzipBytes: 1_000, brotliBytes: 100, foldedBytes: 10_000 },
    fewerPercent: { json: 90, gzip: 90, brotli: 90 },
    clientMs: {
      fresh: { parse: { median: 20, least: 10, most: 30, count: 3 }, total: { median: 100, count: 3 } },
      same: { total: { median: 50, count: 1 } },
    },
    heapBytes: { kept: { median: 10 * 2 ** 20 }, highest: { median: 20 * 2 ** 20 } },
    loopbackMs: { transfer: { median: 10 }, uiReady: { median: 30 }, serviceReady: { median: 50 } },
    views: { checksum: 'abc', items: 2, inputs: 10 },
    tokens: { deltas: 7, lastDeltaSeq: 9 },
  })
  t.equal(representations.projected.foldedBytes, 5_500)
  t.match(hostMs, { pack: { median: 2 }, serialise: { median: 20 }, total: { median: 22, least: 11, most: 33 } })
  t.match(ratios, { clientFresh: { median: 10, count: 3 }, heapKept: { median: 10 }, uiReady: { median: 10 } })
  t.notOk(JSON.stringify(representations).includes('/tmp'), 'no paths')
})

t.test('a page that was not sent has no figures of sending', async (t) => {
  const { representations, ratios } = resultOf({ loopback: false })
  t.equal(representations.raw.loopbackMs, undefined)
  t.same(Object.keys(ratios), ['clientFresh', 'clientSame', 'heapKept', 'heapHighest'])
  t.notOk(inventoryFigures('heavy', resultOf({ loopback: false })).some(({ name }) => /transfer|ready/i.test(name)))
})

t.test('the figures: what is to be compared stands together, each name once', async (t) => {
  const figures = inventoryFigures('huge-words', resultOf({ loopback: true }))
  const names = figures.map(({ name }) => name)
  t.equal(new Set(names).size, names.length)
  const place = names.indexOf('huge-words: JSON, raw')
  t.same(
    names.slice(place, place + 3),
    REPRESENTATIONS.map((as) => `huge-words: JSON, ${as}`),
  )
  const named = (name: string) => figures.find((figure) => figure.name === `huge-words: ${name}`)
  t.match(named('JSON, packed'), { value: 10_000, unit: 'bytes', note: '90.0 % fewer than raw' })
  t.match(named('JSON, raw without the frame of a record'), {
    value: 50_000,
    note: 'packed is 80.0 % fewer than these',
  })
  t.match(named('fresh process, total, raw / packed'), { value: 10, unit: 'x', count: 3 })
  t.match(named('heap, packed'), { value: 10, unit: 'MiB' })
  t.match(named('items of the views, raw'), { value: 2, note: 'checksum abc' })
})

t.test('the chart: every number, bars in proportion, words for those who do not see it', async (t) => {
  const svg = inventoryChart('A <page> & more', 'one machine', resultOf({ loopback: true }))
  t.match(svg, '<title id="title">A &lt;page&gt; &amp; more</title>')
  t.match(svg, /<desc id="desc">JSON on the wire: 0\.10 MB for every event, /)
  t.match(svg, 'aria-labelledby="title desc"')
  t.match(svg, 'prefers-color-scheme: dark')
  t.match(svg, 'system-ui')
  for (const shown of ['0.10 MB', '1,000 ms', '100 ms', '50 ms', '300 ms', '100 MiB', '5 MiB']) t.match(svg, shown)
  const widths = [...svg.matchAll(/<rect class="(\w+)" x="176" y="\d+" width="([\d.]+)"/g)]
  t.equal(widths.length, 6 * 3 + 1, 'six groups, and the legend has one bar at the same place')
  const [, raw, projected, packed] = widths.map(([, , width]) => Number(width)) as [number, number, number, number]
  t.ok(Math.abs(raw / packed - 10) < 0.1 && Math.abs(raw / projected - 20) < 0.1)
  t.same(unclosed(svg), [])
})

t.test('the chart leaves out a group of which nothing was measured', async (t) => {
  const svg = inventoryChart('A page', 'one machine', resultOf({ loopback: false }))
  t.notMatch(svg, 'Request to folded views')
  t.match(svg, 'Bytes to folded views')
  t.notMatch(svg, /NaN|undefined/)
})

/** Elements that were opened and not closed, or the other way round. */
function unclosed(svg: string): string[] {
  const open: string[] = []
  for (const [, end, name = '', rest = ''] of svg.matchAll(/<(\/?)([a-z]+)([^<>]*)>/g)) {
    if (rest.endsWith('/')) continue
    if (end === '') open.push(name)
    else if (open.pop() !== name) return [name]
  }
  return open
}

function resultOf({ loopback }: { loopback: boolean }): FixtureResult {
  const times = (scale: number) => {
    const one = scale / 5
    return { parse: one, validate: one, retain: one, fold: one, view: one }
  }
  const samples: FixtureSamples = {
    bodies: {
      events: 1_000,
      bareEventBytes: 50_000,
      bodies: byRepresentation(
        REPRESENTATIONS.map((as) => {
          const jsonBytes = SCALE[as] * 1_000
          const sizes = { records: SCALE[as], jsonBytes, gzipBytes: jsonBytes / 10, brotliBytes: jsonBytes / 100 }
          return [as, { ...sizes, file: '/tmp/body', fileBytes: as === 'projected' ? jsonBytes + 500 : jsonBytes }]
        }),
      ),
    },
    host: { pack: [1, 2, 3], serialise: [10, 20, 30], serialiseRaw: [100, 200, 300] },
    client: byRepresentation(
      REPRESENTATIONS.map((as) => {
        const scale = SCALE[as]
        const counts = { items: 2, characters: 3, deltas: 7, lastDeltaSeq: 9 }
        const cost = {
          fresh: [times(scale * 10), times(scale * 5), times(scale * 15)],
          same: [times(scale * 5)],
          heaps: [{ kept: scale * 2 ** 20, highest: scale * 2 ** 21 }],
          folded: { ...counts, checksum: 'abc', records: scale, inputs: scale },
        }
        return [as, cost]
      }),
    ),
    loopback: loopback
      ? byRepresentation(
          REPRESENTATIONS.map((as) => {
            const at = (factor: number) => [SCALE[as] * factor]
            const service = { serviceWait: at(4), serviceReady: at(5) }
            return [as, { transfer: at(1), apiWait: at(2), uiReady: at(3), ...service }]
          }),
        )
      : undefined,
  }
  return inventoryResult({ 'huge-words': samples }).fixtures['huge-words'] as FixtureResult
}
