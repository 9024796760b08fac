// Long runs of white space, and one large block that arrives live: the time must grow as the text does.

import type { Timed, WhiteSpaceTask } from '../clients/white-space.ts'
import { runChild } from '../measuring/child-task.ts'
import type { Figure, Section } from '../measuring/report.ts'
import { ratio, spread } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'
import type { Summary } from '../measuring/statistics.ts'
import { pairRatios, summarise } from '../measuring/statistics.ts'

const FRAGMENTS = [10_000, 20_000, 40_000]
const BLOCKS = [1_250_000, 2_500_000, 5_000_000]

export interface WhiteSpaceResult {
  /** By the size of the run or block. */
  readonly foldMs: Readonly<Record<string, Readonly<Record<string, Summary>>>>
  /** Of the largest to the smallest, which is a quarter of it. */
  readonly growth: Readonly<Record<string, Summary>>
}

export async function measureWhiteSpace(bench: Bench): Promise<Section & { readonly result: WhiteSpaceResult }> {
  bench.progress('white space')
  const task: WhiteSpaceTask = {
    fragments: FRAGMENTS,
    blocks: BLOCKS,
    rounds: bench.quick ? 5 : 15,
    blockRounds: bench.quick ? 1 : 5,
  }
  const timed = await runChild<Timed[]>('white-space', task)
  checkPartitions(timed)
  const names = [...new Set(timed.map(({ name }) => name))]
  const series: Series[] = names.map((name) => ({ name, sizes: timed.filter((each) => each.name === name) }))
  return {
    title: 'Runs of white space, and a block that arrives live',
    figures: series.flatMap(({ name, sizes }) => figuresOf(name, sizes)),
    label: 'HISTORY_WHITESPACE_PREFIX_PERF_RESULT',
    result: {
      foldMs: byKey(series, (sizes) => Object.fromEntries(sizes.map(({ size, times }) => [size, summarise(times)]))),
      growth: byKey(series, (sizes) => summarise(growth(sizes))),
    },
  }
}

const KEYS: Readonly<Record<string, string>> = {
  'one row': 'oneRow',
  'rows of 4,096': 'rowsOf4096',
  'single events': 'singleEvents',
  'live block': 'liveBlock',
}

interface Series {
  readonly name: string
  /** The smallest first. */
  readonly sizes: readonly Timed[]
}

function byKey<Value>(series: readonly Series[], of: (sizes: readonly Timed[]) => Value): Record<string, Value> {
  return Object.fromEntries(series.map(({ name, sizes }) => [KEYS[name] ?? name, of(sizes)]))
}

function figuresOf(name: string, sizes: readonly Timed[]): Figure[] {
  const what = name === 'live block' ? 'characters' : 'fragments'
  const [least, most] = [sizes[0] as Timed, sizes.at(-1) as Timed]
  return [
    ...sizes.map(({ size, times, checksum }) =>
      spread(`${name}, ${size.toLocaleString('en')} ${what}`, 'ms', times, `checksum ${checksum}`),
    ),
    ratio(`${name}, ${most.size.toLocaleString('en')} / ${least.size.toLocaleString('en')}`, most.times, least.times),
  ]
}

function growth(sizes: readonly Timed[]): number[] {
  return pairRatios((sizes.at(-1) as Timed).times, (sizes[0] as Timed).times)
}

/** However the same events are split, the views are the same. */
function checkPartitions(timed: readonly Timed[]): void {
  for (const size of FRAGMENTS) {
    const checksums = new Set(timed.filter((each) => each.size === size).map(({ checksum }) => checksum))
    if (checksums.size !== 1) throw new Error(`${size} fragments of white space have views that differ`)
  }
}
