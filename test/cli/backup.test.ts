import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { DEFAULT_CONFIG, startServer } from '../../src/server/index.ts'
import { run, values } from './command-line.ts'

t.test('a backup of a running service restores to the same sessions under another epoch', async (t) => {
  const data = t.testdir()
  const config = { ...DEFAULT_CONFIG, port: 0, logLevel: 'silent' }
  const server = await startServer({ ...config, data: join(data, 'used') })
  const put = await fetch(`${server.url}/v1/sessions/a`, { method: 'PUT' })
  const { epoch } = (await put.json()) as { epoch: string }
  await fetch(`${server.url}/v1/sessions/a/events`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-ndjson' },
    body: '{"type":"note","data":1}',
  })
  await mkdir(join(data, 'restored'))
  const copy = join(data, 'restored', 'scrollback.db')
  const made = await run(['backup', copy, '--data', join(data, 'used')])
  t.match(made, { code: 0, stderr: '' })
  t.same(values(made.stdout), [{ backup: copy }])
  const again = await run(['backup', copy, '--data', join(data, 'used')])
  t.match(again, { code: 1, stdout: '', stderr: /exists already/ })
  await server.close()

  const restored = await startServer({ ...config, data: join(data, 'restored') })
  t.teardown(() => restored.close())
  const session = (await (await fetch(`${restored.url}/v1/sessions/a`)).json()) as { epoch: string; head: number }
  t.equal(session.head, 0)
  t.not(session.epoch, epoch)
  const old = await fetch(`${restored.url}/v1/sessions/a/events?fromSeq=1&epoch=${epoch}`)
  t.equal(old.status, 409, 'a cursor into the original is told')
})

t.test('without a store there is nothing to copy', async (t) => {
  const data = t.testdir()
  const failed = await run(['backup', join(data, 'copy.db'), '--data', join(data, 'none')])
  t.match(failed, { code: 1, stdout: '', stderr: /there is no store at/ })
  t.notOk(existsSync(join(data, 'none')))
})
