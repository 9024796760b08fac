// Two runs side by side: small reports made up for it, and files that are none.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { areApart, compareReports } from '../../bench/measuring/compare.ts'
import type { Figure, Report } from '../../bench/measuring/report.ts'
import { single } from '../../bench/measuring/report.ts'
import { parseReport, readReport } from '../../bench/measuring/report-file.ts'

t.test('compare: the change in percent, marked when the spreads do not overlap', async (t) => {
  const before = report([
    timed('grew', 10, 9, 11),
    timed('noise', 10, 8, 12),
    single('bytes', 'bytes', 1000),
    single('same', '', 5),
    single('from nothing', '', 0),
  ])
  const after = report([
    single('same', '', 5),
    timed('grew', 15, 14, 16),
    timed('noise', 9, 7, 11),
    single('bytes', 'bytes', 250),
    single('from nothing', '', 3),
  ])
  t.equal(
    compareReports(before, after),
    [
      'pages',
      '  grew                10 ms      15 ms  +50.0 %  *',
      '  noise               10 ms       9 ms  −10.0 %',
      '  bytes         1,000 bytes  250 bytes  −75.0 %',
      '  same                    5          5        =',
      '  from nothing            0          3        ?',
      '',
      '* the spreads of the two runs do not overlap',
    ].join('\n'),
  )
})

t.test('compare: what only one has, and what differs between the machines, is said', async (t) => {
  const before = report([timed('old', 1, 1, 1), single('both', 'ms', 1)])
  const after = report([single('both', 'ms', 2), single('new', 's', 1)], { cores: 4, directory: '/b' })
  const text = compareReports(before, { ...after, quick: true })
  t.match(text, 'only in the first: old')
  t.match(text, 'only in the second: new')
  t.match(text, 'cores: 2, then 4')
  t.match(text, 'one of the two was quick')
  t.notMatch(text, 'directory')
  const other = { ...after, sections: { live: { title: 'Live', figures: [] } } }
  t.match(compareReports(before, other), 'no section in common')
  t.match(compareReports(before, other), 'only in the first: section pages')
  t.match(
    compareReports(report([single('both', 'ms', 1)]), report([single('both', 's', 1)])),
    'only in the first: both',
    'another unit is another figure',
  )
})

t.test('areApart: only spreads of several measurements can tell', async (t) => {
  const cases: readonly [Figure, Figure, boolean][] = [
    [timed('f', 1, 1, 2), timed('f', 3, 2.5, 4), true],
    [timed('f', 3, 2.5, 4), timed('f', 1, 1, 2), true],
    [timed('f', 1, 1, 2), timed('f', 3, 2, 4), false],
    [timed('f', 1, 0, 9), timed('f', 3, 2, 4), false],
    [timed('f', 1, 1, 2), single('f', 'ms', 30), false],
    [timed('f', 1, 1, 1, 1), timed('f', 3, 3, 3, 1), false],
  ]
  for (const [before, after, expected] of cases) t.equal(areApart(before, after), expected)
})

t.test('a result file comes back as it was written, figures that no system told included', async (t) => {
  const figures = [timed('a', 1, 0, 2), single('b', '', 3, 'a note'), single('cpu', 'ms', Number.NaN)]
  const written = { ...report(figures), seconds: 12 }
  written.sections.pages = { title: 'Pages', figures, label: 'RESULT', result: { any: [1] } }
  const read = parseReport(JSON.stringify(written))
  t.same(read, { ...written, sections: { pages: { title: 'Pages', figures } } })
})

t.test('a file that is none is an error that names the place', async (t) => {
  const figure = { name: 'a', value: 1, unit: 'ms' }
  const cases: readonly [unknown, RegExp][] = [
    [[], /it is not an object/],
    [{ machine: {}, quick: false, seconds: 1 }, /\/sections is missing/],
    [{ ...report([]), extra: 1 }, /\/extra is not known/],
    [{ ...report([]), seconds: 'long' }, /\/seconds is not a number/],
    [{ ...report([]), sections: { pages: { title: 'P' } } }, /\/sections\/pages\/figures is missing/],
    [{ ...report([]), sections: { pages: { title: 'P', figures: {} } } }, /figures is not an array/],
    [withFigures([{ ...figure, unit: 'hours' }]), /\/sections\/pages\/figures\/0\/unit is "hours"/],
    [withFigures([{ ...figure, value: '1' }]), /figures\/0\/value is not a number/],
    [withFigures([{ ...figure, mean: 1 }]), /figures\/0\/mean is not known/],
    [withFigures([{ value: 1, unit: 'ms' }]), /figures\/0\/name is missing/],
    [withFigures([figure, figure]), /the figure “a” twice/],
  ]
  for (const [value, message] of cases) t.throws(() => parseReport(JSON.stringify(value)), { message })

  const directory = t.testdir()
  const broken = join(directory, 'broken.json')
  writeFileSync(broken, '{"machine":')
  t.throws(() => readReport(broken), { message: /broken\.json is no result file of this bench/ })
  t.throws(() => readReport(join(directory, 'none.json')), { message: /none\.json cannot be read/ })
})

function report(figures: readonly Figure[], machine: Report['machine'] = { cores: 2, directory: '/a' }) {
  const sections: Record<string, Report['sections'][string]> = { pages: { title: 'Pages', figures } }
  return { machine, quick: false, seconds: 1, sections }
}

function withFigures(figures: readonly unknown[]): unknown {
  return { ...report([]), sections: { pages: { title: 'P', figures } } }
}

function timed(name: string, value: number, least: number, most: number, count = 5): Figure {
  return { name, value, unit: 'ms', least, most, count }
}
