// The description: it is the committed one, it covers every route, and its pages need nothing from elsewhere.

import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import t from 'tap'
import { openapiText } from '../../src/server/write-openapi.ts'
import { startService } from '../support/service.ts'

t.test('openapi.yaml is what the routes describe', async (t) => {
  t.equal(await readFile(new URL('../../openapi.yaml', import.meta.url), 'utf8'), await openapiText())
  const script = new URL('../../src/server/write-openapi.ts', import.meta.url)
  await promisify(execFile)(process.execPath, [script.pathname, '--check'])
})

t.test('every operation is there, with its answers', async (t) => {
  const service = await startService(t)
  const yaml = await (await service.request('/openapi.yaml')).text()
  t.equal(yaml, await openapiText())
  const document = service.app.swagger() as unknown as {
    openapi: string
    paths: Record<string, Record<string, Operation>>
  }
  interface Operation {
    operationId: string
    summary: string
    tags: string[]
    parameters?: { name: string; in: string; required: boolean; example?: unknown; schema: { default?: string } }[]
    responses: Record<string, { description: string }>
  }
  t.match(document.openapi, /^3\.1\./)
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
  )
  t.same(operations.map(({ name }) => name).sort(), [
    'delete /v1/sessions/{id}',
    'get /livez',
    'get /metrics',
    'get /openapi.yaml',
    'get /readyz',
    'get /v1/sessions',
    'get /v1/sessions/{id}',
    'get /v1/sessions/{id}/events',
    'get /v1/sessions/{id}/export',
    'get /v1/sessions/{id}/follow',
    'get /v1/sessions/{id}/history',
    'get /v1/sessions/{id}/messages',
    'get /v1/sessions/{parent}/subagents',
    'get /v1/sessions/{parent}/subagents/{child}/events',
    'get /v1/sessions/{parent}/subagents/{child}/follow',
    'get /v1/sessions/{parent}/subagents/{child}/history',
    'get /v1/sessions/{parent}/subagents/{child}/messages',
    'post /v1/sessions/import',
    'post /v1/sessions/{id}/events',
    'put /v1/sessions/{id}',
  ])
  const ids = operations.map(({ operationId }) => operationId)
  t.equal(new Set(ids).size, ids.length, 'ids are unique')
  for (const { name, summary, tags, responses } of operations) {
    t.ok(summary && tags.length === 1, name)
    t.ok(Object.keys(responses).some((status) => status.startsWith('2')))
  }
  // Pages that let a reader try a request fill examples and defaults in, and the request must work with them.
  const parameters = operations.flatMap(({ parameters = [] }) => parameters)
  for (const { name, required, example } of parameters) t.equal(example, required ? 'demo' : undefined, name)
  const defaults = parameters.flatMap(({ name, schema }) =>
    schema.default === undefined ? [] : [[name, schema.default]],
  )
  t.same(Object.fromEntries(defaults), {
    chunks: 'packed',
    fromSeq: '0',
    layout: 'packed',
    limit: '50',
    maxMessages: '50',
  })
  t.notMatch(yaml, 'x-parameter')
  t.notMatch(yaml, /[&*]a\d+\b/, 'written out in full')
  for (const [, name = ''] of yaml.matchAll(/#\/components\/schemas\/(\w+)/g)) t.match(yaml, `\n    ${name}:\n`)
})

t.test('the pages for people are served from here', async (t) => {
  const service = await startService(t)
  const seen = new Set<string>()
  for (const path of ['/docs', '/docs/']) {
    const answer = await service.request(path)
    t.equal(answer.status, 200)
    t.match(answer.headers.get('content-security-policy'), "default-src 'self'")
    const html = await answer.text()
    t.match(html, '<title>scrollback</title>')
    t.notMatch(html, /(src|href)="https?:/)
    for (const [, link = ''] of html.matchAll(/(?:src|href)="([^"#]+)"/g))
      seen.add(new URL(link, `${service.url}${path}`).pathname)
  }
  t.ok(seen.size >= 4)
  for (const path of seen) t.equal((await service.request(path)).status, 200, path)
  t.equal((await service.request('/docs/json')).status, 200)
  t.match(await service.exchange('GET', '/'), { status: 302, headers: { location: '/docs' } })
})
