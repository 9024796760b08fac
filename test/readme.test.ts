// The README's recipes are run as they stand, by a shell, against the real service with the sample session.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startService } from './support/service.ts'

const ROOT = join(import.meta.dirname, '..')
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
const CLIENT = new URL('../src/client/index.ts', import.meta.url)
const run = promisify(execFile)

const RECIPE = /<!-- recipe: (\w+) -->\n```(sh|js)\n([\s\S]*?)```/g
const recipes = [...readme.matchAll(RECIPE)].map(([, name = '', language, script = '']) => ({ name, language, script }))

/** What each recipe prints, but for what differs from run to run. */
const EXPECTED: Record<string, RegExp> = {
  append: /^-1\n\[1,2,0\]\n$/,
  page: /^ +\d+ chunks\n +\d+ event\n$/,
  backwards: /^(\[\d+,"[a-z/-]+"\]\n)+$/,
  tokens: /[A-Za-z]{3,}.* [a-z]+/s,
  sdk: /^\{ head: 0, appended: 1, duplicates: 0, epoch: '\S+' \}\n((event|chunks) \d+\n)+$/,
  chat: /^user: [^\n]+\nsettled reasoning\+[^\n]+\n([^\n]+\n)*first token after \d+ ms\n$/,
  export: /^\[\d+,"user"\]\n(\[\d+,"(user|assistant)"\]\n)+"demo"\n$/,
}

t.test('each recipe of the README does what it says', async (t) => {
  const service = await startService(t)
  const demo = readFileSync(join(ROOT, 'src/server/demo-session.jsonl'))
  const imported = await fetch(`${service.url}/v1/sessions/import`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-ndjson' },
    body: demo,
  })
  t.equal(imported.status, 201)
  t.same(recipes.map(({ name }) => name).sort(), Object.keys(EXPECTED).sort())
  const there = (script: string) => script.replaceAll('localhost:7411', new URL(service.url).host)
  const inShell = (script: string) =>
    run('bash', ['-euo', 'pipefail', '-c', there(script)], { cwd: t.testdirName }).then(({ stdout }) => stdout)
  const inNode = (script: string) =>
    // What the package's name leads to is built first; this is what it is built from.
    run(process.execPath, ['--input-type=module', '-e', there(script).replace("'scrollback'", `'${CLIENT}'`)]).then(
      ({ stdout }) => stdout,
    )
  for (const { name, language, script } of recipes) {
    t.match(await (language === 'js' ? inNode : inShell)(script), EXPECTED[name] as RegExp, name)
    if (name === 'append') t.match(await inShell(script), /^1\n\[1,0,2\]\n$/, 'the same again')
  }
})

t.test('what the README names is there', async (t) => {
  const scripts = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts
  for (const [, name] of readme.matchAll(/npm run (?:-s )?([\w:]+)/g))
    t.type(scripts[name as string], 'string', `npm run ${name}`)
  for (const [, file] of readme.matchAll(/\]\(([\w./-]+)\)/g))
    t.ok(readFileSync(join(ROOT, file as string)), file as string)
})
