// The process: it starts, serves, and ends with grace when it is told to. (case H18 for what was acknowledged)

import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import { DEFAULT_CONFIG, startServer } from '../../src/server/index.ts'
import { until } from '../support/service.ts'

const MAIN = new URL('../../src/server/main.ts', import.meta.url).pathname

interface Process {
  readonly child: ChildProcess
  readonly url: string
  readonly output: () => string
  readonly exit: Promise<[number | null, NodeJS.Signals | null]>
}

/** The server as a process of its own. */
async function start(
  t: Test,
  environment: Record<string, string> = {},
  data = join(t.testdir(), 'data'),
): Promise<Process> {
  const child = spawn(process.execPath, [MAIN], {
    env: { PATH: process.env.PATH, PORT: '0', SCROLLBACK_DATA: data, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (piece) => {
      output += piece
    })
  }
  const exit = once(child, 'exit') as Process['exit']
  const listening = () => /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0]
  await until(() => listening() !== undefined || child.exitCode !== null)
  return { child, url: listening() ?? '', output: () => output, exit }
}

async function fill(t: Test, url: string, events: number): Promise<void> {
  await fetch(`${url}/v1/sessions/a`, { method: 'PUT' })
  const line = JSON.stringify({ type: 'note', data: 'x'.repeat(20_000) })
  const answer = await fetch(`${url}/v1/sessions/a/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: `${line}\n`.repeat(events),
  })
  t.equal(answer.status, 200)
}

/** A reader that has begun a page and takes no more of it for now. */
async function slowReader(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  const state = { bytes: 0, text: '' }
  socket.on('data', (piece) => {
    state.bytes += piece.length
    state.text = (state.text + piece.toString('latin1')).slice(-10)
  })
  socket.write('GET /v1/sessions/a/events HTTP/1.1\r\nHost: h\r\n\r\n')
  await until(() => state.bytes > 0)
  socket.pause()
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  return { socket, state, closed }
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal} lets a running page finish, and the process ends with 0`, async (t) => {
    const { child, url, exit } = await start(t)
    await fill(t, url, 1000)
    const { socket, state, closed } = await slowReader(url)
    child.kill(signal)
    await until(async () => {
      const answer = await fetch(`${url}/v1/sessions`).catch(() => undefined)
      return answer?.status === 503
    })
    socket.resume()
    await closed
    t.ok(state.bytes > 20_000_000, 'all of it came')
    t.equal(state.text.slice(-7), '\r\n0\r\n\r\n', 'to its end')
    t.same(await exit, [0, null])
  })
}

