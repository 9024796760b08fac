// The real application on a real socket, with a database of its own.

import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { once } from 'node:events'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import type { HistoryStore } from '../../src/history/index.ts'
import { buildApp, DEFAULT_CONFIG } from '../../src/server/index.ts'
import type { Config } from '../../src/server/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'

export interface Service {
  readonly url: string
  readonly port: number
  readonly app: FastifyInstance
  readonly store: HistoryStore
  /** Log lines of level warn and above so far, parsed. */
  readonly log: { level: number; msg: string; err?: { message: string } }[]
  /** fetch, with a path instead of an address. */
  request(path: string, init?: RequestInit): Promise<Response>
  /** A session with these events, each a type or a whole event; `seq` is given by the server. */
  append(id: string, events: readonly (string | object)[]): Promise<void>
  /** A bare connection, for what no client would send. */
  socket(): Promise<Socket>
}

export interface ServiceOptions {
  readonly config?: Partial<Config>
  /** Put something between the application and its store. */
  readonly wrap?: (store: HistoryStore) => HistoryStore
}

/** Closed when the test ends. */
export async function startService(t: Test, { config, wrap = (store) => store }: ServiceOptions = {}): Promise<Service> {
  const store = await openSqliteStore(join(t.testdir(), 'scrollback.db'))
  const log: Service['log'] = []
  const stream = new Writable({
    write(line, _encoding, done) {
      log.push(JSON.parse(line.toString()))
      done()
    },
  })
  const app = await buildApp({
    store: wrap(store),
    config: { ...DEFAULT_CONFIG, ...config },
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

async function expectOk(response: Response): Promise<void> {
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
}

/** All that a connection gave until it ended. */
export async function received(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = []
  socket.on('data', (piece) => pieces.push(piece))
  await once(socket, 'close')
  return Buffer.concat(pieces)
}

/** An assistant's token. */
export function textDelta(text: string, { turn = 0, step = 0, index = 0 } = {}): object {
  return { type: 'assistant/chunk', data: { turn, step, chunk: { type: 'text-delta', index, text } } }
}

export function userMessage(content: string): object {
  return { type: 'user/message', data: { role: 'user', content }, surfaceOp: 'append' }
}
