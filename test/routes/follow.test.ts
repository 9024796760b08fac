// Following over real sockets: the opening part and its headers, live lines in every coding, ends, server-sent events,
// readers that are slow, that stall, that leave, and one reader more than there is room for.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib'
import type { Test } from 'tap'
import t from 'tap'
import type { SessionEvent } from '../../codec/index.ts'
import { Problem } from '../../codec/index.ts'
import type { HistoryStore } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import {
  assertCovers,
  assistantMessage,
  bodyOfEvents,
  messagesLog,
  pageStartOf,
  pageText,
  recordsOf,
  textDeltas,
  userMessage,
} from '../support/logs.ts'
import type { Service, ServiceOptions } from '../support/service.ts'
import { received, replacing, startService, until } from '../support/service.ts'

const CODINGS = ['identity', 'gzip', 'br', 'zstd'] as const
const MODES = ['packed', 'expanded', 'omit'] as const
const EVENT_STREAM = { accept: 'text/event-stream' }

const DECODERS = {
  identity: () => new PassThrough(),
  gzip: createGunzip,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** A followed stream as its client sees it, decoded as it comes. */
class Live {
  readonly #response: IncomingMessage
  readonly coding: keyof typeof DECODERS
  text = ''
  /** Resolved once the connection gives no more: whether the body ended as HTTP and its coding say it should. */
  readonly ended: Promise<boolean>

  constructor(response: IncomingMessage) {
    this.#response = response
    this.coding = (response.headers['content-encoding'] ?? 'identity') as keyof typeof DECODERS
    const decoder = DECODERS[this.coding]()
    decoder.on('data', (piece) => {
      this.text += piece
    })
    const decoded = new Promise<boolean>((resolve) => {
      decoder.once('end', () => resolve(true)).once('error', () => resolve(false))
    })
    response.on('data', (piece) => decoder.write(piece)).on('error', () => {})
    this.ended = new Promise((resolve) => {
      response.once('close', () => {
        decoder.end()
        decoded.then((whole) => resolve(whole && response.complete))
      })
    })
  }

  get status(): number {
    return this.#response.statusCode ?? 0
  }

  get headers(): IncomingHttpHeaders {
    return this.#response.headers
  }

  /** Heartbeats left out. */
  get lines(): string[] {
    return this.text.split('\n').slice(0, -1).filter(Boolean)
  }

  /** Of an event stream: each message's fields, comments left out. */
  get messages(): { event?: string; id?: string; data: Record<string, unknown> }[] {
    const messages = this.text.split('\n\n').slice(0, -1)
    return messages.flatMap((message) => {
      const fields = message.split('\n').filter((line) => !line.startsWith(':'))
      if (fields.length === 0) return []
      const { data = '', ...rest } = Object.fromEntries(fields.map((field) => field.split(/: (.*)/s)))
      return [{ ...rest, data: JSON.parse(data) }]
    })
  }

  pause(): void {
    this.#response.pause()
  }

  resume(): void {
    this.#response.resume()
  }

  leave(): void {
    this.#response.destroy()
  }
}

async function follow(service: Service, path: string, headers: OutgoingHttpHeaders = {}): Promise<Live> {
  const request = httpRequest({ host: '127.0.0.1', port: service.port, path, headers, agent: false }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  request.on('error', () => {})
  return new Live(response)
}

/** A store that tells how many watch it and what is read of it. */
class Watched {
  watching = 0
  reads = 0
  bytesRead = 0
  before: () => void | Promise<void> = () => {}

  wrap = (store: HistoryStore): HistoryStore => {
    const watched = replacing(store, 'watch', (listener) => {
      this.watching++
      const stop = store.watch(listener)
      return () => {
        this.watching--
        stop()
      }
    })
    return replacing(watched, 'read', async (...args) => {
      this.reads++
      await this.before()
      const records = await store.read(...args)
      for (const { line } of records) this.bytesRead += line?.length ?? 0
      return records
    })
  }
}

const HOUR = 3_600_000

/** A service that sends nothing by itself and closes nothing, however slow the machine; unless the test asks for it. */
function start(t: Test, { config, ...options }: ServiceOptions = {}): Promise<Service> {
  return startService(t, { ...options, config: { heartbeatMs: HOUR, stallMs: HOUR, ...config } })
}

/** One service for all tests that need nothing of their own of it. */
const shared = await start(t)

/** The same, with nothing in it. */
async function emptied(): Promise<Service> {
  for (const { id } of await shared.store.list({ limit: 1_000 })) await shared.store.delete(id)
  return shared
}

async function epochOf(service: Service, id: string): Promise<string> {
  return ((await (await service.request(`/v1/sessions/${id}`)).json()) as { epoch: string }).epoch
}

/** Text that hardly compresses. */
function noise(bytes: number, seed: number): string {
  return createHash('shake256', { outputLength: (bytes / 4) * 3 })
    .update(`${seed}`)
    .digest('base64')
}

const CONVERSATION: readonly SessionEvent[] = [
  userMessage(0),
  ...textDeltas(1, 7),
  assistantMessage(7, [1, 2, 3, 4, 5, 6]),
  userMessage(8),
  ...textDeltas(9, 13),
  assistantMessage(13, [9, 10, 11, 12]),
  ...textDeltas(14, 18),
]
const LATER: readonly SessionEvent[] = [...textDeltas(18, 20), userMessage(20)]
const ALL = [...CONVERSATION, ...LATER]

// ---- the opening part ---------------------------------------------------------------------------------------------

t.test('the opening part with its headers, and then each event as a line', async (t) => {
  const service = await emptied()
  for (const chunks of MODES) {
    for (const [query, from] of [
      ['', 0],
      ['maxMessages=1&', pageStartOf(CONVERSATION, 18, 1)],
      ['maxMessages=3&', pageStartOf(CONVERSATION, 18, 3)],
      ['afterSeq=-1&', 0],
      ['afterSeq=3&', 4],
      ['afterSeq=15&', 16],
      // Case B30: who comes back when nothing runs any more is at the head, and is told of nothing twice.
      ['afterSeq=17&', 18],
      ['afterSeq=-1&maxMessages=4&', 0],
      ['afterSeq=-1&maxMessages=3&', pageStartOf(CONVERSATION, 18, 3)],
      ['afterSeq=7&maxMessages=1&', pageStartOf(CONVERSATION, 18, 1)],
    ] as const) {
      const name = `${query}chunks=${chunks}`
      const id = `${chunks}-${query.replaceAll(/[^a-zA-Z0-9-]/g, '_')}`
      await service.append(id, CONVERSATION)
      const epoch = await epochOf(service, id)
      const live = await follow(service, `/v1/sessions/${id}/follow?${query}chunks=${chunks}`)
      t.equal(live.status, 200, name)
      t.match(live.headers, {
        'content-type': 'application/x-ndjson; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        // Case F6.
        'x-accel-buffering': 'no',
        vary: 'Accept, Accept-Encoding',
        'history-epoch': epoch,
        'history-from': `${from}`,
        'history-to': '18',
        'history-more': `${from > 0}`,
        'history-head': '17',
      })
      t.equal(live.headers.etag, undefined)
      const opening = pageText(CONVERSATION, from, 18, chunks)
      await until(() => live.text.length >= opening.length)
      t.equal(live.text, opening)
      for (const event of LATER) {
        await service.append(id, [event])
        await until(() => live.text.includes(`"seq":${event.seq},`))
      }
      t.equal(live.text, opening + pageText(ALL, 18, 21, 'expanded'))
      const { link } = live.headers
      if (from === 0) t.equal(link, undefined)
      else {
        const [, target = ''] = /^<(.*)>; rel="prev"$/.exec(`${link}`) ?? []
        const previous = await service.exchange('GET', target)
        t.match(previous, { status: 200, headers: { 'history-epoch': epoch, 'history-to': `${from}` } })
      }
      live.leave()
    }
  }
})

t.test('a long answer costs its tokens, not itself again with each of them', async (t) => {
  // Case E17.
  const service = await emptied()
  await service.append('long', [userMessage(0)])
  const live = await follow(service, '/v1/sessions/long/follow?afterSeq=0&chunks=expanded')
  const tokens = textDeltas(1, 10_001)
  for (let at = 0; at < tokens.length; at += 500) await service.append('long', tokens.slice(at, at + 500))
  const expected = pageText([userMessage(0), ...tokens], 1, 10_001, 'expanded')
  await until(() => live.text.length >= expected.length)
  t.equal(live.text, expected)
  live.leave()
})

t.test('an empty session, and one whose opening part is empty, answer at once (case B11)', async (t) => {
  const service = await emptied()
  await service.append('a', [])
  const live = await follow(service, '/v1/sessions/a/follow')
  t.match(live.headers, { 'history-from': '0', 'history-to': '0', 'history-more': 'false', 'history-head': '-1' })
  await service.append('a', [userMessage(0)])
  await until(() => live.lines.length === 1)
  const other = await follow(service, '/v1/sessions/a/follow?afterSeq=0')
  t.match(other.headers, { 'history-from': '1', 'history-to': '1', 'history-more': 'true', 'history-head': '0' })
  await service.append('a', [userMessage(1)])
  for (const each of [live, other]) await until(() => each.lines.at(-1)?.includes('"seq":1,') ?? false)
  t.equal(other.lines.length, 1)
  t.equal(live.lines.length, 2)
})

t.test('a cursor that does not fit, a bad query, a session that is not there', async (t) => {
  const service = await emptied()
  await service.append('a', messagesLog(3))
  const epoch = await epochOf(service, 'a')
  for (const [query, status, facts] of [
    // Cases B12 and B24.
    ['afterSeq=3', 409, { code: 'history/ahead', head: 2, epoch }],
    ['afterSeq=1002', 409, { code: 'history/ahead', head: 2, epoch }],
    // Case B13.
    ['epoch=another', 409, { code: 'session/replaced', epoch, head: 2 }],
    ['afterSeq=1&epoch=another', 409, { code: 'session/replaced', epoch }],
    ['afterSeq=99&epoch=another', 409, { code: 'session/replaced', epoch }],
    ['afterSeq=-2', 400, { code: 'request/invalid', path: 'afterSeq' }],
    ['afterSeq=1.0', 400, { code: 'request/invalid', path: 'afterSeq' }],
    ['afterSeq=', 400, { code: 'request/invalid', path: 'afterSeq' }],
    ['afterSeq=9007199254740993', 400, { code: 'request/invalid', path: 'afterSeq' }],
    ['maxMessages=0', 400, { code: 'request/invalid', path: 'maxMessages' }],
    ['maxMessages=501', 400, { code: 'request/invalid', path: 'maxMessages' }],
    ['chunks=all', 400, { code: 'request/invalid', path: 'chunks' }],
    ['beforeSeq=1', 400, { code: 'request/invalid', path: 'beforeSeq' }],
    ['epoch=', 400, { code: 'request/invalid', path: 'epoch' }],
  ] as const) {
    const answer = await service.exchange('GET', `/v1/sessions/a/follow?${query}`)
    t.match(answer, { status, headers: { 'content-type': 'application/problem+json' } }, query)
    t.match(answer.json(), facts, query)
  }
  t.match((await service.exchange('GET', '/v1/sessions/nobody/follow')).json(), { code: 'session/not-found' })
  t.match((await service.exchange('GET', '/v1/sessions/a%20b/follow')).json(), { code: 'request/invalid', path: 'id' })
  for (const afterSeq of [-1, 2]) {
    const live = await follow(service, `/v1/sessions/a/follow?afterSeq=${afterSeq}&epoch=${epoch}`)
    t.equal(live.headers['history-from'], `${afterSeq + 1}`)
    live.leave()
  }
})

t.test('methods and media types', async (t) => {
  const service = await emptied()
  await service.append('a', messagesLog(1))
  await service.exchange('PUT', '/v1/sessions/c', {
    headers: { 'content-type': 'application/json' },
    body: '{"parentSession":"a","origin":"subagent"}',
  })
  for (const path of ['/v1/sessions/a/follow', '/v1/sessions/a/subagents/c/follow']) {
    for (const method of ['HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await service.exchange(method, path)
      t.match(answer, { status: 405, headers: { allow: 'GET' } }, `${method} ${path}`)
    }
    for (const accept of ['text/html', 'application/json', 'application/x-ndjson;q=0, text/event-stream;q=0']) {
      const answer = await service.exchange('GET', path, { headers: { accept } })
      t.equal(answer.status, 406, accept)
      t.match(answer.json(), { code: 'request/not-acceptable', offered: /^/ })
    }
    for (const [accept, type] of [
      [undefined, 'application/x-ndjson; charset=utf-8'],
      ['*/*', 'application/x-ndjson; charset=utf-8'],
      ['application/jsonl', 'application/x-ndjson; charset=utf-8'],
      ['application/ndjson', 'application/x-ndjson; charset=utf-8'],
      ['text/event-stream', 'text/event-stream'],
      ['text/event-stream, */*', 'text/event-stream'],
      ['text/event-stream;q=0.5, application/x-ndjson', 'application/x-ndjson; charset=utf-8'],
    ] as const) {
      const live = await follow(service, path, accept === undefined ? {} : { accept })
      t.match(live, { status: 200, headers: { 'content-type': type } }, `${accept}`)
      live.leave()
    }
  }
})

t.test('a child is followed through its direct parent alone', async (t) => {
  const service = await emptied()
  const create = (id: string, fields: object) =>
    service.exchange('PUT', `/v1/sessions/${id}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(fields),
    })
  await create('other', {})
  await create('child', { parentSession: 'parent', origin: 'subagent' })
  await create('fork', { parentSession: 'parent' })
  await service.append('child', CONVERSATION)
  await service.append('fork', messagesLog(1))
  const live = await follow(service, '/v1/sessions/parent/subagents/child/follow?maxMessages=1')
  t.match(live, { status: 200, headers: { 'history-from': '9', 'history-to': '18' } })
  const [, target = ''] = /^<(.*)>/.exec(`${live.headers.link}`) ?? []
  t.match(target, /^\/v1\/sessions\/parent\/subagents\/child\/history\?beforeSeq=9&/)
  t.match(await service.exchange('GET', target), { status: 200, headers: { 'history-to': '9' } })
  await service.append('child', LATER)
  await until(() => live.lines.at(-1)?.includes('"seq":20,') ?? false)
  t.match((await service.exchange('GET', '/v1/sessions/child/follow')).json(), { code: 'session/not-found' })
  for (const path of ['other/subagents/child', 'parent/subagents/fork', 'parent/subagents/nobody']) {
    const answer = await service.exchange('GET', `/v1/sessions/${path}/follow`)
    t.match(answer.json(), { code: 'subagent/not-found', status: 404 }, path)
    const reconnect = { headers: { ...EVENT_STREAM, 'last-event-id': '3' } }
    t.equal((await service.exchange('GET', `/v1/sessions/${path}/follow`, reconnect)).status, 204)
  }
  t.equal((await follow(service, '/v1/sessions/fork/follow')).status, 200, 'a fork is an ordinary session')
  await service.exchange('DELETE', '/v1/sessions/child')
  t.ok(await live.ended)
  t.same(JSON.parse(live.lines.at(-1) ?? ''), { type: 'end', reason: 'deleted' })
})

// ---- resuming -----------------------------------------------------------------------------------------------------

t.test('cut at any event and resumed after it, a log is whole (cases B3, B16)', async (t) => {
  const service = await emptied()
  await service.append('a', ALL)
  const epoch = await epochOf(service, 'a')
  for (const chunks of MODES) {
    for (let afterSeq = -1; afterSeq < ALL.length; afterSeq++) {
      const live = await follow(service, `/v1/sessions/a/follow?afterSeq=${afterSeq}&epoch=${epoch}&chunks=${chunks}`)
      const expected = pageText(ALL, afterSeq + 1, ALL.length, chunks)
      await until(() => live.text.length >= expected.length)
      if (live.text !== expected) t.equal(live.text, expected, `${chunks} after ${afterSeq}`)
      live.leave()
    }
  }
  t.pass('each offset')
})

t.test('twenty thousand events missed come from the store, before any new one (cases B23, B34)', async (t) => {
  const service = await emptied()
  await service.append('a', messagesLog(1))
  const missed = textDeltas(1, 20_001)
  await service.append('a', missed)
  const live = await follow(service, '/v1/sessions/a/follow?afterSeq=0')
  t.match(
    live.headers,
    { 'history-from': '1', 'history-to': '20001', 'history-head': '20000' },
    'told as what was missed',
  )
  await service.append('a', textDeltas(20_001, 20_003))
  await until(() => live.lines.at(-1)?.includes('"seq":20002,') ?? false)
  const records = recordsOf(live.text)
  assertCovers(records, 1, 20_003)
  t.ok(records.length < 20, 'packed')
})

t.test('a writer does not disturb a follower that begins at the start (case B4)', async (t) => {
  const service = await emptied()
  await service.append('a', textDeltas(0, 5_000))
  let head = 4_999
  const writing = (async () => {
    for (let batch = 0; batch < 60; batch++) {
      await service.append('a', textDeltas(head + 1, head + 11))
      head += 10
    }
  })()
  const live = await follow(service, '/v1/sessions/a/follow?afterSeq=-1&chunks=expanded')
  await writing
  await until(() => live.lines.length === head + 1)
  t.equal(live.text, pageText(textDeltas(0, head + 1), 0, head + 1, 'expanded'))
})

t.test('each follower hears of its own session (case C12)', async (t) => {
  const service = await emptied()
  const ids = ['a', 'b']
  for (const id of ids) await service.append(id, [])
  const all = await Promise.all(
    Array.from({ length: 40 }, (_, each) => follow(service, `/v1/sessions/${ids[each % 2]}/follow`)),
  )
  await Promise.all(
    ids.map(async (id) => {
      for (let n = 0; n < 20; n++) await service.append(id, [{ type: 'note', data: { id, n } }])
    }),
  )
  for (const [each, live] of all.entries()) {
    await until(() => live.lines.length === 20)
    const got = live.lines.map((line) => JSON.parse(line).event.data)
    t.same(
      got,
      got.map((_, n) => ({ id: ids[each % 2], n })),
    )
  }
})

// ---- codings ------------------------------------------------------------------------------------------------------

t.test('in every coding each line arrives without waiting for another (case F1)', async (t) => {
  const service = await emptied()
  for (const headers of [{}, EVENT_STREAM]) {
    for (const coding of CODINGS) {
      const id = `${coding}-${'accept' in headers}`
      await service.append(id, CONVERSATION)
      const live = await follow(service, `/v1/sessions/${id}/follow`, { 'accept-encoding': coding, ...headers })
      t.equal(live.coding, coding)
      await until(() => live.text.includes('"seq":14,'))
      for (const event of LATER) {
        await service.append(id, [event])
        // Nothing else is sent: the next heartbeat is an hour off.
        await until(() => live.text.includes(`"seq":${event.seq},`))
      }
      if (!('accept' in headers)) assertCovers(recordsOf(live.text), 0, 21)
      t.notMatch(live.text, /\n\n\n|^:/m, `${coding}: no heartbeat was needed`)
      live.leave()
    }
  }
})

t.test('so many get an encoder, the others get no compression', async (t) => {
  const service = await start(t, { config: { compressedFollowers: 2 } })
  await service.append('a', messagesLog(1))
  const open = (coding: string) => follow(service, '/v1/sessions/a/follow', { 'accept-encoding': coding })
  const first = await open('gzip')
  const second = await open('br')
  const third = await open('gzip')
  t.same([first.coding, second.coding, third.coding], ['gzip', 'br', 'identity'])
  await service.append('a', [userMessage(1)])
  for (const live of [first, second, third]) await until(() => live.lines.length === 2)
  t.equal((await open('identity')).coding, 'identity')
  first.leave()
  await until(async () => {
    const next = await open('zstd')
    if (next.coding === 'zstd') return true
    next.leave()
    return false
  })
  t.pass('a place is free again')
})

// ---- silence and ends ---------------------------------------------------------------------------------------------

t.test('silence is broken by heartbeats, in every coding', async (t) => {
  const service = await start(t, { config: { heartbeatMs: 30 } })
  await service.append('a', messagesLog(1))
  for (const coding of CODINGS) {
    const live = await follow(service, '/v1/sessions/a/follow', { 'accept-encoding': coding })
    await until(() => live.text.endsWith('\n\n\n\n'))
    t.equal(live.text.trimEnd(), pageText(messagesLog(1), 0, 1, 'packed').trimEnd(), 'blank lines, and nothing else')
    live.leave()
    const events = await follow(service, '/v1/sessions/a/follow', { 'accept-encoding': coding, ...EVENT_STREAM })
    await until(() => events.text.endsWith(':\n\n:\n\n:\n\n'))
    t.equal(events.messages.length, 2)
    events.leave()
  }
})

/** A clock for the timers of this interval alone: it stands still but where the test moves it. */
function heldClock(t: Test, interval: number): { move(ms: number): void } {
  const { setInterval } = globalThis
  const held: { due: number; readonly ring: () => void }[] = []
  let now = 0
  const hold = (ring: () => void, ms: number) => {
    if (ms !== interval) return setInterval(ring, ms)
    const one = { due: now + ms, ring }
    held.push(one)
    const refresh = () => {
      one.due = now + ms
    }
    return Object.assign(
      setInterval(() => {}, HOUR),
      { refresh },
    )
  }
  t.intercept(globalThis, 'setInterval', { value: hold })
  return {
    move(ms) {
      now += ms
      for (const one of held) for (; one.due <= now; one.due += interval) one.ring()
    },
  }
}

t.test('while something is sent there are no heartbeats, in every coding', async (t) => {
  const heartbeatMs = 15_001
  const clock = heldClock(t, heartbeatMs)
  const service = await start(t, { config: { heartbeatMs } })
  for (const coding of CODINGS) {
    await service.append(coding, messagesLog(1))
    const live = await follow(service, `/v1/sessions/${coding}/follow`, { 'accept-encoding': coding })
    await until(() => live.lines.length === 1)
    for (let seq = 1; seq < 6; seq++) {
      clock.move(heartbeatMs - 1)
      await service.append(coding, [userMessage(seq)])
      await until(() => live.lines.length === seq + 1)
    }
    t.equal(live.text, pageText(messagesLog(6), 0, 6, 'packed'), coding)
    await until(() => {
      clock.move(heartbeatMs)
      return live.text.endsWith('\n\n')
    })
    live.leave()
    await live.ended
  }
})

const FORMS = [{}, EVENT_STREAM].flatMap((form) =>
  CODINGS.map((coding) => ({ 'accept-encoding': coding, ...form }) as Record<string, string>),
)

function lastWord(live: Live): unknown {
  if (live.headers['content-type'] !== 'text/event-stream') return JSON.parse(live.lines.at(-1) ?? '')
  const { event, data } = live.messages.at(-1) ?? {}
  return event === 'end' ? data : undefined
}

t.test('a deleted session ends its followers with a word, and the body is whole (case C9)', async (t) => {
  const service = await emptied()
  await service.append('a', CONVERSATION)
  const all = await Promise.all(FORMS.map((headers) => follow(service, '/v1/sessions/a/follow', headers)))
  await Promise.all(all.map((live) => until(() => live.text.includes('"seq":14,'))))
  t.equal((await service.exchange('DELETE', '/v1/sessions/a')).status, 204)
  await service.append('a', messagesLog(40))
  for (const live of all) {
    t.ok(await live.ended, live.coding)
    t.same(lastWord(live), { type: 'end', reason: 'deleted' })
    t.notMatch(live.text, '"seq":18,', 'of the session created again nothing is told')
  }
})

t.test('a drain ends them too, and refuses those who come (case C3)', async (t) => {
  const watched = new Watched()
  const service = await start(t, { wrap: watched.wrap })
  await service.append('a', CONVERSATION)
  const all = await Promise.all(FORMS.map((headers) => follow(service, '/v1/sessions/a/follow', headers)))
  await Promise.all(all.map((live) => until(() => live.text.includes('"seq":14,'))))
  const finished = service.app.drain.finish(60_000, new Promise(() => {}))
  const refused = await service.exchange('GET', '/v1/sessions/a/follow')
  t.match(refused, { status: 503, headers: { 'retry-after': '1' } })
  t.match(refused.json(), { code: 'server/draining' })
  for (const live of all) {
    t.ok(await live.ended, live.coding)
    t.same(lastWord(live), { type: 'end', reason: 'draining' })
  }
  await finished
  t.equal(watched.watching, 0)
  t.same(service.log, [])
})

// ---- server-sent events -------------------------------------------------------------------------------------------

t.test('a browser gets a page event, records with ids, and resumes by them (cases B18, B19)', async (t) => {
  const service = await emptied()
  await service.append('a', CONVERSATION)
  const epoch = await epochOf(service, 'a')
  for (const chunks of MODES) {
    const live = await follow(service, `/v1/sessions/a/follow?maxMessages=2&chunks=${chunks}`, EVENT_STREAM)
    t.match(live.headers, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' })
    const opening = pageText(CONVERSATION, 8, 18, chunks)
    const lines = opening.trimEnd().split('\n')
    await until(() => live.messages.length === lines.length + 1)
    const [page, ...records] = live.messages
    t.same(page, { event: 'page', data: { epoch, from: 8, to: 18, hasMore: true } })
    t.same(
      records.map(({ data }) => data),
      lines.map((line) => JSON.parse(line)),
    )
    const typed = recordsOf(opening)
    for (const [at, { id }] of records.entries()) {
      // A cursor after a record is where the next one begins.
      const next = typed[at + 1]?.event.seq ?? 18
      t.equal(id, `${next - 1}.${epoch}`)
      const resumed = await follow(service, `/v1/sessions/a/follow?chunks=${chunks}`, {
        ...EVENT_STREAM,
        'last-event-id': `${id}`,
      })
      await until(() => resumed.messages.length === lines.length - at)
      t.same(resumed.messages[0], { event: 'page', data: { epoch, from: next, to: 18, hasMore: true } })
      t.same(
        resumed.messages.slice(1).map(({ data }) => data),
        recordsOf(pageText(CONVERSATION, next, 18, chunks)),
      )
      resumed.leave()
    }
    live.leave()
  }
  const live = await follow(service, '/v1/sessions/a/follow?afterSeq=17', EVENT_STREAM)
  await service.append('a', LATER)
  await until(() => live.messages.length === 4)
  t.same(
    live.messages.slice(1).map(({ id }) => id),
    [18, 19, 20].map((seq) => `${seq}.${epoch}`),
  )
})

t.test('a browser whose cursor does not fit begins again; one whose session is gone stops', async (t) => {
  const service = await emptied()
  await service.append('a', messagesLog(10))
  const epoch = await epochOf(service, 'a')
  for (const [id, query, from] of [
    [`6.${epoch}`, '', 7],
    ['6', '', 7],
    ['-1', 'maxMessages=500', 0],
    // The cursor is newer than the address.
    [`6.${epoch}`, 'afterSeq=1', 7],
    [`6.${epoch}`, 'afterSeq=1&epoch=another', 7],
    ['6', `afterSeq=1&epoch=${epoch}`, 7],
    // More messages than were asked for.
    [`2.${epoch}`, 'maxMessages=3', 7],
    [`6.${epoch}`, 'maxMessages=3', 7],
    // Cases B13 and B24: another life, a log that is shorter, no cursor at all.
    ['6.another', 'maxMessages=3', 7],
    ['6', 'maxMessages=4&epoch=another', 6],
    [`10.${epoch}`, 'maxMessages=3', 7],
    ['1000', 'maxMessages=3', 7],
    ['9'.repeat(30), 'maxMessages=3', 7],
    ['garbage', 'maxMessages=3&afterSeq=8', 7],
    ['6.', 'maxMessages=4', 6],
    ['-5', 'maxMessages=3', 7],
    ['1e1', 'maxMessages=3', 7],
    ['.', 'maxMessages=3', 7],
    ['é', 'maxMessages=3', 7],
    ['6', '', 7],
  ] as const) {
    const live = await follow(service, `/v1/sessions/a/follow?${query}`, { ...EVENT_STREAM, 'last-event-id': id })
    await until(() => live.messages.length === 1 + 10 - from)
    t.same(live.messages[0], { event: 'page', data: { epoch, from, to: 10, hasMore: from > 0 } }, `${id} ${query}`)
    live.leave()
  }
  // Another reader's header is no cursor.
  const lines = await follow(service, '/v1/sessions/a/follow', { 'last-event-id': `6.${epoch}` })
  t.equal(lines.headers['history-from'], '0')
  // Nor does the address's own cursor stop a browser for good, when it has become too old.
  for (const query of ['afterSeq=99&maxMessages=3', 'afterSeq=6&epoch=another&maxMessages=3']) {
    const first = await follow(service, `/v1/sessions/a/follow?${query}`, { ...EVENT_STREAM, 'last-event-id': '' })
    await until(() => first.messages.length === 4)
    t.same(first.messages[0], { event: 'page', data: { epoch, from: 7, to: 10, hasMore: true } }, query)
    first.leave()
  }
  const headers = { ...EVENT_STREAM, 'last-event-id': `6.${epoch}` }
  const bad = await service.exchange('GET', '/v1/sessions/a/follow?maxMessages=0', { headers })
  t.equal(bad.status, 400)
  await service.exchange('DELETE', '/v1/sessions/a')
  const gone = await service.exchange('GET', '/v1/sessions/a/follow', { headers })
  t.equal(gone.status, 204)
  t.equal(gone.body.length, 0)
  t.equal((await service.exchange('GET', '/v1/sessions/a/follow', { headers: EVENT_STREAM })).status, 404)
})

// ---- slow readers, readers that leave -----------------------------------------------------------------------------

/** The server's side of each answer. */
function answersOf(service: Service): ServerResponse[] {
  const answers: ServerResponse[] = []
  service.app.server.on('request', (_request, response) => answers.push(response))
  return answers
}

t.test('a client that stops reading costs bounded memory and loses nothing (cases B27, F7)', async (t) => {
  const watched = new Watched()
  const heartbeatMs = 15_001
  const clock = heldClock(t, heartbeatMs)
  const service = await start(t, { wrap: watched.wrap, config: { heartbeatMs } })
  const events = 24
  const note = (n: number) => ({ type: 'note', data: noise(1_000_000, n) })
  for (const coding of ['identity', 'gzip'] as const) {
    await service.append(coding, [])
    const answers = answersOf(service)
    const live = await follow(service, `/v1/sessions/${coding}/follow`, { 'accept-encoding': coding })
    const answer = answers.at(-1) as ServerResponse
    live.pause()
    watched.bytesRead = 0
    for (let n = 0; n < events; n++) await service.append(coding, [note(n)])
    await until(() => answer.writableNeedDrain && answer.writableLength > 0)
    clock.move(50 * heartbeatMs)
    t.ok(answer.writableLength < 2_500_000, `${coding}: ${answer.writableLength} bytes wait for it`)
    t.ok(watched.bytesRead < (events * 1_000_000 * 2) / 3, `${watched.bytesRead} bytes were read for it`)
    live.resume()
    await until(() => live.lines.length === events)
    t.notOk(live.text.includes('\n\n'), `${coding}: no heartbeats have piled up`)
    await service.append(coding, [note(events)])
    await until(() => live.lines.length === events + 1)
    assertCovers(recordsOf(live.text), 0, events + 1)
    live.leave()
  }
  t.same(service.log, [])
})

t.test('a client that takes nothing for too long is let go, one to whom nothing is said is not', async (t) => {
  const watched = new Watched()
  const service = await start(t, { wrap: watched.wrap, config: { stallMs: 300 } })
  await service.append('quiet', messagesLog(1))
  const quiet = await follow(service, '/v1/sessions/quiet/follow')
  for (let n = 0; n < 24; n++) await service.append('a', [{ type: 'note', data: noise(1_000_000, n) }])
  for (const coding of ['identity', 'gzip']) {
    const answers = answersOf(service)
    const live = await follow(service, '/v1/sessions/a/follow?afterSeq=-1', { 'accept-encoding': coding })
    live.pause()
    await until(() => answers.at(-1)?.destroyed ?? false)
    live.resume()
    t.notOk(await live.ended, `${coding}: its body has no end`)
    t.notMatch(live.text, '"type":"end"')
  }
  // Several times as long as a client may take nothing.
  await delay(1_000)
  await service.append('quiet', [userMessage(1)])
  await until(() => quiet.lines.length === 2)
  t.equal(watched.watching, 1)
  quiet.leave()
  await until(() => watched.watching === 0)
  t.same(service.log, [])
})

/** What holds the process now, by kind. */
function resources(): Record<string, number> {
  return Object.fromEntries(
    ['Timeout', 'TCPSocketWrap', 'Zlib'].map((kind) => [
      kind,
      process.getActiveResourcesInfo().filter((each) => each === kind).length,
    ]),
  )
}

function connections(service: Service): Promise<number> {
  return new Promise((resolve) => service.app.server.getConnections((_error, count) => resolve(count)))
}

t.test('a thousand followers of a quiet session come and go, and leave nothing (case C5)', async (t) => {
  const watched = new Watched()
  const service = await start(t, { wrap: watched.wrap, config: { followers: 1_000 } })
  await service.append('a', messagesLog(1))
  const before = { ...resources(), connections: await connections(service) }
  const sockets = await Promise.all(Array.from({ length: 1_000 }, () => service.socket()))
  await Promise.all(
    sockets.map(async (socket, each) => {
      const coding = each % 20 === 0 ? 'gzip' : 'identity'
      socket.write(`GET /v1/sessions/a/follow HTTP/1.1\r\nHost: h\r\nAccept-Encoding: ${coding}\r\n\r\n`)
      const [head] = await once(socket, 'data')
      if (!`${head}`.startsWith('HTTP/1.1 200 ')) t.fail(`${head}`)
    }),
  )
  t.equal(watched.watching, 1, 'they share one ear')
  const busy = await service.exchange('GET', '/v1/sessions/a/follow')
  t.match(busy, { status: 503, headers: { 'retry-after': '5', 'content-type': 'application/problem+json' } })
  t.match(busy.json(), { code: 'server/busy', limit: 1_000 })
  await service.append('a', [userMessage(1)])
  await Promise.all(
    sockets.map(async (socket, each) => {
      if (each % 20 !== 0) for (let text = ''; !text.includes('"seq":1,'); ) text += (await once(socket, 'data'))[0]
    }),
  )
  t.pass('none was put out')
  for (const socket of sockets) socket.destroy()
  // Nothing is appended meanwhile.
  await until(() => watched.watching === 0)
  await until(async () => {
    const now = { ...resources(), connections: await connections(service) }
    return Object.entries(before).every(([kind, count]) => now[kind as keyof typeof now] <= count)
  })
  const live = await follow(service, '/v1/sessions/a/follow')
  t.equal(live.status, 200, 'there is room again')
  live.leave()
  await until(() => watched.watching === 0)
  await service.app.drain.finish(60_000, new Promise(() => {}))
  t.same(service.log, [])
})

t.test('who leaves before the first line leaves nothing, not even an encoder', async (t) => {
  let gate = Promise.withResolvers<void>()
  let held = 0
  const watched = new Watched()
  const hold = (store: HistoryStore) =>
    replacing(store, 'pageStart', async (...args) => {
      held++
      await gate.promise
      return store.pageStart(...args)
    })
  const service = await start(t, {
    config: { compressedFollowers: 3 },
    wrap: (store) => hold(watched.wrap(store)),
  })
  await service.append('a', messagesLog(1))
  for (let round = 0; round < 3; round++) {
    for (const coding of CODINGS) {
      const closed = Promise.withResolvers<void>()
      service.app.server.once('connection', (served) => served.once('close', closed.resolve))
      held = 0
      const socket = await service.socket()
      socket.write(`GET /v1/sessions/a/follow HTTP/1.1\r\nHost: h\r\nAccept-Encoding: ${coding}\r\n\r\n`)
      await until(() => held === 1)
      socket.destroy()
      await closed.promise
      gate.resolve()
      await until(() => watched.watching === 0)
      gate = Promise.withResolvers()
    }
  }
  gate.resolve()
  const live = await follow(service, '/v1/sessions/a/follow', { 'accept-encoding': 'gzip' })
  t.equal(live.coding, 'gzip')
  // The one before is another case: it left while its opening part was read.
  const reading = Promise.withResolvers<void>()
  await until(() => live.lines.length === 1)
  watched.before = () => reading.promise
  const reads = watched.reads
  const other = await follow(service, '/v1/sessions/a/follow', { 'accept-encoding': 'gzip' })
  await until(() => watched.reads > reads)
  other.leave()
  live.leave()
  await other.ended
  reading.resolve()
  await until(() => watched.watching === 0)
  t.same(service.log, [])
})

// ---- failures and others ------------------------------------------------------------------------------------------

t.test('when the store fails the connection breaks, with one line in the log (cases D7, F5)', async (t) => {
  const watched = new Watched()
  const service = await start(t, { wrap: watched.wrap })
  for (const headers of FORMS) {
    await service.append('a', messagesLog(1))
    const live = await follow(service, '/v1/sessions/a/follow', headers)
    const other = await follow(service, '/v1/sessions/b/follow').catch(() => undefined)
    await until(() => live.text.includes('"seq":0,'))
    service.log.length = 0
    watched.before = () => {
      throw new Problem('store/unavailable', 'the disk is gone')
    }
    await service.append('a', [userMessage(1)])
    t.notOk(await live.ended, 'the body does not end as if it were whole')
    t.notMatch(live.text, '"type":"end"')
    await until(() => service.log.length > 0)
    t.match(service.log, [{ level: 50, err: { message: 'the disk is gone' } }])
    t.equal(service.log.length, 1)
    watched.before = () => {}
    await service.exchange('DELETE', '/v1/sessions/a')
    other?.leave()
  }
  await until(() => watched.watching === 0)
  t.equal((await service.request('/readyz')).status, 200)
})

t.test('what another process commits is told too', async (t) => {
  const service = await start(t)
  await service.append('a', messagesLog(1))
  const other = await openSqliteStore(join(t.testdirName, 'scrollback.db'))
  t.teardown(() => other.close())
  const live = await follow(service, '/v1/sessions/a/follow')
  for (let seq = 1; seq < 4; seq++) {
    await other.append('a', bodyOfEvents([userMessage(seq)]), {})
    await until(() => live.lines.length === seq + 1)
  }
  t.equal(live.text, pageText(messagesLog(4), 0, 4, 'packed'))
  await other.delete('a')
  t.ok(await live.ended)
  t.same(JSON.parse(live.lines.at(-1) ?? ''), { type: 'end', reason: 'deleted' })
})

t.test('a connection goes on after a followed session has ended', async (t) => {
  const service = await emptied()
  await service.append('a', messagesLog(1))
  const socket = await service.socket()
  const all = received(socket)
  // The second request waits behind the first one, which has no end yet.
  socket.write(
    'GET /v1/sessions/a/follow HTTP/1.1\r\nHost: h\r\n\r\nGET /livez HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n',
  )
  await once(socket, 'data')
  await service.exchange('DELETE', '/v1/sessions/a')
  t.match(`${await all}`, /"reason":"deleted"}\n\r\n0\r\n\r\nHTTP\/1\.1 200 [\s\S]*{"status":"ok"}$/)
})
