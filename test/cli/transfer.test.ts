import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { pageHeaders, scriptedServer, written } from '../client/scripted-server.ts'
import { reset } from '../support/fault-proxy.ts'
import { call, run, SAMPLE, start, startService, values } from './command-line.ts'

const SAMPLE_TEXT = readFileSync(SAMPLE, 'utf8')
const sampleAs = (id: string) => SAMPLE_TEXT.replace('"id":"demo"', `"id":"${id}"`)
const SAMPLE_HEAD = 113

t.test('logs go in and come out unchanged', async (t) => {
  const { url } = await startService(t)
  const dir = t.testdir({
    'plain.jsonl': sampleAs('plain'),
    'bad.jsonl': `${sampleAs('bad')}{"type":`,
    'named.jsonl.zst': zstdCompressSync(sampleAs('named')),
    'magic.bin': zstdCompressSync(sampleAs('magic')),
    'skippable.bin': Buffer.concat([
      Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]),
      zstdCompressSync(sampleAs('skippable')),
    ]),
  })
  const names = ['plain.jsonl', 'missing.jsonl', 'bad.jsonl', 'named.jsonl.zst', 'magic.bin', 'skippable.bin']
  const files = [...names.map((name) => `${dir}/${name}`), '-']
  const input = zstdCompressSync(sampleAs('stdin'))
  const imported = await run(['import', '--url', url, ...files], { input })
  t.equal(imported.code, 1)
  const [missing = '', bad = '', ...more] = imported.stderr.split('\n')
  t.match(missing, new RegExp(`^scrollback: ${dir}/missing\\.jsonl: ENOENT`))
  t.match(bad, new RegExp(`^scrollback: ${dir}/bad\\.jsonl: log/invalid: `))
  t.strictSame(more, [''], 'one line for each that failed')
  const results = values(imported.stdout)
  t.strictSame(
    results.map(({ file, id, head }) => [file, id, head]),
    [
      [files[0], 'plain', SAMPLE_HEAD],
      [files[3], 'named', SAMPLE_HEAD],
      [files[4], 'magic', SAMPLE_HEAD],
      [files[5], 'skippable', SAMPLE_HEAD],
      ['-', 'stdin', SAMPLE_HEAD],
    ],
  )
  t.strictSame(Object.keys(results[0] ?? {}), ['file', 'id', 'epoch', 'head'])

  const environment = { SCROLLBACK_URL: url }
  const [exported, events, again, cut, unknown] = await Promise.all([
    run(['export', 'stdin'], { environment }),
    call(['export', 'stdin', '--layout', 'events', '-o', `${dir}/events.jsonl`], { environment }),
    call(['import', files[0] as string, '--expected-head', `${SAMPLE_HEAD}`], { environment }),
    call(['import', '-', '--expected-head', `${SAMPLE_HEAD + 1}`], { environment, input: sampleAs('cut') }),
    call(['export', 'nobody', '-o', `${dir}/nobody.jsonl`], { environment }),
  ])
  t.strictSame(exported, { code: 0, signal: null, stdout: sampleAs('stdin'), stderr: '' })
  t.match(events, { code: 0, stdout: '', stderr: '' })
  t.equal(values(readFileSync(`${dir}/events.jsonl`, 'utf8')).length, SAMPLE_HEAD + 2)
  t.match(again, { code: 0, stderr: '' })
  t.strictSame(values(again?.stdout ?? '')[0], results[0], 'it was there already')
  t.match(cut, { code: 1, stdout: '', stderr: /^scrollback: -: log\/invalid: .*\n$/ })
  const nowhere = await call(['export', 'stdin', '-o', `${dir}/none/x.jsonl`], { environment })
  t.equal(nowhere.stderr, `scrollback: cannot write ${dir}/none/x.jsonl: no such file or directory\n`)
  t.match(unknown, { code: 1, stdout: '', stderr: /^scrollback: session\/not-found: .*\n$/ })
  t.notOk(readdirSync(dir).some((name) => name.startsWith('nobody')))
})

t.test('an export that does not come whole is a failure, and no file has its name', async (t) => {
  const lines = SAMPLE_TEXT.trimEnd().split('\n')
  const headers = { 'history-epoch': 'e1', 'history-head': '113', 'history-to': '114' }
  const { url } = await scriptedServer(t, async ({ url }, response) => {
    response.writeHead(200, headers)
    if (url.searchParams.get('layout') === 'packed') return response.end(lines.slice(0, -1).join('\n'))
    await written(response, `${lines.slice(0, 5).join('\n')}\n`)
    reset(response.socket)
  })
  const dir = t.testdir({ 'demo.jsonl': 'an older export\n' })
  const [cut, lost, piped] = await Promise.all([
    call(['export', 'demo', '--url', url, '--layout', 'packed', '-o', `${dir}/demo.jsonl`]),
    call(['export', 'demo', '--url', url, '-o', `${dir}/other.jsonl`]),
    run(['export', 'demo', '--url', url, '--layout', 'packed']),
  ])
  t.match(cut, { code: 1, stdout: '', stderr: /^scrollback: answer\/incomplete: .* seq 113.*\n$/ })
  t.match(lost, { code: 1, stdout: '', stderr: /^scrollback: network\/lost: .*\n$/ })
  t.match(piped, { code: 1, stderr: /^scrollback: answer\/incomplete: / })
  t.strictSame(readdirSync(dir), ['demo.jsonl'])
  t.equal(readFileSync(`${dir}/demo.jsonl`, 'utf8'), 'an older export\n')
})

t.test('an export that is stopped leaves nothing behind', async (t) => {
  const dir = t.testdir({})
  const { url } = await scriptedServer(t, async (_exchange, response) => {
    response.writeHead(200, { 'history-epoch': 'e1', 'history-head': '113', 'history-to': '114' })
    response.write(`${SAMPLE_TEXT.split('\n').slice(0, 5).join('\n')}\n`)
  })
  const { child, ended } = start(['export', 'demo', '--url', url, '-o', `${dir}/demo.jsonl`])
  // Its file is there as soon as the body began to come.
  while (readdirSync(dir).length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  child.kill('SIGINT')
  t.match(await ended, { code: null, signal: 'SIGINT', stdout: '', stderr: '' })
  t.strictSame(readdirSync(dir), [])
})

t.test('a refusal in the middle of a large import is told', async (t) => {
  const { url } = await startService(t)
  const dir = t.testdir({})
  const file = `${dir}/large.jsonl`
  const filler = JSON.stringify('x'.repeat(1000))
  let log = '{"type":"session","version":0,"id":"large","createdAt":1}\n'
  for (let seq = 0; seq < 20_000; seq++) {
    log += `{"type":"note","seq":${seq < 100 ? seq : seq + 1},"time":1,"data":${filler}}\n`
  }
  writeFileSync(file, log)
  const { code, stderr } = await call(['import', file, '--url', url])
  t.equal(code, 1)
  t.match(stderr, new RegExp(`^scrollback: ${file}: log/invalid: .*\n$`))
})

t.test('what a server says does not steer the terminal', async (t) => {
  const { url } = await scriptedServer(t, (_exchange, response) => {
    const detail = 'one\r\ntwo\u001b[31m\u009b\u0007'
    const document = { type: 'urn:x', title: 'T.', status: 400, detail, code: 'request/invalid' }
    response.writeHead(400, { ...pageHeaders({ from: 0, to: 0 }), 'content-type': 'application/problem+json' })
    response.end(JSON.stringify(document))
  })
  const { stderr } = await call(['export', 's', '--url', url])
  t.equal(stderr, 'scrollback: request/invalid: one two?[31m??\n')
})
