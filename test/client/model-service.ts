// Owns a service so plain that it is right at a glance: one session in memory, pages, ranges and following by the letter
// of the contract, over real HTTP. A test can make it break the contract, one request at a time.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { Test } from 'tap'
import type { SessionEvent } from '../../codec/index.ts'
import { encodeRecords, isMessage } from '../../codec/index.ts'
import { reset } from '../support/fault-proxy.ts'
import { listening } from '../support/listening.ts'
import { packedRange, pageStartOf } from '../support/logs.ts'
import { pageHeaders, problem } from './scripted-server.ts'

/** What is wrong with one answer. */
export interface Fault {
  /** no answer, not even its headers */
  readonly mute?: boolean
  /** an error instead of the answer; with `how: 'silence'` it stops in the middle of its body */
  readonly status?: number
  readonly code?: string
  readonly headers?: Record<string, string>
  /** the body stops after this many bytes… */
  readonly after?: number
  /** …with an orderly end, a reset, or in silence (default: an orderly end) */
  readonly how?: 'end' | 'reset' | 'silence'
  /** lines to send in the place of these, which came together */
  readonly lie?: (lines: string[]) => string[]
  /** headers of a page to send in the place of the true ones */
  readonly promise?: Record<string, string>
}

export interface Asked {
  /** `history`, `events`, `follow` */
  readonly what: string
  readonly query: Readonly<Record<string, string>>
  readonly authorization: string | undefined
  /** of this kind, from 1 */
  readonly count: number
  /** milliseconds, of any clock */
  readonly at: number
}

export interface ModelOptions {
  /** milliseconds between blank lines; default: none */
  readonly heartbeat?: number
  /** asked at each request */
  readonly fault?: (asked: Asked) => Fault | undefined
}

export class ModelService {
  events: SessionEvent[] = []
  epoch = 'e1'
  isThere = true
  fault: (asked: Asked) => Fault | undefined
  readonly asked: Asked[] = []
  #url = ''
  readonly #followers = new Set<Sink>()
  readonly #server = createServer((request, response) => this.#answer(request.url ?? '/', request.headers, response))
  readonly #heartbeat: NodeJS.Timeout | undefined

  static async start(t: Test, options: ModelOptions = {}): Promise<ModelService> {
    const service = new ModelService(options)
    service.#url = await listening(t, service.#server)
    t.teardown(() => service.close())
    return service
  }

  private constructor({ heartbeat, fault = () => undefined }: ModelOptions) {
    this.fault = fault
    if (heartbeat !== undefined) this.#heartbeat = setInterval(() => this.beat(), heartbeat)
  }

  get url(): string {
    return this.#url
  }

  get followers(): number {
    return this.#followers.size
  }

