// Result files of earlier runs, read with suspicion: a figure that is misread is worse than none.

import { readFileSync } from 'node:fs'
import type { Figure, Report, Section, Unit } from './report.ts'
import { UNITS } from './report.ts'

/** The bench was called in a wrong way; the message says how to call it. */
export class UsageError extends Error {}

/** Throws UsageError for what is no result file of `--out`, naming the place. */
export function readReport(file: string): Report {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`)
  }
  try {
    return parseReport(text)
  } catch (error) {
    throw new UsageError(`${file} is no result file of this bench: ${(error as Error).message}`)
  }
}

/** Throws an Error that names the place. */
export function parseReport(text: string): Report {
  const report = fields(JSON.parse(text), '', ['machine', 'quick', 'seconds', 'sections'])
  const sections = Object.entries(anObject(report.sections, '/sections'))
  return {
    machine: anObject(report.machine, '/machine') as Report['machine'],
    quick: report.quick === true,
    seconds: aNumber(report.seconds, '/seconds'),
    sections: Object.fromEntries(sections.map(([name, section]) => [name, readSection(section, `/sections/${name}`)])),
  }
}

function readSection(value: unknown, path: string): Section {
  const { title, figures } = fields(value, path, ['title', 'figures'], ['label', 'result'])
  if (!Array.isArray(figures)) throw new Error(`${path}/figures is not an array`)
  const read = figures.map((figure, place) => readFigure(figure, `${path}/figures/${place}`))
  const names = new Set<string>()
  for (const { name } of read) {
    if (names.has(name)) throw new Error(`${path} has the figure “${name}” twice`)
    names.add(name)
  }
  return { title: aString(title, `${path}/title`), figures: read }
}

function readFigure(value: unknown, path: string): Figure {
  const figure = fields(value, path, ['name', 'value', 'unit'], ['least', 'most', 'count', 'note'])
  if (!UNITS.includes(figure.unit as Unit)) throw new Error(`${path}/unit is ${JSON.stringify(figure.unit)}`)
  const numbers = (['least', 'most', 'count'] as const).flatMap((name) =>
    figure[name] === undefined ? [] : [[name, aNumber(figure[name], `${path}/${name}`)] as const],
  )
  return {
    name: aString(figure.name, `${path}/name`),
    value: aNumber(figure.value, `${path}/value`),
    unit: figure.unit as Unit,
    ...Object.fromEntries(numbers),
    ...(figure.note === undefined ? {} : { note: aString(figure.note, `${path}/note`) }),
  }
}

/** An object with these fields and no others. */
function fields(
  value: unknown,
  path: string,
  needed: readonly string[],
  optional: readonly string[] = [],
): Record<string, unknown> {
  const object = anObject(value, path)
  for (const name of needed) if (!Object.hasOwn(object, name)) throw new Error(`${path}/${name} is missing`)
  for (const name of Object.keys(object)) {
    if (!needed.includes(name) && !optional.includes(name)) throw new Error(`${path}/${name} is not known`)
  }
  return object
}

function anObject(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  throw new Error(`${path === '' ? 'it' : path} is not an object`)
}

function aString(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  throw new Error(`${path} is not a text`)
}

/** What a system does not tell is NaN, which JSON writes as null. */
function aNumber(value: unknown, path: string): number {
  if (typeof value === 'number') return value
  if (value === null) return Number.NaN
  throw new Error(`${path} is not a number`)
}
