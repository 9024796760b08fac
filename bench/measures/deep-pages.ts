// Pages deep inside a log of 500,000 events: those that end at 98 %, 50 % and 2 % of it.

import { LONG_SESSION, longSessionHeader, longSessionPieces } from '../fixtures/index.ts'
import { inTurns, probePage } from '../measuring/page-probe.ts'
import type { Figure, Section } from '../measuring/report.ts'
import { single, spread } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'
import { fillStore, newestPage, startService } from '../measuring/service.ts'
import { percentile } from '../measuring/statistics.ts'

const EVENTS = 500_000
const DEPTHS = [98, 50, 2] as const

export async function measureDeepPages(bench: Bench): Promise<Section> {
  bench.progress('import of 500,000 events')
  const seconds = await fillStore(bench, 'deep', longSessionHeader('deep'), longSessionPieces(EVENTS))
  const service = await startService(bench, 'deep')
  try {
    bench.progress('deep pages')
    let request = 0
    const probes = DEPTHS.map(
      (depth) => () => probePage(service, `${newestPage('deep')}?beforeSeq=${end(depth, request++)}`),
    )
    await inTurns(10, probes)
    const costs = await inTurns(bench.quick ? 40 : 120, probes)
    return {
      title: 'Pages at 98 %, 50 % and 2 % of 500,000 events',
      figures: [
        single('import', '/s', EVENTS / seconds, 'events of packed rows'),
        ...(['first', 'last'] as const).flatMap((part) =>
          depthFigures(
            part,
            costs.map((cost) => cost.map((at) => at[part])),
          ),
        ),
      ],
    }
  } finally {
    await service.stop()
  }
}

/** A page start near that depth, another one each time. */
function end(depth: number, request: number): number {
  const turns = EVENTS / LONG_SESSION.eventsOfTurn
  return (Math.floor((turns * depth) / 100) + (request % 17)) * LONG_SESSION.eventsOfTurn
}

function depthFigures(part: string, times: readonly (readonly number[])[]): Figure[] {
  const p95 = times.map((values) => percentile(values, 95))
  const medians = times.map((values) => percentile(values, 50))
  return [
    ...DEPTHS.map((depth, place) => spread(`${part} byte at ${depth} %`, 'ms', times[place] ?? [])),
    ...DEPTHS.map((depth, place) => single(`${part} byte at ${depth} %, p95`, 'ms', p95[place] as number)),
    single(`${part} byte, largest / smallest p95`, 'x', Math.max(...p95) / Math.min(...p95)),
    single(`${part} byte, largest / smallest median`, 'x', Math.max(...medians) / Math.min(...medians)),
  ]
}