  connections(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
    })
  }

  /** What was asked of one kind. */
  of(what: string): Asked[] {
    return this.asked.filter((each) => each.what === what)
  }

  append(...events: SessionEvent[]): void {
    this.events.push(...events)
    this.#write(events.map(eventText))
  }

  /** Ends what is followed, as the contract says it. */
  end(reason: string): void {
    this.#write([`{"type":"end","reason":"${reason}"}`])
    for (const sink of this.#followers) sink.end()
  }

  /** A blank line, as a heartbeat sends it. */
  beat(): void {
    this.#write([''])
  }

  /** Lets everybody lose the connection. */
  drop(): void {
    for (const sink of this.#followers) reset(sink.response.socket)
  }

  /** Ends what is followed without a word. */
  quit(): void {
    for (const sink of this.#followers) sink.end()
  }

  delete(): void {
    this.isThere = false
    this.end('deleted')
  }

  close(): void {
    clearInterval(this.#heartbeat)
    this.#server.closeAllConnections()
    this.#server.close()
  }

  #write(lines: string[]): void {
    for (const sink of this.#followers) sink.lines(lines)
  }

  #answer(path: string, headers: IncomingHttpHeaders, response: ServerResponse): unknown {
    const url = new URL(path, 'http://model')
    const what = url.pathname.split('/').at(-1) as string
    const query = Object.fromEntries(url.searchParams)
    const count = this.of(what).length + 1
    const asked = { what, query, authorization: headers.authorization, count, at: performance.now() }
    this.asked.push(asked)
    const fault = this.fault(asked) ?? {}
    if (fault.mute) return
    if (fault.status !== undefined && fault.how === 'silence') {
      response.writeHead(fault.status, { 'content-type': 'application/problem+json' })
      return response.write('{"type":')
    }
    if (fault.status !== undefined) return problem(response, fault.status, fault.code ?? 'x/y', {}, fault.headers)
    if (!this.isThere) return problem(response, 404, 'session/not-found')
    if (query.epoch !== undefined && query.epoch !== this.epoch) return problem(response, 409, 'session/replaced')
    const range = this.#range(what, query)
    if (!range) return problem(response, 409, 'history/ahead')
    const { from, to, head } = range
    response.writeHead(200, { ...pageHeaders({ from, to, epoch: this.epoch, ...head }), ...fault.promise })
    response.flushHeaders()
    const sink = new Sink(response, fault)
    const records = query.chunks === 'expanded' ? undefined : packedRange(this.events, from, to)
    sink.lines(records ? linesOf(encodeRecords(records)) : this.events.slice(from, to).map(eventText))
    if (what !== 'follow') return sink.end()
    this.#followers.add(sink)
    return response.once('close', () => this.#followers.delete(sink))
  }

  #range(what: string, query: Readonly<Record<string, string>>) {
    const length = this.events.length
    const max = query.maxMessages === undefined ? undefined : Number(query.maxMessages)
    const head = { head: length - 1 }
    if (what === 'events') {
      const from = Number(query.fromSeq ?? 0)
      const to = query.toSeq === undefined ? length : Number(query.toSeq)
      return from > length || to > length ? undefined : { from, to, head: query.toSeq === undefined ? head : {} }
    }
    if (what === 'history') {
      const to = query.beforeSeq === undefined ? length : Number(query.beforeSeq)
      if (to > length) return undefined
      return { from: pageStartOf(this.events, to, max ?? 50), to, head: query.beforeSeq === undefined ? head : {} }
    }
    const after = query.afterSeq === undefined ? undefined : Number(query.afterSeq)
    if (after === undefined) return { from: pageStartOf(this.events, length, max ?? 50), to: length, head }
    if (after >= length) return undefined
    const more = max !== undefined && this.events.slice(after + 1).filter(isMessage).length > max
    return { from: more ? pageStartOf(this.events, length, max) : after + 1, to: length, head }
  }
}

/** A body under a fault. */
class Sink {
  readonly response: ServerResponse
  readonly #fault: Fault
  #left: number
  #stopped = false

  constructor(response: ServerResponse, fault: Fault) {
    this.response = response
    this.#fault = fault
    this.#left = fault.after ?? Number.POSITIVE_INFINITY
    if (this.#left === 0) this.#stop()
  }

  lines(lines: string[]): void {
    const { lie } = this.#fault
    const told = lie && lines[0] !== '' ? lie(lines) : lines
    this.#write(Buffer.from(told.map((line) => `${line}\n`).join('')))
  }

  end(): void {
    if (!this.#stopped) this.response.end()
  }

  #write(bytes: Buffer): void {
    if (this.#stopped || bytes.length === 0) return
    const part = bytes.subarray(0, this.#left)
    this.#left -= part.length
    this.response.write(part)
    if (this.#left <= 0) this.#stop()
  }

  #stop(): void {
    this.#stopped = true
    const { how = 'end' } = this.#fault
    if (how === 'end') this.response.end()
    // What was written is let out first.
    if (how === 'reset') setImmediate(() => reset(this.response.socket))
  }
}

function eventText(event: SessionEvent): string {
  return JSON.stringify({ type: 'event', event })
}

function linesOf(text: string): string[] {
  return text === '' ? [] : text.slice(0, -1).split('\n')
}
