import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { Test } from 'tap'
import t from 'tap'
import { BorrowedBody } from '../../src/server/borrowed-body.ts'
import { listening } from '../support/listening.ts'

/** A request whose body has begun, and who sends it. */
async function begun(t: Test) {
  const server = createServer()
  const { hostname, port } = new URL(await listening(t, server))
  const client = connect(Number(port), hostname)
  t.teardown(() => client.destroy())
  client.on('error', () => {})
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc')
  const [request, response] = await once(server, 'request')
  return { client, request: request as IncomingMessage, response }
}

t.test('the bytes of the request, to their end', async (t) => {
  const { client, request } = await begun(t)
  const body = new BorrowedBody(request)
  client.write('def')
  t.equal(Buffer.concat(await body.toArray()).toString(), 'abcdef')
})

t.test('closed early, it leaves the connection open for the answer', async (t) => {
  const { client, request, response } = await begun(t)
  const body = new BorrowedBody(request)
  body.destroy()
  await once(body, 'close')
  client.write('def')
  response.end('answered')
  const [answer] = await once(client, 'data')
  t.match(String(answer), /answered/)
})

t.test('a connection that ends before the body fails it', async (t) => {
  const { client, request } = await begun(t)
  const body = new BorrowedBody(request)
  client.destroy()
  await t.rejects(body.toArray())
})

t.test('a body that nobody reads fails quietly', async (t) => {
  const { request } = await begun(t)
  const body = new BorrowedBody(request)
  request.destroy()
  await new Promise((resolve) => body.once('close', resolve))
  t.match(body.errored, { message: /before the body ended/ })
})
