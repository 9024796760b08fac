// Deltas that join an open window one by one: the ten-thousandth must cost what the first did, and on a window with much in
// it what it costs on one with little.

import type { LiveDeltasResult, LiveDeltasTask } from '../clients/live-deltas.ts'
import { runChild } from '../measuring/child-task.ts'
import type { Figure, Section } from '../measuring/report.ts'
import { ratio, spread } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'

const DELTAS = 10_000
const PART = 1_000

export async function measureIncremental(bench: Bench): Promise<Section> {
  bench.progress('live deltas on an open window')
  const rounds = bench.quick ? 3 : 9
  const run = (window: LiveDeltasTask['window']) =>
    runChild<LiveDeltasResult>('live-deltas', { window, deltas: DELTAS, part: PART, rounds } satisfies LiveDeltasTask)
  const page = await run('page')
  const turns = await run('turns')
  return {
    title: `${DELTAS.toLocaleString('en')} live deltas, one by one, on a window that is open`,
    figures: [
      ...figuresOf(page),
      ...figuresOf(turns),
      ratio(`${nameOf(turns)} / ${nameOf(page)}, last thousand`, turns.last, page.last),
    ],
  }
}

function figuresOf(result: LiveDeltasResult): Figure[] {
  const { items, first, last } = result
  const note = `each; ${items.toLocaleString('en')} items in the view`
  return [
    spread(`${nameOf(result)}, first thousand`, 'µs', first, note),
    spread(`${nameOf(result)}, last thousand`, 'µs', last, note),
    ratio(`${nameOf(result)}, last / first`, last, first),
  ]
}

function nameOf({ records }: LiveDeltasResult): string {
  return `${records.toLocaleString('en')} records`
}
