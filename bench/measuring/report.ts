// What a bench run found: rows of figures under headings, as a table for people and as JSON for comparing two runs.

import { mean, summarise } from './statistics.ts'

export type Unit = 'ms' | 's' | 'bytes' | 'MiB' | '/s' | 'x' | ''

/** One figure: a median unless it says otherwise. `least` and `most` are the spread of `count` measurements, when there were several. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: Unit
  readonly least?: number
  readonly most?: number
  readonly count?: number
  /** What it is of, or against what. */
  readonly note?: string
}

export interface Section {
  readonly title: string
  readonly figures: readonly Figure[]
}

export interface Report {
  readonly machine: Readonly<Record<string, string | number>>
  readonly quick: boolean
  readonly seconds: number
  readonly sections: Readonly<Record<string, Section>>
}

/** The median of several measurements with their spread. */
export function spread(name: string, unit: Unit, values: readonly number[], note?: string): Figure {
  const { median, least, most, count } = summarise(values)
  return { name, value: median, unit, least, most, count, ...(note === undefined ? {} : { note }) }
}

/** The mean of several measurements with their spread: for costs of which a part falls due only now and then. */
export function average(name: string, unit: Unit, values: readonly number[], note?: string): Figure {
  return { ...spread(name, unit, values, note), value: mean(values) }
}

export function single(name: string, unit: Unit, value: number, note?: string): Figure {
  return { name, value, unit, ...(note === undefined ? {} : { note }) }
}

/**
 * The ratio of two sets of measurements that were taken in turns: the median of the ratios of their pairs, because what
 * disturbs one of a pair mostly disturbs the other too.
 */
export function ratio(name: string, over: readonly number[], under: readonly number[], note?: string): Figure {
  const pairs = Math.min(over.length, under.length)
  const ratios = Array.from({ length: pairs }, (_, place) => (over[place] as number) / (under[place] as number))
  return spread(name, 'x', ratios, note)
}

export function table({ title, figures }: Section): string {
  const rows = figures.map((figure) => [figure.name, shown(figure), shownSpread(figure), figure.note ?? ''])
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => (row[column] as string).length)))
  const lines = rows.map(([name = '', value = '', range = '', note = '']) => {
    const [nameWidth = 0, valueWidth = 0, rangeWidth = 0] = widths
    return `  ${name.padEnd(nameWidth)}  ${value.padStart(valueWidth)}  ${range.padEnd(rangeWidth)}  ${note}`.trimEnd()
  })
  return [title, ...lines].join('\n')
}

function shown({ value, unit }: Figure): string {
  return `${number(value)}${unit === '' || unit === 'x' || unit === '/s' ? unit : ` ${unit}`}`
}

function shownSpread({ least, most, count }: Figure): string {
  if (least === undefined || most === undefined || count === undefined || count < 2) return ''
  return `${number(least)} – ${number(most)} of ${count}`
}

/** Three significant digits, or all digits of a large number. */
function number(value: number): string {
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en')
  return value.toPrecision(3)
}
