import { once } from 'node:events'
import t from 'tap'
import { HistoryClient } from '../../src/client/index.ts'
import { problem, scriptedServer } from '../client/scripted-server.ts'
import { reset } from '../support/fault-proxy.ts'
import { call, start, startService, values } from './command-line.ts'

const note = (data: unknown) => `${JSON.stringify({ type: 'note', data })}\n`
const numbered = (seq: number) => `${JSON.stringify({ type: 'note', seq, time: 1, data: seq })}\n`

t.test('events are appended as they come, and acknowledged batch by batch', async (t) => {
  const { url } = await startService(t)
  const missing = await call(['append', 's', '-', '--url', url], { input: note(0) })
  t.match(missing, { code: 1, stdout: '', stderr: /^scrollback: session\/not-found: .*\n$/ })

  const { child, ended } = start(['append', 's', '-', '--create', '--url', url])
  child.stdin.write(note('a') + note('b'))
  // The acknowledgement comes while standard input is open: a pause sends what is there.
  const [first] = await once(child.stdout, 'data')
  t.equal(`${first}`, '{"head":1,"appended":2,"duplicates":0}\n')
  child.stdin.end(numbered(2) + numbered(3) + note('c') + note('d'))
  const { code, stdout, stderr } = await ended
  t.match({ code, stderr }, { code: 0, stderr: '' })
  t.strictSame(values(stdout).slice(1), [
    { head: 3, appended: 2, duplicates: 0 },
    { head: 5, appended: 2, duplicates: 0 },
  ])

  const input = note('x') + note('y')
  const from = ['append', 's', '-', '--expected-seq', '6', '--url', url]
  t.equal((await call(from, { input })).stdout, '{"head":7,"appended":2,"duplicates":0}\n')
  t.equal((await call(from, { input })).stdout, '{"head":7,"appended":0,"duplicates":2}\n', 'nothing is added twice')
  t.match(await call(from, { input: note('z') }), {
    code: 1,
    stdout: '',
    stderr: /^scrollback: append\/conflict: .*\n$/,
  })
  t.match(await call(from, { input: '' }), { code: 0, stdout: '', stderr: '' })

  const file = t.testdir({ 'events.ndjson': Array.from({ length: 2500 }, (_, n) => note(n)).join('') })
  const many = await call(['append', 's', `${file}/events.ndjson`, '--url', url])
  t.match(many, { code: 0, stderr: '' })
  t.strictSame(
    values(many.stdout).map(({ appended }) => appended),
    [1000, 1000, 500],
  )

  const client = new HistoryClient({ baseUrl: url })
  const seqs: number[] = []
  for await (const { event } of (await client.session('s').range()).records) seqs.push(event.seq)
  await client.close()
  t.equal(seqs.length, 2508)
})

t.test('the line of the input that was refused is named', async (t) => {
  const { url } = await startService(t)
  const append = (input: string) => call(['append', 's', '-', '--create', '--url', url], { input })
  const [malformed, refused] = [
    await append(`${note(1)}\n${note(2)}not json\n${note(3)}`),
    await append(`${'\n'.repeat(5)}${numbered(2)}${numbered(3)}${numbered(7)}`),
  ]
  t.match(malformed, { code: 1, stderr: /^scrollback: event\/invalid: .* \(line 4 of the input\)\n$/ })
  t.equal(malformed.stdout, '{"head":1,"appended":2,"duplicates":0}\n', 'the lines before it are stored')
  t.match(refused, { code: 1, stdout: '', stderr: /^scrollback: append\/gap: .* \(line 8 of the input\)\n$/ })
})

t.test('a failure ends it although standard input stays open', async (t) => {
  const { url } = await startService(t)
  const { child, ended } = start(['append', 's', '-', '--create', '--url', url])
  child.stdin.write(numbered(5))
  t.match(await ended, { code: 1, stdout: '', stderr: /^scrollback: append\/gap: / })
  const stopped = start(['append', 's', '-', '--url', url])
  stopped.child.stdin.write(numbered(0))
  await once(stopped.child.stdout, 'data')
  stopped.child.kill('SIGTERM')
  t.match(await stopped.ended, { code: null, signal: 'SIGTERM', stderr: '' })
})

t.test('a batch is repeated until it is acknowledged, and doubles nothing', async (t) => {
  // The answers of the first tries are lost after the service has stored the events.
  const service = await startService(t)
  const { url, exchanges } = await scriptedServer(t, async ({ method, url, headers, body }, response, count) => {
    if (count === 1) return problem(response, 503, 'server/draining', {}, { 'retry-after': '0' })
    const answer = await fetch(new URL(`${url.pathname}${url.search}`, service.url), {
      method,
      headers: method === 'GET' ? {} : { 'content-type': headers['content-type'] as string },
      body: method === 'GET' ? null : body,
    })
    const text = await answer.text()
    if (count === 4 || count === 5) return reset(response.socket)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
  })
  await fetch(`${service.url}/v1/sessions/s`, { method: 'PUT' })
  const { child, ended } = start(['append', 's', '-', '--url', url])
  child.stdin.write(note('a'))
  await once(child.stdout, 'data')
  child.stdin.end(note('b') + note('c'))
  const { code, stdout, stderr } = await ended
  t.equal(code, 0)
  t.strictSame(values(stdout), [
    { head: 0, appended: 1, duplicates: 0 },
    { head: 2, appended: 0, duplicates: 2 },
  ])
  t.equal(stderr.match(/^scrollback: server\/draining: .*; trying again in \d+\.\d\d s$/gm)?.length, 1)
  t.equal(stderr.match(/^scrollback: network\/lost: .*; trying again in \d+\.\d\d s$/gm)?.length, 2)
  t.strictSame(
    exchanges.map(({ method, url }) => [method, url.searchParams.get('expectedSeq'), url.searchParams.has('epoch')]),
    [
      ['GET', null, false],
      ['GET', null, false],
      ['POST', '0', true],
      ['POST', '1', true],
      ['POST', '1', true],
      ['POST', '1', true],
    ],
  )
})

t.test('tries are bounded', async (t) => {
  const { url, exchanges } = await scriptedServer(t, (_exchange, response) =>
    problem(response, 503, 'server/busy', {}, { 'retry-after': '0' }),
  )
  const { code, stderr } = await call(['append', 's', '-', '--url', url, '--tries', '3'], { input: note(1) })
  t.equal(code, 1)
  t.match(stderr, /\nscrollback: server\/busy: about server\/busy\n$/)
  t.equal(exchanges.length, 3)
})
