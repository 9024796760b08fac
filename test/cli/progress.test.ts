import t from 'tap'
import { Progress, progressLine } from '../../src/cli/progress.ts'

const BAR = `[${'#'.repeat(12)}${'.'.repeat(12)}]`

t.test('the line keeps to its width', async (t) => {
  const cases: [[string, number, number | undefined, number], string][] = [
    [['log.jsonl', 1500, 3000, 79], `log.jsonl  ${BAR} 50 %  1.5 kB of 3.0 kB`],
    [['log.jsonl', 0, 0, 79], `log.jsonl  [${'#'.repeat(24)}]100 %  0 B of 0 B`],
    [['log.jsonl', 5, 4, 79], `log.jsonl  [${'#'.repeat(24)}]100 %  5 B of 4 B`],
    [['log.jsonl', 999_499, undefined, 79], 'log.jsonl  999 kB'],
    [['log.jsonl', 999_500, undefined, 79], 'log.jsonl  1.0 MB'],
    [['-', 123_456_789_012, undefined, 79], '-  123 GB'],
    [['log.jsonl', 1500, 3000, 30], ' 50 %  1.5 kB of 3.0 kB'],
    [['log.jsonl', 1500, 3000, 8], ' 50 %  1'],
    [['log.jsonl', 1500, 3000, 0], ''],
  ]
  for (const [args, line] of cases) t.equal(progressLine(...args), line)
  const long = progressLine(`/a/${'long/'.repeat(20)}log.jsonl`, 1500, 3000, 79)
  t.equal(long.length, 79)
  t.match(long, /^….*log\.jsonl {2}\[#/, 'the end of a name says more than its beginning')
})

t.test('it appears when the work takes long, not at each piece, and leaves nothing behind', async (t) => {
  let now = 0
  const writes: string[] = []
  const terminal = { isTTY: true, columns: 80, write: (text: string) => writes.push(text) }
  const progress = new Progress({ terminal, label: 'log', total: 100, now: () => now })
  progress.clear()
  for (const moment of [0, 500, 999]) {
    now = moment
    progress.add(10)
  }
  t.strictSame(writes, [])
  for (const moment of [1000, 1001, 1099, 1100]) {
    now = moment
    progress.add(10)
  }
  t.equal(writes.length, 2)
  t.match(writes[0], /^\r\u001b\[2Klog .* 40 %/)
  t.match(writes[1], / 70 %/)
  progress.clear()
  progress.clear()
  t.strictSame(writes.slice(2), ['\r\u001b[2K'])
})

t.test('without a terminal nothing is drawn', async (t) => {
  let now = 0
  const terminal = { write: () => t.fail('drawn') }
  const progress = new Progress({ terminal, label: 'log', total: 100, now: () => now })
  now = 5000
  progress.add(10)
  progress.clear()
  t.pass()
})
