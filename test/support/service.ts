// The real application on a real socket, with a database of its own.

import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { join } from 'node:path'
import { pipeline, Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import type { HistoryStore } from '../../src/history/index.ts'
import type { Config } from '../../src/server/index.ts'
import { buildApp, DEFAULT_CONFIG } from '../../src/server/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'

export interface Service {
  readonly url: string
  readonly port: number
  readonly app: FastifyInstance
  readonly store: HistoryStore
  /** Log lines of level warn and above so far, parsed. */
  readonly log: { level: number; msg: string; err?: { message: string } }[]
  /** fetch, with a path instead of an address. It decodes the answer. */
  request(path: string, init?: RequestInit): Promise<Response>
  /** One request on a connection of its own, the answer as it came. */
  exchange(method: string, path: string, options?: ExchangeOptions): Promise<Exchange>
  /** A session with these events, each a type or a whole event; `seq` is given by the server. */
  append(id: string, events: readonly (string | object)[]): Promise<void>
  /** A bare connection, for what no client would send. */
  socket(): Promise<Socket>
}

export interface ExchangeOptions {
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** Called when the first byte of the answer's body is there. */
  readonly onFirstByte?: () => void
}

export interface Exchange {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Not decoded. */
  readonly body: Buffer
  /** Whether it ended as HTTP says it should. */
  readonly complete: boolean
  json(): Record<string, unknown>
}

export interface ServiceOptions {
  readonly config?: Partial<Config>
  /** Put something between the application and its store. */
  readonly wrap?: (store: HistoryStore) => HistoryStore
}

/** Closed when the test ends. */
export async function startService(
  t: Test,
  { config, wrap = (store) => store }: ServiceOptions = {},
): Promise<Service> {
  const settings = { ...DEFAULT_CONFIG, ...config }
  const store = await openSqliteStore(join(t.testdir(), 'scrollback.db'), { lineBytes: settings.lineBytes })
  const log: Service['log'] = []
  const stream = new Writable({
    write(line, _encoding, done) {
      log.push(JSON.parse(line.toString()))
      done()
    },
  })
  const app = await buildApp({
    store: wrap(store),
    config: settings,
    logger: { level: 'warn', stream },
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(async () => {
    await app.close()
    await store.close()
  })
  const port = Number(new URL(url).port)
  const request = (path: string, init?: RequestInit) => fetch(`${url}${path}`, init)
  return {
    url,
    port,
    app,
    store,
    log,
    request,
    exchange: (method, path, options) => exchange(port, method, path, options),
    async append(id, events) {
      await expectOk(await request(`/v1/sessions/${id}`, { method: 'PUT' }))
      const lines = events.map((event) => JSON.stringify(typeof event === 'string' ? { type: event, data: {} } : event))
      await expectOk(
        await request(`/v1/sessions/${id}/events`, {
          method: 'POST',
          headers: { 'content-type': 'application/x-ndjson' },
          body: `${lines.join('\n')}\n`,
        }),
      )
    },
    async socket() {
      const socket = connect(port, '127.0.0.1')
      // A test asks for what came, and how it ended.
      socket.on('error', () => {})
      await once(socket, 'connect')
      return socket
    },
  }
}

async function exchange(port: number, method: string, path: string, options: ExchangeOptions = {}): Promise<Exchange> {
  const { headers = {}, body, onFirstByte = () => {} } = options
  const request = httpRequest({ host: '127.0.0.1', port, method, path, headers, agent: false })
  const answered = once(request, 'response') as Promise<[IncomingMessage]>
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) request.end(body)
  // The answer may come before the body is sent, which is then no longer taken.
  else pipeline(Readable.from(body), request, () => {})
  const [response] = await answered
  request.on('error', () => {})
  const pieces: Buffer[] = []
  response.once('data', onFirstByte)
  response.on('data', (piece) => pieces.push(piece)).on('error', () => {})
  await new Promise((resolve) => response.once('close', resolve))
  const whole = Buffer.concat(pieces)
  const { statusCode: status = 0, complete } = response
  return { status, headers: response.headers, body: whole, complete, json: () => JSON.parse(whole.toString()) }
}

async function expectOk(response: Response): Promise<void> {
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

/** The store with one of its methods replaced, to delay it or to let it fail. */
export function replacing<Name extends keyof HistoryStore>(
  store: HistoryStore,
  name: Name,
  method: HistoryStore[Name],
): HistoryStore {
  return new Proxy(store, {
    get: (target, asked: keyof HistoryStore) => (asked === name ? method : target[asked].bind(target)),
  })
}

/** Wait for something that nobody announces. The test's own time limit is the only one. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await delay(5)
}

/** All that a connection gave until it ended. */
export async function received(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  socket.on('data', (piece) => pieces.push(piece))
  await new Promise((resolve) => socket.once('close', resolve))
  return Buffer.concat(pieces)
}

/** An assistant's token. */
export function newTextDelta(text: string, { turn = 0, step = 0, index = 0 } = {}): object {
  return { type: 'assistant/chunk', data: { turn, step, chunk: { type: 'text-delta', index, text } } }
}

export function newUserMessage(content: string): object {
  return { type: 'user/message', data: { role: 'user', content }, surfaceOp: 'append' }
}
