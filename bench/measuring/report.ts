// What a bench run found: rows of figures under headings, as a table for people and as JSON for comparing two runs.

import { mean, pairRatios, summarise } from './statistics.ts'

export const UNITS = ['µs', 'ms', 's', 'bytes', 'MiB', '/s', 'x', ''] as const

export type Unit = (typeof UNITS)[number]

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
  /** Before a line of its own with `result` as JSON, for programs. */
  readonly label?: string
  /** The same findings under names that stay. */
  readonly result?: object
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
  return spread(name, 'x', pairRatios(over, under), note)
}

/** One line of JSON with what the machine was, when the section has such a line. */
export function resultLine({ label, result }: Section, machine: Report['machine'], quick: boolean): string | undefined {
  return label === undefined ? undefined : `${label} ${JSON.stringify({ machine, quick, ...result }, rounded)}`
}

/** Digits that no clock can tell are not written. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' && Number.isFinite(value) ? Math.round(value * 1000) / 1000 : value
}

export function table({ title, figures }: Section): string {
  const rows = figures.map((figure) => [figure.name, shown(figure), shownSpread(figure), figure.note ?? ''])
  return [title, ...columns(rows, [1])].join('\n')
}

/** Lines of rows whose cells stand below one another. */
export function columns(rows: readonly (readonly string[])[], right: readonly number[]): string[] {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0))
  const widths = (rows[0] ?? []).map((_, column) => width(column))
  return rows.map((row) => {
    const cells = row.map((cell, column) => {
      const size = widths[column] as number
      return right.includes(column) ? cell.padStart(size) : cell.padEnd(size)
    })
    return `  ${cells.join('  ')}`.trimEnd()
  })
}

export function shown({ value, unit }: Pick<Figure, 'value' | 'unit'>): string {
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
