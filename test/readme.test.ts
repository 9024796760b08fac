// The README's recipes are run as they stand, by a shell, against the real service with the sample session.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startService } from './support/service.ts'

const ROOT = join(import.meta.dirname, '..')
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
const run = promisify(execFile)

const RECIPE = /<!-- recipe: (\w+) -->\n```sh\n([\s\S]*?)```/g
const recipes = new Map([...readme.matchAll(RECIPE)].map(([, name, script]) => [name as string, script as string]))

/** What each recipe prints, but for what differs from run to run. */
const EXPECTED: Record<string, RegExp> = {
  append: /^-1\n\[1,2\]\n$/,
  page: /^ +\d+ chunks\n +\d+ event\n$/,
  backwards:
    /^history-from: (\d+)\r?\nlink: <[^>]*beforeSeq=\1&[^>]*>; rel="prev"\r?\n(\[\d+,"[a-z/]+"\]|\[null,null\])\n/i,
  tokens: /[A-Za-z]{3,}.* [a-z]+/s,
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
  t.same([...recipes.keys()].sort(), Object.keys(EXPECTED).sort())
  for (const [name, script] of recipes) {
    const { stdout } = await run(
      'bash',
      ['-euo', 'pipefail', '-c', script.replaceAll('localhost:7411', new URL(service.url).host)],
      { cwd: t.testdirName },
    )
    t.match(stdout, EXPECTED[name] as RegExp, name)
  }
})

t.test('what the README names is there', async (t) => {
  const scripts = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts
  for (const [, name] of readme.matchAll(/npm run ([\w:]+)/g))
    t.type(scripts[name as string], 'string', `npm run ${name}`)
  for (const [, file] of readme.matchAll(/\]\(([\w./-]+)\)/g))
    t.ok(readFileSync(join(ROOT, file as string)), file as string)
})
