// What the bench was asked to do.

import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { UsageError } from './measuring/report-file.ts'

export type Command =
  | { readonly do: 'help' }
  | { readonly do: 'compare'; readonly before: string; readonly after: string }
  | {
      readonly do: 'measure'
      readonly names: readonly string[]
      readonly quick: boolean
      readonly out: string | undefined
      readonly chart: string | undefined
      readonly dir: string
      readonly profiles: string | undefined
    }

export const USAGE = `npm run bench -- [options]

  --only NAME,…        some of: inventory, white-space, incremental, pages, length, deep, omit, appends, live
  --quick              fewer repetitions
  --out FILE           write the figures as JSON
  --chart FILE         draw the inventory as SVG
  --dir DIRECTORY      where the stores are made (and removed); default: the system's temporary directory
  --profile DIRECTORY  write a processor profile of each service process

npm run bench -- --compare A B

  A and B are files that --out has written. Measures nothing.
`

const OPTIONS = {
  only: { type: 'string' },
  quick: { type: 'boolean' },
  out: { type: 'string' },
  chart: { type: 'string' },
  dir: { type: 'string' },
  profile: { type: 'string' },
  compare: { type: 'boolean' },
  help: { type: 'boolean' },
} as const

/**
 * Throws UsageError for what cannot be done.
 * @param measures names of all measures, in order
 */
export function readCommand(args: readonly string[], measures: readonly string[]): Command {
  const { values, positionals } = parse(args)
  if (values.help) return { do: 'help' }
  if (values.compare) {
    const [before, after, ...more] = positionals
    const others = Object.keys(values).filter((name) => name !== 'compare')
    if (others.length > 0) throw misuse(`--${others[0]} does not go with --compare`)
    if (before === undefined || after === undefined || more.length > 0) throw misuse('--compare takes two files')
    return { do: 'compare', before, after }
  }
  if (positionals.length > 0) throw misuse(`${positionals[0]} is no option`)
  const names = values.only?.split(',') ?? measures
  for (const name of names) if (!measures.includes(name)) throw misuse(`there is no measure ${name}`)
  if (values.chart !== undefined && !names.includes('inventory')) throw misuse('--chart needs the inventory')
  return {
    do: 'measure',
    names,
    quick: values.quick ?? false,
    out: values.out,
    chart: values.chart,
    dir: values.dir ?? tmpdir(),
    profiles: values.profile,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
  } catch (error) {
    throw misuse((error as Error).message)
  }
}

function misuse(reason: string): UsageError {
  return new UsageError(`${reason}\n\n${USAGE}`)
}