t.test('followers are told to come back, and nothing is lost across a restart (cases C3, B28)', async (t) => {
  const data = join(t.testdir(), 'followed')
  const quiet = { SCROLLBACK_HEARTBEAT: '86400' }
  const first = await start(t, quiet, data)
  await fill(t, first.url, 1000)
  const followers = await Promise.all(
    Array.from({ length: 50 }, (_, each) =>
      fetch(`${first.url}/v1/sessions/a/follow?afterSeq=999`, {
        headers: { 'accept-encoding': each % 2 === 0 ? 'identity' : 'gzip' },
      }),
    ),
  )
  const texts = followers.map(() => '')
  const ended = followers.map(async ({ body }, each) => {
    for await (const piece of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()))
      texts[each] += piece
  })
  await fill(t, first.url, 1)
  await until(() => texts.every((text) => text.endsWith('\n')))
  const { socket, state, closed } = await slowReader(first.url)
  first.child.kill('SIGTERM')
  await Promise.all(ended)
  for (const text of texts) {
    const lines = text.trimEnd().split('\n')
    t.equal(lines.length, 2)
    t.match(JSON.parse(lines[0] ?? ''), { type: 'event', event: { seq: 1000 } })
    t.same(JSON.parse(lines[1] ?? ''), { type: 'end', reason: 'draining' })
  }
  // A page in flight is waited for.
  t.equal(first.child.exitCode, null)
  socket.resume()
  await closed
  t.equal(state.text.slice(-7), '\r\n0\r\n\r\n')
  t.same(await first.exit, [0, null])

  const second = await start(t, quiet, data)
  await fill(t, second.url, 1)
  const again = await fetch(
    `${second.url}/v1/sessions/a/follow?afterSeq=1000&epoch=${followers[0]?.headers.get('history-epoch')}`,
  )
  t.match(again, { status: 200 })
  t.equal(again.headers.get('history-from'), '1001')
  t.equal(again.headers.get('history-to'), '1002')
  const whole = again.text()
  second.child.kill('SIGTERM')
  t.match(await whole, /^{"type":"event","event":{"seq":1001,.*\n{"type":"end","reason":"draining"}\n$/s)
  t.same(await second.exit, [0, null])
})

t.test('a page that does not finish is cut when the grace is over', async (t) => {
  const { child, url, exit } = await start(t, { SCROLLBACK_GRACE: '1' })
  await fill(t, url, 1000)
  const { socket, state, closed } = await slowReader(url)
  child.kill('SIGTERM')
  t.same(await exit, [0, null])
  socket.resume()
  await closed
  t.not(state.text.slice(-7), '\r\n0\r\n\r\n', 'and its body has no end')
})

t.test('a second signal waits no longer', async (t) => {
  const { child, url, exit, output } = await start(t, { SCROLLBACK_GRACE: '86400' })
  await fill(t, url, 1000)
  const { closed, socket } = await slowReader(url)
  child.kill('SIGTERM')
  await until(() => output().includes('"closing"'))
  child.kill('SIGTERM')
  t.same(await exit, [0, null])
  socket.resume()
  await closed
})

t.test('what was acknowledged is there after a restart, also one without grace', async (t) => {
  const data = join(t.testdir(), 'kept')
  const first = await start(t, {}, data)
  await fill(t, first.url, 3)
  first.child.kill('SIGKILL')
  await first.exit
  const second = await start(t, {}, data)
  t.match(await (await fetch(`${second.url}/v1/sessions/a`)).json(), { head: 2 })
})

t.test('a process that cannot start says why', async (t) => {
  const bad = await start(t, { PORT: 'any' })
  t.same(await bad.exit, [1, null])
  t.match(
    bad.output(),
    'PORT (port to listen on, 0 for any free one): expected a whole number from 0 to 65535, got "any"',
  )

  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  const taken = await start(t, { PORT: `${port}` })
  t.same(await taken.exit, [1, null])
  t.match(taken.output(), `port ${port} on 127.0.0.1 is in use: end what listens there, or set PORT to another one`)
  holder.close()

  const nowhere = await start(t, { SCROLLBACK_DATA: '/dev/null/data' })
  t.same(await nowhere.exit, [1, null])
  t.match(nowhere.output(), 'cannot make the folder /dev/null/data: not a directory; SCROLLBACK_DATA names the folder')

  const data = t.testdir({ 'scrollback.db': 'this is no database, only a text' })
  const refused = await start(t, {}, data)
  t.same(await refused.exit, [1, null])
  const file = join(data, 'scrollback.db')
  t.match(
    refused.output(),
    `cannot open ${file}: the store cannot answer: file is not a database; SCROLLBACK_DATA names the folder`,
  )
})

t.test('a server is started and closed as a value, several beside each other', async (t) => {
  const folder = t.testdir()
  const config = { ...DEFAULT_CONFIG, port: 0, logLevel: 'silent' }
  const before = process.listenerCount('SIGTERM')
  const servers = await Promise.all(['a', 'b'].map((name) => startServer({ ...config, data: join(folder, name) })))
  for (const { url } of servers) t.equal((await fetch(`${url}/readyz`)).status, 200)
  await Promise.all(servers.map((server) => server.close()))
  await servers[0]?.close()
  for (const { url } of servers) await t.rejects(fetch(`${url}/livez`))
  t.equal(process.listenerCount('SIGTERM'), before, 'nothing is left behind')
})
