// `npm run bench`: measures, prints a table, and writes the figures as JSON when asked. It judges nothing.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from './command.ts'
import { readCommand, USAGE } from './command.ts'
import { PAGE_FIXTURES } from './fixtures/index.ts'
import { inventoryChart } from './inventory/chart.ts'
import type { InventoryResult } from './inventory/result.ts'
import { MEASURES } from './measures/index.ts'
import { MAIN_FIXTURE } from './measures/inventory.ts'
import { compareReports } from './measuring/compare.ts'
import { machineFacts } from './measuring/machine.ts'
import type { Report, Section } from './measuring/report.ts'
import { resultLine, table } from './measuring/report.ts'
import { readReport, UsageError } from './measuring/report-file.ts'
import type { Bench } from './measuring/service.ts'

async function main(): Promise<void> {
  const command = readCommand(process.argv.slice(2), Object.keys(MEASURES))
  if (command.do === 'help') return console.log(USAGE)
  if (command.do === 'compare')
    return console.log(compareReports(readReport(command.before), readReport(command.after)))
  const report = await measure(command)
  if (command.out !== undefined) writeFileSync(command.out, `${JSON.stringify(report, undefined, 2)}\n`)
  if (command.chart !== undefined) writeFileSync(command.chart, chartOf(report))
}

async function measure({ names, quick, dir, profiles }: Command & { do: 'measure' }): Promise<Report> {
  const started = performance.now()
  const directory = mkdtempSync(join(dir, 'scrollback-bench-'))
  const seconds = () => Math.round((performance.now() - started) / 1000)
  const progress = (text: string) => console.error(`[${seconds()} s] ${text}`)
  const bench: Bench = { directory, quick, profiles, progress }
  const machine = machineFacts(directory)
  const sections: Record<string, Section> = {}
  try {
    const facts = Object.entries(machine).map(([name, fact]) => `${name}: ${fact}`)
    console.log(facts.join('\n'))
    for (const name of names) {
      const section = (await MEASURES[name]?.(bench)) as Section
      sections[name] = section
      console.log(`\n${table(section)}`)
      const line = resultLine(section, machine, quick)
      if (line !== undefined) console.log(`\n${line}`)
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
  return { machine, quick, seconds: seconds(), sections }
}

function chartOf({ machine, sections }: Report): string {
  const found = (sections.inventory?.result as InventoryResult | undefined)?.fixtures[MAIN_FIXTURE]
  if (!found) throw new Error('the page of the chart was not measured')
  const where = `${machine.processor}, ${machine.cores} cores, Node.js ${machine.node}.`
  return inventoryChart(`One page of ${PAGE_FIXTURES[MAIN_FIXTURE].title}`, where, found)
}

try {
  await main()
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  console.error(error.message)
  process.exitCode = 2
}
