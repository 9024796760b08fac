// Figures from repeated measurements. Medians, because a shared machine has slow moments; the spread shows how many.

export interface Summary {
  readonly median: number
  readonly least: number
  readonly most: number
  readonly count: number
}

export function summarise(values: readonly number[]): Summary {
  const sorted = ascending(values)
  return {
    median: percentile(sorted, 50),
    least: sorted[0] as number,
    most: sorted.at(-1) as number,
    count: sorted.length,
  }
}

/** The smallest value that at least `percent` of all values do not exceed; the median of an even count is the mean of two. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = ascending(values)
  const { length } = sorted
  if (length === 0) throw new RangeError('no values')
  const at = (place: number) => sorted[place] as number
  if (percent === 50 && length % 2 === 0) return (at(length / 2 - 1) + at(length / 2)) / 2
  return at(Math.max(0, Math.ceil((percent / 100) * length) - 1))
}

export function mean(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('no values')
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The ratios of values that were taken in turns, pair by pair. */
export function pairRatios(over: readonly number[], under: readonly number[]): number[] {
  const pairs = Math.min(over.length, under.length)
  return Array.from({ length: pairs }, (_, place) => (over[place] as number) / (under[place] as number))
}

/** Whether two spreads have a value in common. */
export function overlap(
  a: { readonly least: number; readonly most: number },
  b: { readonly least: number; readonly most: number },
): boolean {
  return a.least <= b.most && b.least <= a.most
}

function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b)
}
