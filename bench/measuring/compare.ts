// Two runs side by side: the figures that both have, how they changed, and whether the change is more than noise.

import type { Figure, Report } from './report.ts'
import { columns, shown } from './report.ts'
import { overlap } from './statistics.ts'

/** Stands before a change that the spreads do not explain. */
const APART = '*'

/**
 * A table for each section that both runs have. A figure is the same when name and unit are. What only one of them has
 * is counted below, and so is what differs between the machines.
 */
export function compareReports(before: Report, after: Report): string {
  const shared = Object.keys(before.sections).filter((name) => Object.hasOwn(after.sections, name))
  const tables = shared.map((name) => {
    const [old, now] = [before.sections[name], after.sections[name]] as const
    return [name, ...columns(pairs(old?.figures ?? [], now?.figures ?? []).map(row), [1, 2, 3])].join('\n')
  })
  const notes = [
    ...differences(before, after),
    ...alone('the first', before, after),
    ...alone('the second', after, before),
  ]
  if (tables.length === 0) notes.unshift('the two runs have no section in common')
  else notes.unshift(`${APART} the spreads of the two runs do not overlap`)
  return [...tables, notes.join('\n')].join('\n\n')
}

type Pair = readonly [before: Figure, after: Figure]

function pairs(before: readonly Figure[], after: readonly Figure[]): Pair[] {
  return before.flatMap((old) => {
    const now = after.find((figure) => isSame(figure, old))
    return now ? [[old, now] as const] : []
  })
}

function isSame(a: Figure, b: Figure): boolean {
  return a.name === b.name && a.unit === b.unit
}

function row([before, after]: Pair): string[] {
  return [before.name, shown(before), shown(after), change(before, after), areApart(before, after) ? APART : '']
}

/** Percent of what it was. */
function change(before: Figure, after: Figure): string {
  if (before.value === after.value) return '='
  const percent = ((after.value - before.value) / Math.abs(before.value)) * 100
  if (!Number.isFinite(percent)) return '?'
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toFixed(1)} %`
}

/** Whether both have a spread and no value lies in both. */
export function areApart(before: Figure, after: Figure): boolean {
  const spreads = [before, after].map(({ least, most, count }) =>
    least === undefined || most === undefined || count === undefined || count < 2 ? undefined : { least, most },
  )
  const [old, now] = spreads
  return old !== undefined && now !== undefined && !overlap(old, now)
}

function differences(before: Report, after: Report): string[] {
  const names = [...new Set([...Object.keys(before.machine), ...Object.keys(after.machine)])]
  // A new directory is made for each run.
  const facts = names.filter((name) => name !== 'directory' && before.machine[name] !== after.machine[name])
  const lines = facts.map((name) => `${name}: ${before.machine[name] ?? '–'}, then ${after.machine[name] ?? '–'}`)
  if (before.quick !== after.quick) lines.push('one of the two was quick')
  return lines
}

function alone(which: string, report: Report, other: Report): string[] {
  const names = Object.entries(report.sections).flatMap(([name, { figures }]) => {
    const known = other.sections[name]?.figures
    if (!known) return [`section ${name}`]
    return figures.filter((figure) => !known.some((each) => isSame(each, figure))).map((figure) => figure.name)
  })
  return names.length === 0 ? [] : [`only in ${which}: ${names.join('; ')}`]
}
