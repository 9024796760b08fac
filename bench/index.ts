// `npm run bench`: measures, prints a table, and writes the figures as JSON when asked. It judges nothing.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureAppends } from './measures/appends.ts'
import { measureDeepPages } from './measures/deep-pages.ts'
import { measureLength } from './measures/length.ts'
import { measureLive } from './measures/live.ts'
import { measureOmit } from './measures/omit.ts'
import { measurePages } from './measures/pages.ts'
import { machineFacts } from './measuring/machine.ts'
import type { Report, Section } from './measuring/report.ts'
import { table } from './measuring/report.ts'
import type { Bench } from './measuring/service.ts'

const MEASURES: Readonly<Record<string, (bench: Bench) => Promise<Section>>> = {
  pages: measurePages,
  length: measureLength,
  deep: measureDeepPages,
  omit: measureOmit,
  appends: measureAppends,
  live: measureLive,
}

const USAGE = `npm run bench -- [options]

  --only NAME,…      some of: ${Object.keys(MEASURES).join(', ')}
  --quick            fewer repetitions, about a minute
  --out FILE         write the figures as JSON
  --dir DIRECTORY    where the stores are made (and removed); default: the system's temporary directory
  --profile DIRECTORY  write a processor profile of each service process
`

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      out: { type: 'string' },
      dir: { type: 'string', default: tmpdir() },
      profile: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return console.log(USAGE)
  const names = values.only?.split(',') ?? Object.keys(MEASURES)
  for (const name of names) if (!Object.hasOwn(MEASURES, name)) throw new Error(`no measure ${name}\n\n${USAGE}`)

  const started = performance.now()
  const directory = mkdtempSync(join(values.dir, 'scrollback-bench-'))
  const seconds = () => Math.round((performance.now() - started) / 1000)
  const bench: Bench = {
    directory,
    quick: values.quick,
    profiles: values.profile,
    progress: (text) => console.error(`[${seconds()} s] ${text}`),
  }
  const machine = machineFacts(directory)
  const sections: Record<string, Section> = {}
  try {
    console.log(
      Object.entries(machine)
        .map(([name, fact]) => `${name}: ${fact}`)
        .join('\n'),
    )
    for (const name of names) {
      const section = await MEASURES[name]!(bench)
      sections[name] = section
      console.log(`\n${table(section)}`)
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  const report: Report = { machine, quick: values.quick, seconds: seconds(), sections }
  if (values.out !== undefined) writeFileSync(values.out, `${JSON.stringify(report, undefined, 2)}\n`)
}

await main()
