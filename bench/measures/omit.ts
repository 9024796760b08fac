// The page of 50 messages and 26,562 chunks: left out, packed, expanded.

import { heavyPageHeader, heavyPagePieces } from '../fixtures/index.ts'
import { getBody } from '../measuring/http-get.ts'
import { inTurns, probePage } from '../measuring/page-probe.ts'
import type { Figure, Section } from '../measuring/report.ts'
import { average, single, spread } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'
import { importSession, newestPage, startService } from '../measuring/service.ts'

const MODES = ['omit', 'packed', 'expanded'] as const

const SOURCES = { all: 'messages naming every chunk', edges: 'messages naming the edges of runs' } as const

export async function measureOmit(bench: Bench): Promise<Section> {
  const service = await startService(bench, 'omit')
  try {
    const figures: Figure[] = []
    for (const sources of ['all', 'edges'] as const) {
      bench.progress(`pages of 26,562 chunks, ${SOURCES[sources]}`)
      const id = `heavy-${sources}`
      await importSession(service, heavyPageHeader(id), heavyPagePieces(sources))
      const paths = MODES.map((mode) => `${newestPage(id)}?chunks=${mode}`)
      const bodies: number[] = []
      for (const path of paths) bodies.push((await getBody(service.port, path)).bytes.length)
      const [omitted = 0, packed = 0, expanded = 0] = bodies
      figures.push(
        ...MODES.map((mode, place) => single(`${mode}, body, ${SOURCES[sources]}`, 'bytes', bodies[place] as number)),
        single(`expanded / omit, bytes, ${SOURCES[sources]}`, 'x', expanded / omitted),
        single(`expanded / packed, bytes, ${SOURCES[sources]}`, 'x', expanded / packed),
      )
      if (sources === 'edges') continue
      const probes = paths.map((path) => () => probePage(service, path))
      await inTurns(5, probes)
      const costs = await inTurns(bench.quick ? 5 : 15, probes)
      figures.push(
        ...MODES.map((mode, place) => spread(`${mode}, last byte`, 'ms', costs[place]?.map(({ last }) => last) ?? [])),
        ...MODES.map((mode, place) =>
          average(`${mode}, processor`, 'ms', costs[place]?.map(({ cpu }) => cpu) ?? [], 'mean'),
        ),
      )
    }
    return { title: 'The page of 50 messages and 26,562 chunks', figures }
  } finally {
    await service.stop()
  }
}
