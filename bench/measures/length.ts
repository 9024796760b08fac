// The newest page as the log behind it grows: a session of 1,000,000 events against one of 10,000.

import { longSessionHeader, longSessionPieces } from '../fixtures/index.ts'
import { inTurns, probeFresh, probePage } from '../measuring/page-probe.ts'
import type { Section } from '../measuring/report.ts'
import { ratio, single, spread } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'
import { fillStore, newestPage, startService } from '../measuring/service.ts'

const SHORT = 10_000
const LONG = 1_000_000

/** Two stores, because a store's depth is part of what may cost. */
export async function measureLength(bench: Bench): Promise<Section> {
  const seconds: number[] = []
  for (const events of [SHORT, LONG]) {
    bench.progress(`import of ${events.toLocaleString('en')} events`)
    seconds.push(await fillStore(bench, storeOf(events), longSessionHeader('long'), longSessionPieces(events)))
  }
  const page = newestPage('long')
  const starts = [LONG, SHORT].map((events) => () => startService(bench, storeOf(events)))

  bench.progress('first page of a fresh process')
  const [freshLong = [], freshShort = []] = await inTurns(
    bench.quick ? 3 : 7,
    starts.map((start) => () => probeFresh(start, page)),
  )
  bench.progress('later pages of one process')
  const servers = await Promise.all(starts.map((start) => start()))
  try {
    const probes = servers.map((server) => () => probePage(server, page))
    await inTurns(5, probes)
    const [warmLong = [], warmShort = []] = await inTurns(bench.quick ? 20 : 60, probes)
    return {
      title: 'Newest page, session of 1,000,000 events against one of 10,000',
      figures: [
        single('import, 1,000,000 events', '/s', LONG / (seconds[1] as number), 'events of packed rows'),
        single('page on the wire', 'bytes', warmLong[0]?.wireBytes ?? Number.NaN, '5,000 events'),
        ...(['first', 'last'] as const).flatMap((end) => [
          spread(
            `fresh process, ${end} byte, 1,000,000`,
            'ms',
            freshLong.map((cost) => cost[end]),
          ),
          spread(
            `fresh process, ${end} byte, 10,000`,
            'ms',
            freshShort.map((cost) => cost[end]),
          ),
          ratio(
            `fresh process, ${end} byte, 1,000,000 / 10,000`,
            freshLong.map((cost) => cost[end]),
            freshShort.map((cost) => cost[end]),
          ),
          spread(
            `same process, ${end} byte, 1,000,000`,
            'ms',
            warmLong.map((cost) => cost[end]),
          ),
          spread(
            `same process, ${end} byte, 10,000`,
            'ms',
            warmShort.map((cost) => cost[end]),
          ),
          ratio(
            `same process, ${end} byte, 1,000,000 / 10,000`,
            warmLong.map((cost) => cost[end]),
            warmShort.map((cost) => cost[end]),
          ),
        ]),
        spread(
          'fresh process, memory, 1,000,000',
          'MiB',
          freshLong.map(({ memory }) => memory),
        ),
        spread(
          'fresh process, memory, 10,000',
          'MiB',
          freshShort.map(({ memory }) => memory),
        ),
      ],
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}

function storeOf(events: number): string {
  return `length-${events}`
}
