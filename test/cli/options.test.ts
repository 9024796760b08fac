import t from 'tap'
import type { OptionTable } from '../../src/cli/options.ts'
import {
  flag,
  helpOf,
  integer,
  oneOf,
  option,
  parseCommand,
  textOf,
  UsageError,
  usageOf,
} from '../../src/cli/options.ts'

const shape = {
  name: 'try',
  about: 'Tries things.',
  operands: [
    { name: 'ID', help: 'an id' },
    { name: 'FILE', help: 'files', many: true },
  ],
  options: {
    count: option('N', integer(-1, 500), 'how many', 'n'),
    from: option('SEQ', integer(0), 'where\nto begin'),
    mode: option('MODE', oneOf(['fast', 'slow']), 'how'),
    name: option('NAME', textOf('a name', 4), 'its name'),
    all: flag('all of it', 'a'),
  },
}

function refusal(args: string[]): string {
  try {
    parseCommand(shape, args)
  } catch (error) {
    if (error instanceof UsageError) return error.message
    throw error
  }
  throw new Error(`taken: ${args.join(' ')}`)
}

t.test('options and operands are read in any order', async (t) => {
  const read = (...args: string[]) => parseCommand(shape, args)
  t.strictSame(read('a', 'b'), { help: false, values: {}, operands: ['a', 'b'] })
  t.strictSame(read('a', '-', 'c').operands, ['a', '-', 'c'])
  t.strictSame(read('a', '--', '--all', '-n').operands, ['a', '--all', '-n'])
  const values = { count: -1, from: 0, mode: 'slow', name: 'x', all: true }
  t.strictSame(read('--count', '-1', 'a', '--from', '0', '--mode=slow', 'b', '--name', 'x', '--all').values, values)
  t.strictSame(read('-an', '7', 'a', 'b').values, { all: true, count: 7 })
  t.strictSame(read('-n7', 'a', 'b', '-n', '8').values, { count: 8 }, 'the last one counts')
  t.strictSame(read('a', 'b', '--name=--x').values, { name: '--x' })
})

t.test('help comes before everything else', async (t) => {
  for (const args of [['--help'], ['-h'], ['--wrong', '--help'], ['a', '--count', 'x', '-h']]) {
    t.equal(parseCommand(shape, args).help, true, args.join(' '))
  }
})

t.test('what is wrong is said in one sentence that names the option and what was expected', async (t) => {
  const integers = 'an integer from -1 to 500'
  const cases: [string[], string][] = [
    [[], 'ID is missing; expected "scrollback try ID FILE..."'],
    [['a'], 'FILE is missing; expected "scrollback try ID FILE..."'],
    [['a', 'b', '--count', '-2'], `--count expects ${integers}, got "-2"`],
    [['a', 'b', '--count', '501'], `--count expects ${integers}, got "501"`],
    [['a', 'b', '--count', '1.0'], `--count expects ${integers}, got "1.0"`],
    [['a', 'b', '--count', '1e2'], `--count expects ${integers}, got "1e2"`],
    [['a', 'b', '--count', '007'], `--count expects ${integers}, got "007"`],
    [['a', 'b', '--count', ' 7'], `--count expects ${integers}, got " 7"`],
    [['a', 'b', '--count='], `--count expects ${integers}, got ""`],
    [['a', 'b', '-n', 'x'], `-n expects ${integers}, got "x"`],
    [['a', 'b', '--count'], '--count expects N, got nothing'],
    [['a', 'b', '--count', '--all'], '--count expects N, got nothing'],
    [['a', 'b', '--from', '9007199254740992'], '--from expects an integer of at least 0, got "9007199254740992"'],
    [['a', 'b', '--mode', 'medium'], '--mode expects one of fast, slow, got "medium"'],
    [['a', 'b', '--name', ''], '--name expects a name, got ""'],
    [['a', 'b', '--name', 'abcde'], '--name expects a name, got "abcde"'],
    [['a', 'b', '--name', 'x'.repeat(70)], `--name expects a name, got "${'x'.repeat(60)}…"`],
    [['a', 'b', '--all=yes'], '--all takes no value, got "yes"'],
    [['a', 'b', '--wrong'], '--wrong is not an option here; "scrollback try --help" lists them'],
    [['a', 'b', '--wrong=1'], '--wrong is not an option here; "scrollback try --help" lists them'],
    [['a', 'b', '-z'], '-z is not an option here; "scrollback try --help" lists them'],
    [['a', 'b', '--constructor'], '--constructor is not an option here; "scrollback try --help" lists them'],
  ]
  for (const [args, message] of cases) t.equal(refusal(args), message, args.join(' '))
  const one = { ...shape, operands: [{ name: 'ID', help: 'an id' }], options: {} as OptionTable }
  t.throws(() => parseCommand(one, ['a', 'b']), { message: '"b" is one operand too many for "try"' })
})

t.test('help and usage are made from the table', async (t) => {
  t.equal(usageOf(shape), 'scrollback try ID FILE...')
  t.equal(
    helpOf(shape),
    `Usage: scrollback try ID FILE... [OPTIONS]

Tries things.

  ID               an id
  FILE             files

  -n, --count N    how many
      --from SEQ   where
                   to begin
      --mode MODE  how
      --name NAME  its name
  -a, --all        all of it
  -h, --help       show this help
`,
  )
})
