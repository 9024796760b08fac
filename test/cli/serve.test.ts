import { exec } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import t from 'tap'
import { start, values } from './command-line.ts'

/** Starts the service and waits until it has said everything. */
async function serve(t: Test, data: string) {
  const running = start(['serve', '--port', '0', '--data', data], { LOG_LEVEL: 'warn', SCROLLBACK_GRACE: '1' })
  t.teardown(() => running.child.kill('SIGKILL'))
  let notes = ''
  running.child.stderr.on('data', (bytes) => {
    notes += bytes
  })
  while (!/\/docs\n/.test(notes) && running.child.exitCode === null) await once(running.child.stderr, 'data')
  const url = /listens on (http:\S+)/.exec(notes)?.[1] as string
  const commands = notes.split('\n').filter((line) => line.startsWith('  curl '))
  return { ...running, notes, url, commands }
}

t.test('an empty store gets the sample, and every line that is suggested works as it stands', async (t) => {
  const data = t.testdir()
  const { notes, commands, child, ended } = await serve(t, data)
  t.match(notes, /The store was empty; it has the sample session "demo" now\.\n/)
  const outputs: string[] = []
  for (const command of commands) outputs.push((await promisify(exec)(command)).stdout)
  const [list = '', page = '', before = '', appended = '', exported = ''] = outputs
  t.equal(outputs.length, 5)
  t.match(JSON.parse(list), { sessions: [{ id: 'demo' }] })
  const [headers = '', body = ''] = page.split('\r\n\r\n')
  const from = Number(/^history-from: (\d+)$/im.exec(headers)?.[1])
  t.ok(from > 0, 'the sample has more than one such page')
  t.match(headers, new RegExp(`^link: <.*beforeSeq=${from}.*>; rel="prev"`, 'im'))
  t.match(values(body)[0], { event: { seq: from } })
  t.ok(values(before).length > 0)
  t.match(JSON.parse(appended), { appended: 1 })
  t.match(values(exported).at(-1), { type: 'user/message', data: { content: 'hello' } })
  child.kill('SIGTERM')
  t.match(await ended, { code: 0, signal: null })

  const again = await serve(t, data)
  t.notMatch(again.notes, /empty/, 'a store that has something gets nothing')
  t.equal(again.commands.length, 5)
  again.child.kill('SIGINT')
  t.match(await again.ended, { code: 0, signal: null })
})

t.test('an address that is taken is a failure in one line', async (t) => {
  const first = await serve(t, t.testdir({ one: {}, two: {} }))
  const second = start(['serve', '--port', new URL(first.url).port, '--data', `${t.testdirName}/two`], {
    LOG_LEVEL: 'silent',
  })
  const { port } = new URL(first.url)
  t.match(await second.ended, {
    code: 1,
    stdout: '',
    stderr: `scrollback: port ${port} on 127.0.0.1 is in use: end what listens there, or set PORT to another one (0 for any free one)\n`,
  })
  first.child.kill('SIGTERM')
  t.match(await first.ended, { code: 0 })
})

t.test('a signal during the start ends it', async (t) => {
  // It was lost: the command had taken over the signals, and the server, which was to end the process, came too late.
  for (const wait of [150, 300, 450, 600]) {
    const { child, ended } = start(['serve', '--port', '0', '--data', t.testdir()], { LOG_LEVEL: 'warn' })
    t.teardown(() => child.kill('SIGKILL'))
    const timer = setTimeout(() => child.kill('SIGTERM'), wait)
    const { code, signal } = await ended
    clearTimeout(timer)
    t.ok(code === 0 || signal === 'SIGTERM', `after ${wait} ms: ${code ?? signal}`)
  }
})
