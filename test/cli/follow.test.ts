import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { Output, runCommandLine } from '../../src/cli/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { eventLines, pageHeaders, problem, scriptedServer } from '../client/scripted-server.ts'
import { until } from '../support/service.ts'
import { call, MAIN, start, startService, values } from './command-line.ts'

const note = (data: unknown) => ({ type: 'note', data }) as { type: string; data: string }

/** Follows in this process, with a terminal. */
function follow(args: string[], { isTTY = false } = {}) {
  const stop = new AbortController()
  const stdout = new PassThrough()
  const seen = { stdout: '', stderr: '' }
  stdout.on('data', (piece) => {
    seen.stdout += piece
  })
  const write = (part: string) => {
    seen.stderr += part
  }
  const code = runCommandLine(['follow', ...args], {
    environment: {},
    input: () => new PassThrough(),
    output: new Output(stdout),
    terminal: { isTTY, columns: 60, write },
    signal: stop.signal,
  })
  return { seen, code, stop }
}

t.test('records as they come, until the session is deleted', async (t) => {
  const { url } = await startService(t)
  const client = new HistoryClient({ baseUrl: url })
  t.teardown(() => client.close())
  await client.sessions.create('s')
  const session = client.session('s')
  await session.append([note(0), note(1), note(2)])
  const exact = '{"type":"note","seq":3,"time":1,"data":{"big":9007199254740993,"one":1.0}}'
  const { seen, code } = follow(['s', '--after', '0', '--url', url])
  await until(() => values(seen.stdout).length === 2)
  await session.append({ lines: `${exact}\n`, events: 1, numbered: true })
  await until(() => values(seen.stdout).length === 3)
  await client.sessions.delete('s')
  t.equal(await code, 0)
  t.ok(seen.stdout.endsWith(`{"type":"event","event":${exact}}\n`), 'to the letter')
  t.strictSame(
    values(seen.stdout).map((record) => (record.event as { seq: number }).seq),
    [1, 2, 3],
  )
  t.equal(seen.stderr, '', 'no terminal, no status')
})

t.test('as a process that is stopped', async (t) => {
  const { url } = await startService(t)
  const client = new HistoryClient({ baseUrl: url })
  t.teardown(() => client.close())
  await client.sessions.create('s')
  const message = { type: 'user/message', data: { role: 'user', content: 'x' }, surfaceOp: 'append' as const }
  await client.session('s').append([message, message, message])
  const { child, ended } = start(['follow', 's', '--messages', '2', '--url', url])
  let lines = 0
  child.stdout.on('data', (piece) => {
    lines += String(piece).split('\n').length - 1
  })
  await until(() => lines === 2)
  child.kill('SIGINT')
  t.match(await ended, { code: 0, signal: null, stderr: '' })
})

t.test('a terminal is told where it stands, and is left clean', async (t) => {
  let wrong = 1
  const { url } = await scriptedServer(t, ({ url }, response) => {
    if (url.searchParams.has('afterSeq') && wrong-- > 0) return problem(response, 503, 'server/busy')
    const from = Number(url.searchParams.get('afterSeq') ?? -1) + 1
    response.writeHead(200, pageHeaders({ from, to: from + 2 }))
    response.end(`${eventLines(from, from + 2)}${from > 0 ? '{"type":"end","reason":"deleted"}\n' : ''}`)
  })
  const { seen, code } = follow(['s', '--url', url], { isTTY: true })
  t.equal(await code, 0)
  t.equal(values(seen.stdout).length, 4)
  const drawn = seen.stderr.split('\r\u001b[2K')
  t.ok(drawn.includes('s  connecting'))
  t.ok(drawn.some((line) => line.startsWith('s  seq 1  reconnecting: answer/incomplete')))
  t.ok(drawn.some((line) => line.startsWith('s  seq 1  reconnecting: server/busy')))
  t.ok(drawn.includes('s  seq 3  live'))
  t.ok(
    drawn.every((line) => line.length < 60),
    'none wraps',
  )
  t.equal(drawn.at(-1), '')
})

t.test('what cannot be followed is a failure', async (t) => {
  const { url } = await startService(t)
  const client = new HistoryClient({ baseUrl: url })
  t.teardown(() => client.close())
  await client.sessions.create('s')
  await client.sessions.create('child', { parentSession: 's', origin: 'subagent' })
  const cases: [string[], number, RegExp][] = [
    [['nobody'], 1, /^scrollback: session\/not-found: there is no session nobody\n$/],
    [['child'], 1, /^scrollback: session\/not-found: child is a subagent; read it with --parent s\n$/],
    [['s', '--after', '7'], 1, /^scrollback: history\/ahead: /],
    [['s', '--epoch', 'other'], 1, /^scrollback: session\/replaced: /],
    [['s', '--parent', 'p'], 1, /^scrollback: subagent\/not-found: /],
    [['s', '--after', '-2'], 2, /^scrollback follow: --after expects an integer of at least -1/],
    [['s', '--messages', '0'], 2, /--messages expects an integer from 1 to 500/],
    [[], 2, /^scrollback follow: ID is missing/],
  ]
  for (const [args, code, stderr] of cases) {
    t.match(await call(['follow', ...args, '--url', url]), { code, stdout: '', stderr }, args.join(' '))
  }
})

t.test('a reader who leaves ends it quietly', async (t) => {
  const { url } = await startService(t)
  const client = new HistoryClient({ baseUrl: url })
  t.teardown(() => client.close())
  await client.sessions.create('s')
  const session = client.session('s')
  await session.append([note(0)])
  const child = spawn(process.execPath, [MAIN, 'follow', 's', '--url', url], { stdio: ['ignore', 'pipe', 'pipe'] })
  const exit = once(child, 'exit')
  await once(child.stdout, 'data')
  child.stdout.destroy()
  // Only a write can find out.
  while (child.exitCode === null) {
    await session.append([note('more')])
    await delay(20)
  }
  t.strictSame(await exit, [0, null])
})
