// The published package, from the packed file: its entries have types and run in a project of someone else, the
// SDK and the codec on Node 22 too.

import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')
const NODE_22 = join(ROOT, 'node_modules/.cache/node-22')
// Without what the test runner preloads into each process that is started.
const run = (file: string, args: string[], options: { cwd?: string } = {}) =>
  promisify(execFile)('env', ['-u', 'NODE_OPTIONS', file, ...args], options)

/** What users of the SDK and of the codec write first. */
const CLIENT = `
import { HistoryClient } from 'scrollback'
import { packEvents, expandRecord } from 'scrollback/codec'
import { CONVERSATION, ConversationAssembler } from 'scrollback/conversation'

const text = (seq, text) => ({ type: 'assistant/chunk', seq, time: 7,
  data: { turn: 1, step: 1, chunk: { type: 'text-delta', index: 0, text } } })
const events = ['Hel', 'lo', '!'].map((each, seq) => text(seq, each))
const records = packEvents(events)
if (records.length !== 1 || JSON.stringify(records.flatMap(expandRecord)) !== JSON.stringify(events)) throw new Error('codec')
const assembler = new ConversationAssembler(CONVERSATION)
assembler.apply({ type: 'append', entries: records })
if (assembler.view('chat')[0].blocks[0].text !== 'Hello!') throw new Error('conversation')
const client = new HistoryClient({ baseUrl: 'http://127.0.0.1:9' })
await client.sessions.get('a').then(() => { throw new Error('answered') }, (error) => console.log(error.code))
`

const TYPED = `
import { HistoryClient } from 'scrollback'
import type { SessionHistoryRecord } from 'scrollback/codec'
import { packEvents } from 'scrollback/codec'
import type { Block } from 'scrollback/conversation'
import { readConfig, startServer } from 'scrollback/server'

export async function walk(client: HistoryClient): Promise<SessionHistoryRecord[]> {
  const page = await client.session('a').page({ maxMessages: 10 })
  const records: SessionHistoryRecord[] = []
  for await (const record of page.records) records.push(record)
  return records
}
export const packed: SessionHistoryRecord[] = packEvents([])
export function blocks(client: HistoryClient): readonly Block[] {
  const [item] = client.session('a').conversation().view('chat')
  return item?.kind === 'assistant' ? item.blocks : []
}
// @ts-expect-error a page is counted in numbers
export const wrong = (client: HistoryClient) => client.session('a').page({ maxMessages: 'ten' })
export const server = () => startServer(readConfig({ PORT: '0' }))
`

const SERVER = `
import { HistoryClient } from 'scrollback'
import { readConfig, startServer } from 'scrollback/server'

const server = await startServer(readConfig({ PORT: '0', SCROLLBACK_DATA: process.argv[2], LOG_LEVEL: 'silent' }))
const client = new HistoryClient({ baseUrl: server.url })
await client.sessions.create('a')
const { head } = await client.session('a').append([{ type: 'note', data: 1 }])
const page = await client.session('a').page()
for await (const record of page.records) console.log(head, record.event.type)
await server.close()
`

t.test('the packed file', async (t) => {
  const scratch = t.testdir({ 'package.json': '{"type":"module"}' })
  const { stdout } = await run('npm', ['pack', '--json', '--silent', '--pack-destination', scratch], { cwd: ROOT })
  const packed = Object.values(JSON.parse(stdout.slice(stdout.search(/^[[{]/m))))[0] as {
    filename: string
    files: { path: string }[]
  }
  const home = join(scratch, 'node_modules/scrollback')
  mkdirSync(home, { recursive: true })
  await run('tar', ['-xzf', join(scratch, packed.filename), '--strip-components=1', '-C', home])

  await t.test('holds what it needs and nothing else', async (t) => {
    const others = packed.files
      .map(({ path }) => path)
      .filter((path) => !/^dist\/(codec|src|routes)\/.*\.(js|d\.ts)$/.test(path))
    t.same(others.sort(), [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'dist/src/server/demo-session.jsonl',
      'openapi.yaml',
      'package.json',
    ])
  })

  await t.test('names every package that it imports', async (t) => {
    const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
    const files = readdirSync(join(home, 'dist'), { recursive: true, encoding: 'utf8' })
    const imported = new Set<string>()
    for (const file of files.filter((file) => file.endsWith('.ts') || file.endsWith('.js'))) {
      const source = readFileSync(join(home, 'dist', file), 'utf8')
      for (const [, name] of source.matchAll(/(?:from|import)\s*\(?\s*'((?:@[\w-]+\/)?[\w-]+)(?:\/[^']*)?'/g)) {
        imported.add(name as string)
      }
    }
    const unnamed = [...imported].filter((name) => name !== 'scrollback' && !(name in manifest.dependencies))
    t.same(unnamed, [])
    const unused = Object.keys(manifest.dependencies).filter((name) => !imported.has(name))
    t.same(unused, [])
  })

  await t.test('has types', async (t) => {
    writeFileSync(join(scratch, 'typed.ts'), TYPED)
    const options = [
      '--ignoreConfig',
      '--strict',
      '--noEmit',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--types',
      'node',
    ]
    await t.resolves(run(join(ROOT, 'node_modules/.bin/tsc'), [...options, 'typed.ts'], { cwd: scratch }))
  })

  await t.test('runs', async (t) => {
    writeFileSync(join(scratch, 'client.js'), CLIENT)
    writeFileSync(join(scratch, 'server.js'), SERVER)
    if (!existsSync(join(NODE_22, 'node_modules/.bin/node'))) {
      mkdirSync(NODE_22, { recursive: true })
      writeFileSync(join(NODE_22, 'package.json'), '{"private":true,"allowScripts":{"node":true}}')
      await run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', 'node@22'], { cwd: NODE_22 })
    }
    for (const node of [process.execPath, join(NODE_22, 'node_modules/.bin/node')]) {
      const { stdout: version } = await run(node, ['--version'])
      const { stdout, stderr } = await run(node, ['client.js'], { cwd: scratch })
      t.match(stdout, /^[a-z]+\/[a-z-]+\n$/, `the client on ${version.trim()}`)
      t.equal(stderr, '')
    }
    const { stdout } = await run(process.execPath, ['server.js', join(scratch, 'data')], { cwd: scratch })
    t.equal(stdout, '0 note\n', 'the server')
  })
})
