// Owns a server that answers as a test tells it: rightly, or with lies.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { listening } from '../support/listening.ts'

export interface Exchange {
  readonly method: string
  readonly url: URL
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export type Script = (exchange: Exchange, response: ServerResponse, count: number) => unknown

/** Calls `script` with each request once its body is there; `count` is 1 for the first. Closed with the test. */
export async function scriptedServer(t: Test, script: Script): Promise<{ url: string; exchanges: Exchange[] }> {
  const exchanges: Exchange[] = []
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    try {
      for await (const piece of request) pieces.push(piece)
    } catch {
      return
    }
    const { method = '', headers } = request
    const url = new URL(request.url ?? '/', 'http://service')
    exchanges.push({ method, url, headers, body: Buffer.concat(pieces).toString() })
    await script(exchanges.at(-1)!, response, exchanges.length)
  })
  const url = await listening(t, server)
  t.teardown(() => server.closeAllConnections())
  return { url, exchanges }
}

export interface PagePromise {
  from: number
  to: number
  epoch?: string
  more?: boolean
  head?: number
}

export function pageHeaders({ from, to, epoch = 'e1', more = from > 0, head }: PagePromise): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': 'application/x-ndjson; charset=utf-8',
    'history-epoch': epoch,
    'history-from': `${from}`,
    'history-to': `${to}`,
    'history-more': `${more}`,
  }
  if (head !== undefined) headers['history-head'] = `${head}`
  return headers
}

/** Record lines of small events, `\n` after each. */
export function eventLines(from: number, to: number): string {
  let lines = ''
  for (let seq = from; seq < to; seq++) lines += `${eventLine(seq)}\n`
  return lines
}

export function eventLine(seq: number, data: unknown = `event ${seq}`): string {
  return JSON.stringify({ type: 'event', event: { type: 'note', seq, time: 1000 + seq, data } })
}

export function problem(
  response: ServerResponse,
  status: number,
  code: string,
  facts: object = {},
  headers = {},
): void {
  response.writeHead(status, { 'content-type': 'application/problem+json', ...headers })
  response.end(
    JSON.stringify({ type: `urn:x:${code}`, title: 'A title.', status, detail: `about ${code}`, code, ...facts }),
  )
}

/** Waits until the bytes are with the system, so that what follows arrives apart from them. */
export function written(response: ServerResponse, bytes: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => void response.write(bytes, () => setImmediate(resolve)))
}
