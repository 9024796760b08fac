// What the inventory found, with names that stay: the `HISTORY_TRANSPORT_PERF_RESULT` line, and what the chart draws.

import type { PageFixtureName, Representation } from '../fixtures/index.ts'
import { REPRESENTATIONS } from '../fixtures/index.ts'
import type { StageTimes } from '../measuring/page-fold.ts'
import { STAGES } from '../measuring/page-fold.ts'
import type { Summary } from '../measuring/statistics.ts'
import { pairRatios, summarise } from '../measuring/statistics.ts'
import type { Bodies, Sizes } from './bodies.ts'
import { BROTLI_QUALITY, byRepresentation, fewer, GZIP_LEVEL } from './bodies.ts'
import type { ClientCosts } from './client.ts'
import { total } from './client.ts'
import type { HostTimes } from './host.ts'
import type { LoopbackTimes } from './loopback.ts'

/** Everything that was measured of one page, before it is summed up. */
export interface FixtureSamples {
  readonly bodies: Bodies
  readonly host: HostTimes
  readonly client: ClientCosts
  /** Only of the page that the others stand for. */
  readonly loopback: LoopbackTimes | undefined
}

export type StageSummaries = Readonly<Record<(typeof STAGES)[number] | 'total', Summary>>

export interface RepresentationResult extends Sizes {
  /** JSON bytes that a client folds: the projection with its `omitted` records. */
  readonly foldedBytes: number
  /** Percent fewer bytes than raw. */
  readonly fewerPercent: { readonly json: number; readonly gzip: number; readonly brotli: number }
  /** First page of a fresh process, and later pages of one process. */
  readonly clientMs: { readonly fresh: StageSummaries; readonly same: StageSummaries }
  readonly heapBytes: { readonly kept: Summary; readonly highest: Summary }
  readonly views: { readonly checksum: string; readonly items: number; readonly inputs: number }
  readonly tokens: { readonly deltas: number; readonly lastDeltaSeq: number }
  readonly loopbackMs?: Readonly<Record<keyof LoopbackTimes['raw'], Summary>>
}

export interface FixtureResult {
  readonly events: number
  readonly bareEventBytes: number
  readonly hostMs: Readonly<Record<'pack' | 'serialise' | 'total' | 'serialiseRaw', Summary>>
  readonly representations: Readonly<Record<Representation, RepresentationResult>>
  /** Raw over packed. */
  readonly ratios: Readonly<Record<string, Summary>>
}

export interface InventoryResult {
  readonly compression: { readonly gzipLevel: number; readonly brotliQuality: number }
  readonly fixtures: Readonly<Partial<Record<PageFixtureName, FixtureResult>>>
}

export function inventoryResult(samples: Readonly<Partial<Record<PageFixtureName, FixtureSamples>>>): InventoryResult {
  const fixtures = Object.entries(samples).map(([name, each]) => [name, fixtureResult(each)])
  return {
    compression: { gzipLevel: GZIP_LEVEL, brotliQuality: BROTLI_QUALITY },
    fixtures: Object.fromEntries(fixtures) as InventoryResult['fixtures'],
  }
}

function fixtureResult(samples: FixtureSamples): FixtureResult {
  const { bodies, host, client, loopback } = samples
  const both = host.pack.map((time, round) => time + (host.serialise[round] as number))
  return {
    events: bodies.events,
    bareEventBytes: bodies.bareEventBytes,
    hostMs: {
      pack: summarise(host.pack),
      serialise: summarise(host.serialise),
      total: summarise(both),
      serialiseRaw: summarise(host.serialiseRaw),
    },
    representations: byRepresentation(REPRESENTATIONS.map((as) => [as, representationResult(samples, as)])),
    ratios: {
      clientFresh: overPacked((as) => client[as].fresh.map(total)),
      clientSame: overPacked((as) => client[as].same.map(total)),
      heapKept: overPacked((as) => client[as].heaps.map(({ kept }) => kept)),
      heapHighest: overPacked((as) => client[as].heaps.map(({ highest }) => highest)),
      ...(loopback && {
        transfer: overPacked((as) => loopback[as].transfer),
        uiReady: overPacked((as) => loopback[as].uiReady),
        serviceReady: overPacked((as) => loopback[as].serviceReady),
      }),
    },
  }
}

function representationResult({ bodies, client, loopback }: FixtureSamples, as: Representation): RepresentationResult {
  const { file: _, fileBytes, ...sizes } = bodies.bodies[as]
  const { fresh, same, heaps, folded } = client[as]
  const raw = bodies.bodies.raw
  const answers = loopback && Object.entries(loopback[as]).map(([what, each]) => [what, summarise(each)] as const)
  return {
    ...sizes,
    foldedBytes: fileBytes,
    fewerPercent: {
      json: fewer(sizes.jsonBytes, raw.jsonBytes),
      gzip: fewer(sizes.gzipBytes, raw.gzipBytes),
      brotli: fewer(sizes.brotliBytes, raw.brotliBytes),
    },
    clientMs: { fresh: stageSummaries(fresh), same: stageSummaries(same) },
    heapBytes: {
      kept: summarise(heaps.map(({ kept }) => kept)),
      highest: summarise(heaps.map(({ highest }) => highest)),
    },
    views: { checksum: folded.checksum, items: folded.items, inputs: folded.inputs },
    tokens: { deltas: folded.deltas, lastDeltaSeq: folded.lastDeltaSeq },
    ...(answers && { loopbackMs: named(answers) as Record<keyof LoopbackTimes['raw'], Summary> }),
  }
}

function stageSummaries(times: readonly StageTimes[]): StageSummaries {
  const stages = STAGES.map((stage) => [stage, summarise(times.map((each) => each[stage]))] as const)
  return { ...named(stages), total: summarise(times.map(total)) }
}

function overPacked(of: (as: Representation) => readonly number[]): Summary {
  return summarise(pairRatios(of('raw'), of('packed')))
}

function named<Name extends string>(entries: readonly (readonly [Name, Summary])[]): Record<Name, Summary> {
  return Object.fromEntries(entries) as Record<Name, Summary>
}
