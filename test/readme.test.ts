// The README's recipes are run as they stand, by a shell, against the real service with the sample session.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startService } from './support/service.ts'

const ROOT = join(import.meta.dirname, '..')
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
/** What the package's names lead to is built first; this is what it is built from. */
const SOURCES = {
  scrollback: '../src/client/index.ts',
  'scrollback/codec': '../codec/index.ts',
  'scrollback/conversation': '../src/client/conversation/index.ts',
}
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
  turn: /^(3 (event|chunks) \d+\n)+$/,
  chat: /^user: [^\n]+\nsettled reasoning\+[^\n]+\n([^\n]+\n)*first token after \d+ ms\n$/,
  browser: /^(assistant( turn-tail)?\n)+user assistant tool-call assistant turn-tail user assistant turn-tail\n$/,
  export: /^\[\d+,"user"\]\n(\[\d+,"(user|assistant)"\]\n)+"demo"\n$/,
}

/** What a page in a browser does with a recipe: it waits for the end, pages back and closes. */
const DRIVEN: Record<string, string> = {
  browser: `
    const { head } = await (await fetch(session)).json()
    while (opened?.to !== head + 1) await new Promise((resolve) => live.addEventListener('message', resolve, { once: true }))
    while (opened.hasMore) await loadOlder()
    live.close()
  `,
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
  const inNode = (script: string) => {
    const code = there(script).replace(/(?<=from ')[\w/]+(?=')/g, (name) =>
      String(new URL(SOURCES[name as keyof typeof SOURCES], import.meta.url)),
    )
    return run(process.execPath, ['--experimental-eventsource', '--input-type=module', '-e', code]).then(
      ({ stdout }) => stdout,
    )
  }
  for (const { name, language, script } of recipes) {
    const whole = script + (DRIVEN[name] ?? '')
    t.match(await (language === 'js' ? inNode : inShell)(whole), EXPECTED[name] as RegExp, name)
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
