import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { expandRecord, validateRecord } from '../../codec/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { eventLines, pageHeaders, scriptedServer } from '../client/scripted-server.ts'
import { call, MAIN, run, SAMPLE, startService, values } from './command-line.ts'

t.test('pages of a session', async (t) => {
  const { url } = await startService(t)
  const client = new HistoryClient({ baseUrl: url })
  const log = readFileSync(SAMPLE, 'utf8')
  const { epoch, head } = await client.sessions.import(log)
  await client.sessions.create('child', { parentSession: 'demo', origin: 'subagent' })
  const exact = '{"type":"note","seq":0,"time":1,"data":{"big":9007199254740993,"one":1.0}}'
  await client.session('child').append({ lines: `${exact}\n`, events: 1, numbered: true })
  await client.close()

  const page = (...args: string[]) => call(['page', ...args, '--url', url])
  const [all, newest, raw, expanded, child, hidden, other, ahead] = await Promise.all([
    run(['page', 'demo', '--all', '--messages', '1', '--url', url]),
    page('demo', '--messages', '1', '--epoch', epoch),
    page('demo', '--before', '72', '--messages', '2', '--chunks', 'omit'),
    page('demo', '--through', '80', '--chunks', 'expanded'),
    page('child', '--parent', 'demo'),
    page('child'),
    page('demo', '--epoch', 'another'),
    page('demo', '--before', '1000'),
  ])

  const records = values(all?.stdout ?? '').map(validateRecord)
  const starts = records.map(({ event }) => event.seq)
  t.match(all, { code: 0, stderr: '' })
  t.ok(starts[0]! > 0, 'the newest page comes first')
  t.match(newest, { code: 0, stderr: '' })
  t.ok(newest?.stdout && all?.stdout.startsWith(newest.stdout))
  const seqs = records.flatMap((record) => expandRecord(record)).map(({ seq }) => seq)
  t.strictSame(
    seqs.toSorted((a, b) => a - b),
    Array.from({ length: head + 1 }, (_, seq) => seq),
    'every event once',
  )

  t.match(raw, { code: 0, stderr: '' })
  t.ok(values(raw?.stdout ?? '').some(({ type }) => type === 'omitted'))
  t.match(expanded, { code: 0, stderr: '' })
  const lines = values(expanded?.stdout ?? '')
  t.ok(lines.every(({ type }) => type === 'event'))
  t.match(lines.at(-1), { event: { seq: 80 } })
  t.strictSame(child, { code: 0, signal: null, stdout: `{"type":"event","event":${exact}}\n`, stderr: '' })
  t.match(hidden, {
    code: 1,
    stdout: '',
    stderr: 'scrollback: session/not-found: child is a subagent; read it with --parent demo\n',
  })
  t.match(other, { code: 1, stdout: '', stderr: /^scrollback: session\/replaced: .*\n$/ })
  t.match(ahead, { code: 1, stdout: '', stderr: /^scrollback: history\/ahead: .*\n$/ })
})

t.test('a page that lies is written up to the lie, and is a failure', async (t) => {
  const bodies: Record<string, string> = {
    cut: eventLines(0, 4),
    gap: eventLines(0, 2) + eventLines(3, 9),
  }
  const { url } = await scriptedServer(t, ({ url }, response) => {
    response.writeHead(200, pageHeaders({ from: 0, to: 9 })).end(bodies[url.pathname.split('/').at(-2) as string])
  })
  const [cut, gap, nowhere] = await Promise.all([
    run(['page', 'cut', '--url', url]),
    call(['page', 'gap', '--url', url]),
    call(['page', 'any', '--url', 'http://127.0.0.1:9']),
  ])
  t.match(cut, { code: 1, stdout: eventLines(0, 4), stderr: /^scrollback: answer\/incomplete: .*\n$/ })
  t.match(gap, { code: 1, stdout: eventLines(0, 2), stderr: /^scrollback: answer\/malformed: .*\n$/ })
  t.match(nowhere, { code: 1, stdout: '', stderr: /^scrollback: network\/unreachable: .*\n$/ })
})

t.test('a reader who leaves ends it quietly', async (t) => {
  // `scrollback page | head` must not end in a stack trace, nor in a failure.
  const { url } = await scriptedServer(t, (_exchange, response) => {
    response.writeHead(200, pageHeaders({ from: 0, to: 1e6 }))
    let seq = 0
    const more = () => {
      for (let room = true; room && !response.destroyed && seq < 1e6; seq += 100) {
        room = response.write(eventLines(seq, seq + 100))
      }
    }
    response.on('drain', more)
    more()
  })
  const child = spawn(process.execPath, [MAIN, 'page', 's', '--url', url], { stdio: ['ignore', 'pipe', 'pipe'] })
  const notes = text(child.stderr)
  await once(child.stdout, 'readable')
  child.stdout.destroy()
  const [code, signal] = await once(child, 'exit')
  t.strictSame([code, signal, await notes], [0, null, ''])
})
