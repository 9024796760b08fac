import { readFileSync } from 'node:fs'
import t from 'tap'
import { SETTINGS } from '../../src/server/index.ts'
import { call, run } from './command-line.ts'

t.test('help goes to standard output and is no failure', async (t) => {
  const commands = ['serve', 'import', 'export', 'page', 'follow', 'backup', 'append']
  const [general, ...each] = await Promise.all([run(['--help']), ...commands.map((name) => call([name, '--help']))])
  t.match(general, { code: 0, stderr: '' })
  t.match(general?.stdout, /^Usage: scrollback COMMAND \[OPTIONS\]\n/)
  commands.forEach((name, at) => {
    t.match(general?.stdout, new RegExp(`^  ${name} `, 'm'))
    t.match(each[at], { code: 0, stderr: '' }, name)
    t.match(each[at]?.stdout, new RegExp(`^Usage: scrollback ${name} .*\\[OPTIONS\\]\n`))
  })
})

t.test('the version is that of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  t.strictSame(await call(['--version']), { code: 0, signal: null, stdout: `${version}\n`, stderr: '' })
})

t.test('every setting of the service is in the help of serve, with its default', async (t) => {
  const { stdout } = await call(['serve', '--help'])
  for (const { variable, default: byDefault, about } of Object.values(SETTINGS)) {
    const line = stdout.split('\n').find((each) => each.startsWith(`  ${variable} `))
    t.match(line, about, variable)
    t.match(line, `(default ${byDefault})`, variable)
  }
})

t.test('wrong usage is one sentence on standard error and the exit code 2', async (t) => {
  const commands = 'expected a command (serve, import, export, page, follow, backup, append) or --help'
  const cases: [string[], string, Record<string, string>?][] = [
    [[], `scrollback: ${commands}, got nothing`],
    [['tail'], `scrollback: ${commands}, got "tail"`],
    [['page'], 'scrollback page: ID is missing; expected "scrollback page ID"'],
    [['page', 's', '--before', '-1'], 'scrollback page: --before expects an integer of at least 0, got "-1"'],
    [['page', 's', '--messages', '501'], 'scrollback page: --messages expects an integer from 1 to 500, got "501"'],
    [
      ['page', '..'],
      'scrollback page: ID expects a session id: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, not . or .., got ".."',
    ],
    [
      ['page', 's', '--url', 'localhost:7411'],
      'scrollback page: --url expects an http or https URL such as http://127.0.0.1:7411, got "localhost:7411"',
    ],
    [
      ['page', 's'],
      'scrollback page: SCROLLBACK_URL expects an http or https URL such as http://127.0.0.1:7411, got "here"',
      { SCROLLBACK_URL: 'here' },
    ],
    [['append', 's'], 'scrollback append: FILE is missing; expected "scrollback append ID FILE"'],
    [['export', 's', '--layout', 'rows'], 'scrollback export: --layout expects one of packed, events, got "rows"'],
    [
      ['import', 'a', 'b', '--expected-head', '4'],
      'scrollback import: --expected-head expects exactly one FILE, got 2',
    ],
    [['import', '-', '-'], 'scrollback import: FILE expects - at most once: standard input can be read once'],
    [['serve', '--port', '65536'], 'scrollback serve: --port expects an integer from 0 to 65535, got "65536"'],
    [
      ['serve'],
      'scrollback serve: SCROLLBACK_GRACE (how long running answers may take to end at shutdown, seconds): expected a whole number from 0 to 86400, got "long"',
      { SCROLLBACK_GRACE: 'long' },
    ],
  ]
  const ended = await Promise.all(cases.map(([args, , environment = {}]) => call(args, { environment })))
  t.strictSame(await run([]), ended[0], 'also as a process')
  cases.forEach(([args, message], at) => {
    t.strictSame(ended[at], { code: 2, signal: null, stdout: '', stderr: `${message}\n` }, args.join(' '))
  })
})
