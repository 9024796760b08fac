// How the bench is called, and that a wrong call ends with 2 before anything is measured.

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readCommand, USAGE } from '../../bench/command.ts'
import { MEASURES } from '../../bench/measures/index.ts'
import { UsageError } from '../../bench/measuring/report-file.ts'

const NAMES = ['inventory', 'pages', 'live']

t.test('readCommand: what is to be done', async (t) => {
  const everything = { do: 'measure', names: NAMES, quick: false, dir: tmpdir() }
  t.match(readCommand([], NAMES), everything)
  t.match(readCommand(['--quick', '--only', 'live,pages', '--out', 'f', '--dir', '/d', '--profile', 'p'], NAMES), {
    ...{ do: 'measure', names: ['live', 'pages'], quick: true, out: 'f', dir: '/d', profiles: 'p', chart: undefined },
  })
  t.match(readCommand(['--only', 'inventory', '--chart', 'c.svg'], NAMES), { names: ['inventory'], chart: 'c.svg' })
  t.same(readCommand(['--compare', 'a', 'b'], NAMES), { do: 'compare', before: 'a', after: 'b' })
  t.same(readCommand(['--help', '--compare'], NAMES), { do: 'help' })
})

t.test('readCommand: what cannot be done, each with the way to do it', async (t) => {
  for (const [args, reason] of [
    [['--only', 'speed'], 'there is no measure speed'],
    [['--only', ''], 'there is no measure '],
    [['--fast'], '--fast'],
    [['pages'], 'pages is no option'],
    [['--compare'], '--compare takes two files'],
    [['--compare', 'a'], '--compare takes two files'],
    [['--compare', 'a', 'b', 'c'], '--compare takes two files'],
    [['--compare', 'a', 'b', '--quick'], '--quick does not go with --compare'],
    [['--only', 'pages', '--chart', 'c.svg'], '--chart needs the inventory'],
    [['--out'], '--out'],
  ] as const) {
    const error = refusal(args)
    t.ok(error instanceof UsageError, args.join(' '))
    t.match(error, { message: reason })
    t.ok(error?.message.endsWith(USAGE))
  }
})

t.test('the usage names every measure', async (t) => {
  const [, listed = ''] = /some of: (.*)/.exec(USAGE) ?? []
  t.same(listed.split(', '), Object.keys(MEASURES))
})

t.test('the program: 0 for a comparison, 2 for bad use, and nothing on standard output then', async (t) => {
  const file = join(t.testdir(), 'report.json')
  writeFileSync(file, JSON.stringify({ machine: {}, quick: false, seconds: 1, sections: {} }))
  const good = bench('--compare', file, file)
  t.match(good, { status: 0, stderr: '' })
  t.match(good.stdout, 'no section in common')
  const bad = bench('--compare', file, `${file}.none`)
  t.match(bad, { status: 2, stdout: '' })
  t.match(bad.stderr, 'report.json.none cannot be read')
  t.notMatch(bad.stderr, '    at ', 'no stack')
})

function bench(...args: string[]) {
  const program = new URL('../../bench/index.ts', import.meta.url).pathname
  return spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
}

function refusal(args: readonly string[]): Error | undefined {
  try {
    readCommand(args, NAMES)
    return undefined
  } catch (error) {
    return error as Error
  }
}
