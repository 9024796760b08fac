import { once } from 'node:events'
import t from 'tap'
import { startService } from '../support/service.ts'

t.test('requests by route and status, followers, and the process', async (t) => {
  const service = await startService(t)
  await service.append('a', [])
  const text = async () => (await service.exchange('GET', '/metrics')).body.toString()
  const value = (figures: string, name: string) =>
    figures
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1]

  for (const id of ['a', 'b']) await service.exchange('GET', `/v1/sessions/${id}/history`)
  await service.exchange('GET', '/nowhere/at/all')
  const follower = await service.socket()
  follower.write('GET /v1/sessions/a/follow HTTP/1.1\r\nHost: a\r\n\r\n')
  await once(follower, 'data')

  const figures = await text()
  const count = (route: string, status: number) =>
    value(figures, `scrollback_http_request_duration_seconds_count{method="GET",route="${route}",status="${status}"}`)
  t.equal(count('/v1/sessions/:id/history', 200), '1')
  t.equal(count('/v1/sessions/:id/history', 404), '1')
  t.equal(count('none', 404), '1', 'what is no route has one name, whatever was asked for')
  t.equal(value(figures, 'scrollback_followers'), '1')
  for (const name of [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'nodejs_eventloop_lag_p99_seconds',
  ]) {
    t.match(Number(value(figures, name)), /^\d/, name)
  }

  follower.destroy()
  let after = await text()
  while (value(after, 'scrollback_followers') !== '0') after = await text()
  t.notMatch(after, /route="[^"]*follow/, 'what stays open has no duration')
})

t.test('the figures are text that names its form, also of several applications in one process', async (t) => {
  for (let n = 0; n < 2; n++) {
    const service = await startService(t)
    const answer = await service.exchange('GET', '/metrics')
    t.equal(answer.status, 200)
    t.match(answer.headers['content-type'], /^text\/plain; version=0\.0\.4/)
    const types = [...answer.body.toString().matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
    t.equal(new Set(types).size, types.length, 'each figure is there once')
  }
  const service = await startService(t)
  t.match(await service.exchange('HEAD', '/metrics'), { status: 200, body: Buffer.of() })
})
