// Following, without a socket: sinks that take, stop taking and leave where the test says, on a real store whose answers
// and hints come when the test says. Whatever happens between, a reader is given each event once and in order.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { ChunksMode, EndReason, SessionEvent, SessionHistoryRecord } from '../../codec/index.ts'
import { Problem } from '../../codec/index.ts'
import type { FollowQuery, FollowSink, HistoryStore, LogHint, PagePiece } from '../../src/history/index.ts'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { inTime } from '../support/arbitraries.ts'
import {
  assertCovers,
  assistantMessage,
  bodyOfEvents,
  eventsOf,
  messagesLog,
  pageRecords,
  pageText,
  recordsOf,
  textDelta,
  textDeltas,
  userMessage,
} from '../support/logs.ts'
import { until } from '../support/service.ts'

const sqlite = await openSqliteStore(join(t.testdir(), 'follow.db'))
t.teardown(() => sqlite.close())
/** Writes and looks, past all that a test puts in between. */
const plain = new History(sqlite)

// ---- the reader's end ---------------------------------------------------------------------------------------------

/** A sink that takes pieces until it is paused; it refuses what no sink may be given. */
class Reader implements FollowSink {
  readonly pieces: PagePiece[] = []
  ended: EndReason | undefined
  #room: PromiseWithResolvers<boolean> | undefined
  #refused = false

  write(piece: PagePiece): boolean {
    assert.equal(this.ended, undefined, 'a piece after the end')
    assert(!this.#refused, 'a piece for a reader that is behind')
    const last = this.pieces.at(-1)
    if (last) assert.equal(piece.from, last.to, 'pieces join')
    this.pieces.push(piece)
    this.#refused = this.#room !== undefined
    return !this.#refused
  }

  async ready(): Promise<boolean> {
    const there = (await this.#room?.promise) ?? true
    this.#refused = false
    return there
  }

  end(reason: EndReason): void {
    assert.equal(this.ended, undefined, 'one end')
    this.ended = reason
  }

  /** The next piece is the last for now. */
  pause(): void {
    this.#room ??= Promise.withResolvers()
  }

  go(): void {
    this.#room?.resolve(true)
    this.#room = undefined
  }

  leave(): void {
    this.#room?.resolve(false)
  }

  get text(): string {
    return Buffer.concat(this.pieces.map(({ bytes }) => bytes)).toString()
  }

  get records(): SessionHistoryRecord[] {
    return recordsOf(this.text)
  }

  /** The seq after the last one given. */
  get next(): number | undefined {
    return this.pieces.at(-1)?.to
  }
}

// ---- the store's end ----------------------------------------------------------------------------------------------

/** A store that tells what it is asked, and waits, fails or keeps a hint back where the test says. */
class Between {
  /** Calls of any kind but `watch` so far. */
  calls = 0
  /** Ranges of records asked for. */
  readonly reads: { from: number; to: number }[] = []
  watching = 0
  before: (method: string, call: number) => void | Promise<void> = () => {}
  after: (method: string, call: number) => void | Promise<void> = () => {}
  /** What happens to a hint on its way. */
  pass: (hint: LogHint, listener: (hint: LogHint) => void) => void = (hint, listener) => listener(hint)
  readonly store: HistoryStore
  readonly #listeners = new Set<(hint: LogHint) => void>()

  constructor() {
    this.store = new Proxy(sqlite, {
      get: (target, name: keyof HistoryStore) => {
        if (name === 'watch') return (listener: (hint: LogHint) => void) => this.#watch(listener)
        return async (...args: unknown[]) => {
          const call = this.calls++
          if (name === 'read') this.reads.push({ from: args[1] as number, to: args[2] as number })
          await this.before(name, call)
          const answer = await (target[name] as (...args: unknown[]) => Promise<unknown>).apply(target, args)
          await this.after(name, call)
          return answer
        }
      },
    })
  }

  tell(hint: LogHint): void {
    for (const listener of this.#listeners) listener(hint)
  }

  #watch(listener: (hint: LogHint) => void): () => void {
    this.watching++
    this.#listeners.add(listener)
    // Looks for other processes come when they like; a test tells them itself.
    const stop = sqlite.watch((hint) => {
      if (!('any' in hint)) this.pass(hint, (passed) => this.#listeners.has(listener) && listener(passed))
    })
    return () => {
      this.watching--
      this.#listeners.delete(listener)
      stop()
    }
  }
}

let ids = 0

async function session(events: readonly SessionEvent[] = []): Promise<string> {
  const id = `s${ids++}`
  await plain.create(id, undefined)
  await append(id, events)
  return id
}

async function append(id: string, events: readonly SessionEvent[]): Promise<void> {
  if (events.length > 0) await plain.append(id, bodyOfEvents(events), {})
}

interface Following {
  readonly reader: Reader
  readonly from: number
  readonly chunks: ChunksMode
  readonly done: Promise<void>
  /** As a transport does when its reader has left. */
  abort(): void
}

async function follow(
  history: History,
  id: string,
  query: Partial<FollowQuery> = {},
  reader = new Reader(),
): Promise<Following> {
  const follower = await history.follow({ id }, { chunks: 'packed', ...query })
  const left = new AbortController()
  const done = follower.run(reader, left.signal)
  // A test that expects a failure awaits it.
  done.catch(() => {})
  return {
    reader,
    from: follower.page.from,
    chunks: follower.page.chunks,
    done,
    abort: () => {
      left.abort()
      reader.leave()
    },
  }
}

function setUp(followers?: number) {
  const between = new Between()
  const history = new History(between.store, followers === undefined ? {} : { followers })
  return { between, history }
}

/** What a reader was given is the log from its start to its end. */
async function assertGiven(id: string, { reader, from }: Following, events: readonly SessionEvent[]): Promise<void> {
  assertCovers(reader.records, from, events.length)
  const fetch = async (fromSeq: number, toSeq: number) =>
    pageRecords(await plain.range({ id }, { fromSeq, toSeq, chunks: 'packed' }))
  assert.deepEqual(await eventsOf(reader.records, fetch), events.slice(from))
}

/** Once a follower is level it asks the store for nothing more. */
async function level(between: Between): Promise<void> {
  for (let calls = -1; calls !== between.calls; ) {
    calls = between.calls
    for (let turn = 0; turn < 5; turn++) await nextTurn()
  }
}

const MODES = ['packed', 'expanded', 'omit'] as const

// ---- opening and live ---------------------------------------------------------------------------------------------

t.test('the opening part follows the mode, and what is committed later comes as single events', async (t) => {
  const before = [userMessage(0), ...textDeltas(1, 6), assistantMessage(6, [1, 2, 3, 4, 5]), ...textDeltas(7, 11)]
  const later = [...textDeltas(11, 15), assistantMessage(15, [7, 8, 9, 10, 11, 12, 13, 14]), userMessage(16)]
  for (const chunks of MODES) {
    for (const afterSeq of [undefined, -1, 3, 10]) {
      const { between, history } = setUp()
      const id = await session(before)
      const following = await follow(history, id, { chunks, afterSeq })
      const { reader, from, done, abort } = following
      t.equal(from, (afterSeq ?? -1) + 1)
      await level(between)
      t.equal(reader.text, pageText(before, from, 11, chunks), `${chunks} after ${afterSeq}`)
      for (const event of later) {
        await append(id, [event])
        await until(() => reader.next === event.seq + 1)
      }
      t.equal(reader.text, pageText(before, from, 11, chunks) + pageText([...before, ...later], 11, 17, 'expanded'))
      abort()
      await done
    }
  }
})

t.test('an empty session is followed, and its first event is the first line (case B11)', async (t) => {
  const { between, history } = setUp()
  const id = await session()
  const { reader, done, abort } = await follow(history, id)
  await level(between)
  t.equal(reader.pieces.length, 0)
  const calls = between.calls
  await append(id, messagesLog(1))
  await until(() => reader.next === 1)
  t.equal(reader.text, pageText(messagesLog(1), 0, 1, 'expanded'))
  t.ok(between.calls <= calls + 1, 'nothing is asked while nothing happens')
  abort()
  await done
})

t.test('with both a cursor and a count, the newest page comes only instead of more messages', async (t) => {
  const { history } = setUp()
  const id = await session(messagesLog(10))
  for (const [afterSeq, maxMessages, from] of [
    [-1, undefined, 0],
    [-1, 10, 0],
    [-1, 9, 1],
    [4, 5, 5],
    [4, 4, 6],
    [4, 500, 5],
    [8, 1, 9],
    [9, 1, 10],
    [undefined, 3, 7],
    [undefined, undefined, 0],
  ] as const) {
    const follower = await history.follow({ id }, { chunks: 'packed', afterSeq, maxMessages })
    t.match(follower.page, { from, to: 10 }, `after ${afterSeq}, at most ${maxMessages}`)
    follower.leave()
  }
  // A message counts where it stands, not where its group begins.
  const answered = await session([
    userMessage(0),
    ...textDeltas(1, 5),
    userMessage(5),
    assistantMessage(6, [1, 2, 3, 4]),
  ])
  for (const [afterSeq, maxMessages, from] of [
    [3, 2, 4],
    [4, 2, 5],
    [5, 1, 6],
    [-1, 2, 1],
  ] as const) {
    const follower = await history.follow({ id: answered }, { chunks: 'packed', afterSeq, maxMessages })
    t.match(follower.page, { from, to: 7 }, `after ${afterSeq}, at most ${maxMessages}`)
    follower.leave()
  }
  for (const afterSeq of [10, 1_009, Number.MAX_SAFE_INTEGER]) {
    // Case B12.
    const ahead = { code: 'history/ahead', facts: { path: 'afterSeq', head: 9 } }
    await t.rejects(history.follow({ id }, { chunks: 'packed', afterSeq }), ahead)
  }
  const replaced = { code: 'session/replaced', facts: { head: 9 } }
  await t.rejects(history.follow({ id }, { chunks: 'packed', epoch: 'another' }), replaced)
  t.equal(history.following, 0, 'a refused one holds no place')
})

t.test('an event committed at any moment of the opening is given once (case B6)', async (t) => {
  const { between, history } = setUp()
  // Large enough that the opening part is read in several batches.
  const events = messagesLog(9).map((event) => ({ ...event, data: { content: 'x'.repeat(4_000) } }))
  let moments = 0
  for (const when of ['before', 'after'] as const) {
    for (let moment = 0, more = true; more; moment++) {
      const id = await session(events)
      const first = between.calls
      more = false
      between[when] = async (_method, call) => {
        if (call !== first + moment) return
        more = true
        moments++
        await append(id, [userMessage(9)])
      }
      const following = await follow(history, id, { maxMessages: 8, afterSeq: 1 })
      if (!more) {
        await level(between)
        if (!more) await append(id, [userMessage(9)])
      }
      await until(() => following.reader.next === 10)
      await append(id, [userMessage(10)])
      await until(() => following.reader.next === 11)
      await assertGiven(id, following, [...events, userMessage(9), userMessage(10)])
      following.abort()
      await following.done
    }
  }
  t.ok(moments >= 10, `${moments} moments`)
  t.equal(between.watching, 0)
})

t.test('a lost hint costs time, not events', async (t) => {
  const { between, history } = setUp()
  const id = await session(messagesLog(2))
  const following = await follow(history, id)
  const { reader, done, abort } = following
  await until(() => reader.next === 2)
  await level(between)
  between.pass = () => {}
  for (let seq = 2; seq < 6; seq++) await append(id, [userMessage(seq)])
  await level(between)
  t.equal(reader.next, 2)
  between.pass = (hint, listener) => {
    // Also out of order, and again.
    listener(hint)
    listener({ log: 'log' in hint ? hint.log : -1, head: 3 })
    listener(hint)
  }
  await append(id, [userMessage(6)])
  await until(() => reader.next === 7)
  between.pass = () => {}
  await append(id, [userMessage(7)])
  between.tell({ any: true })
  await until(() => reader.next === 8)
  await assertGiven(id, following, messagesLog(8))
  await plain.remove(id)
  t.equal(reader.ended, undefined)
  between.tell({ any: true })
  await done
  t.equal(reader.ended, 'deleted', 'so is the end of the session told')
  abort()
  t.match({ following: history.following, watching: between.watching }, { following: 0, watching: 0 })
})

t.test('a question that fails is asked again, without another hint', async (t) => {
  const { between, history } = setUp()
  const id = await session(messagesLog(1))
  const { reader, done, abort } = await follow(history, id)
  await until(() => reader.next === 1)
  between.pass = () => {}
  await append(id, [userMessage(1)])
  between.before = (method) => {
    if (method === 'headOf') throw new Problem('store/unavailable', 'the disk is gone')
  }
  between.tell({ any: true })
  await level(between)
  between.before = () => {}
  await until(() => reader.next === 2)
  t.equal(reader.text, pageText(messagesLog(2), 0, 2, 'packed'))
  abort()
  await done
})

// ---- many readers, slow readers -----------------------------------------------------------------------------------

t.test('what is committed is read once for all who are level', async (t) => {
  const { between, history } = setUp()
  const id = await session(messagesLog(1))
  const all = await Promise.all(Array.from({ length: 300 }, () => follow(history, id, { afterSeq: 0 })))
  await level(between)
  t.equal(between.watching, 1)
  t.equal(between.reads.length, 0, 'a reader at the head reads nothing')
  for (let seq = 1; seq <= 10; seq++) {
    await append(id, [userMessage(seq)])
    await until(() => all.every(({ reader }) => reader.next === seq + 1))
  }
  t.equal(between.reads.length, 10)
  const [piece] = all[0]?.reader.pieces ?? []
  t.ok(
    all.every(({ reader }) => reader.pieces[0] === piece),
    'and held once',
  )
  for (const { abort } of all) abort()
  await Promise.all(all.map(({ done }) => done))
})

t.test('who joins or leaves while a piece goes round gets it once, or not', async (t) => {
  const { history, between } = setUp()
  const id = await session()
  const all: Following[] = []
  /** Called with the first reader's first piece, when nobody else has it yet. */
  let onFirst = () => {}
  class First extends Reader {
    override write(piece: PagePiece): boolean {
      const room = super.write(piece)
      if (piece.from === 0) onFirst()
      return room
    }
  }
  all.push(await follow(history, id, {}, new First()))
  for (let more = 0; more < 299; more++) all.push(await follow(history, id))
  await level(between)
  let late: Promise<Following> | undefined
  onFirst = () => {
    late = follow(history, id)
    all[290]?.abort()
  }
  await append(id, messagesLog(1))
  await until(() => late !== undefined)
  all.push((await late) as Following)
  const [gone] = all.splice(290, 1)
  await gone?.done
  t.equal(gone?.reader.pieces.length, 0)
  await append(id, [userMessage(1)])
  await until(() => all.every(({ reader }) => reader.next === 2))
  for (const following of all) await assertGiven(id, following, messagesLog(2))
  for (const { abort } of all) abort()
  await Promise.all(all.map(({ done }) => done))
  t.equal(history.following, 0)
})

t.test('a slow reader is read for when it takes again, and is level again (case B27)', async (t) => {
  const { between, history } = setUp()
  const id = await session(messagesLog(1))
  const slow = await follow(history, id)
  const fast = await follow(history, id)
  await level(between)
  slow.reader.pause()
  const events = messagesLog(1)
  for (let batch = 0; batch < 20; batch++) {
    const more = textDeltas(events.length, events.length + 50)
    events.push(...more)
    await append(id, more)
    await until(() => fast.reader.next === events.length)
  }
  t.equal(slow.reader.pieces.length, 2, 'one piece that it did not refuse, and no more')
  const reads = between.reads.length
  const atPause = slow.reader.next as number
  slow.reader.go()
  await until(() => slow.reader.next === events.length)
  t.equal(between.reads[reads]?.from, atPause, 'from its own cursor on')
  await assertGiven(id, slow, events)
  t.equal(
    slow.reader.text,
    pageText(events, 0, 1, 'packed') +
      fast.reader.text.split('\n').slice(1, atPause).join('\n') +
      '\n' +
      pageText(events, atPause, events.length, 'packed'),
  )
  await level(between)
  const before = between.reads.length
  await append(id, [userMessage(events.length)])
  await until(() => slow.reader.next === events.length + 1)
  t.equal(between.reads.length, before + 1, 'the piece of both')
  t.equal(slow.reader.pieces.at(-1), fast.reader.pieces.at(-1))
  for (const each of [slow, fast]) each.abort()
  await Promise.all([slow.done, fast.done])
})

t.test('nothing is read for readers that take nothing', async (t) => {
  const { between, history } = setUp()
  const id = await session(messagesLog(1))
  const { reader, done, abort } = await follow(history, id)
  await level(between)
  reader.pause()
  await append(id, [userMessage(1)])
  await until(() => reader.next === 2)
  const calls = between.calls
  for (let seq = 2; seq < 50; seq++) await append(id, [userMessage(seq)])
  await level(between)
  t.equal(between.calls, calls)
  t.equal(reader.pieces.length, 2)
  reader.go()
  await until(() => reader.next === 50)
  abort()
  await done
})

// ---- any interleaving ---------------------------------------------------------------------------------------------

type Act =
  | { does: 'append'; events: ('message' | 'deltas' | 'turn' | 'large')[] }
  | { does: 'join'; back: number | undefined; chunks: ChunksMode }
  | { does: 'pause'; who: number }
  | { does: 'go'; who: number }
  | { does: 'leave'; who: number }
  | { does: 'turns'; count: number }
  | { does: 'lose' }
  | { does: 'any' }

const who = fc.nat({ max: 9 })
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constant('append' as const),
      events: fc.array(fc.constantFrom('message', 'deltas', 'turn', 'large'), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant('join' as const),
      back: fc.option(fc.nat({ max: 20 }), { nil: undefined }),
      chunks: fc.constantFrom(...MODES),
    }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constantFrom('pause' as const, 'go' as const), who }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('leave' as const), who }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant('turns' as const), count: fc.nat({ max: 6 }) }) },
  { weight: 1, arbitrary: fc.constantFrom<Act>({ does: 'lose' }, { does: 'any' }) },
)

function grown(events: readonly SessionEvent[], kinds: readonly ('message' | 'deltas' | 'turn' | 'large')[]) {
  const more: SessionEvent[] = []
  const next = () => events.length + more.length
  for (const kind of kinds) {
    if (kind === 'message') more.push(userMessage(next()))
    else if (kind === 'deltas') more.push(...textDeltas(next(), next() + 4))
    else if (kind === 'large') more.push(textDelta(next(), 'x'.repeat(9_000)))
    else {
      const first = next()
      more.push(...textDeltas(first, first + 4), assistantMessage(first + 4, [first, first + 1, first + 2, first + 3]))
    }
  }
  return more
}

t.test('each reader is given the log from its start, once and in order, whatever happens between', async (t) => {
  let runs = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { minLength: 4, maxLength: 40 }),
      fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 9 }),
      async (acts, delays) => {
        runs++
        const { between, history } = setUp()
        let drawn = 0
        const delay = async () => {
          for (let turns = delays[drawn++ % delays.length] ?? 0; turns > 0; turns--) await nextTurn()
        }
        between.before = delay
        between.after = delay
        let lose = 0
        between.pass = (hint, listener) => {
          if (lose > 0) lose--
          else void delay().then(() => listener(hint))
        }
        const events = messagesLog(1)
        const id = await session(events)
        const joined: Promise<Following>[] = []
        const left: Promise<Following>[] = []
        let appended = Promise.resolve()
        const there = async (who: number) => joined[who % Math.max(1, joined.length)]
        for (const act of acts) {
          if (act.does === 'append') {
            const more = grown(events, act.events)
            events.push(...more)
            appended = appended.then(() => append(id, more))
          } else if (act.does === 'join') {
            // The head that it finds may be any by then.
            const head = (await plain.describe(id)).head
            const afterSeq = act.back === undefined ? undefined : Math.max(-1, head - act.back)
            const joining = follow(history, id, { afterSeq, chunks: act.chunks })
            joining.catch(() => {})
            joined.push(joining)
          } else if (act.does === 'turns') {
            for (let turn = 0; turn < act.count; turn++) await nextTurn()
          } else if (act.does === 'lose') lose++
          else if (act.does === 'any') between.tell({ any: true })
          else {
            const following = await there(act.who)
            if (act.does === 'pause') following?.reader.pause()
            else if (act.does === 'go') following?.reader.go()
            else if (following) {
              following.abort()
              left.push(...joined.splice(act.who % joined.length, 1))
            }
          }
        }
        await appended
        const all = await Promise.all(joined)
        for (const { reader } of all) reader.go()
        lose = 0
        events.push(userMessage(events.length))
        await append(id, events.slice(-1))
        let failure: unknown
        for (const { done } of all) {
          done.then(
            () => {
              failure ??= new Error('a follower ended by itself')
            },
            (error) => {
              failure ??= error
            },
          )
        }
        await until(() => failure !== undefined || all.every(({ reader }) => reader.next === events.length))
        if (failure !== undefined) throw failure
        for (const following of all) await assertGiven(id, following, events)
        for (const { abort } of all) abort()
        for (const following of await Promise.all([...joined, ...left])) {
          await following.done
          const { reader, from } = following
          // What a reader had when it left is a beginning of the same.
          assertCovers(reader.records, from, reader.next ?? from)
        }
        assert.deepEqual({ following: history.following, watching: between.watching }, { following: 0, watching: 0 })
      },
    ),
    inTime(400),
  )
  t.comment(`${runs} runs`)
  t.ok(runs > 0)
})

// ---- the end, in every state --------------------------------------------------------------------------------------

interface State extends Following {
  /** Let go of what holds the follower where it is. */
  release(): void
  /** It waits for the store, so it cannot leave before that. */
  readonly reads?: boolean
}

const opening = messagesLog(9).map((event) => ({ ...event, data: { content: 'x'.repeat(4_000) } }))
type SetUp = ReturnType<typeof setUp>

/** Holds the next read that begins at this seq; resolved when it has come. */
function heldRead(between: Between, from: number): { reached: Promise<void>; release(): void } {
  const reached = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  between.before = async (method) => {
    if (method !== 'read' || between.reads.at(-1)?.from !== from) return
    between.before = () => {}
    reached.resolve()
    await gate.promise
  }
  return { reached: reached.promise, release: gate.resolve }
}

const STATES: Record<string, (set: SetUp, id: string) => Promise<State>> = {
  'reading the opening part': async ({ between, history }, id) => {
    const { reached, release } = heldRead(between, 0)
    const following = await follow(history, id)
    await reached
    return { ...following, release, reads: true }
  },
  'waiting for its reader inside the opening part': async ({ history }, id) => {
    const reader = new Reader()
    reader.pause()
    const following = await follow(history, id, {}, reader)
    await until(() => reader.pieces.length === 1)
    return { ...following, release: () => reader.go() }
  },
  'waiting for the feed': async ({ between, history }, id) => {
    const other = await follow(history, id)
    await until(() => other.reader.next === 9)
    await level(between)
    const { reached, release } = heldRead(between, 9)
    await append(id, [userMessage(9)])
    await reached
    const following = await follow(history, id, { afterSeq: 9 })
    await level(between)
    // The other one ends with it, or leaves.
    following.done.finally(() => other.abort())
    return { ...following, release }
  },
  level: async ({ between, history }, id) => {
    const following = await follow(history, id)
    await until(() => following.reader.next === 9)
    await level(between)
    return { ...following, release: () => {} }
  },
  behind: async ({ between, history }, id) => {
    const following = await follow(history, id)
    await until(() => following.reader.next === 9)
    await level(between)
    following.reader.pause()
    await append(id, [userMessage(9)])
    await until(() => following.reader.next === 10)
    await append(id, [userMessage(10)])
    return { ...following, release: () => following.reader.go() }
  },
  'catching up': async ({ between, history }, id) => {
    const following = await follow(history, id)
    await until(() => following.reader.next === 9)
    await level(between)
    following.reader.pause()
    await append(id, [userMessage(9)])
    await until(() => following.reader.next === 10)
    await append(id, [userMessage(10)])
    const { reached, release } = heldRead(between, 10)
    following.reader.go()
    await reached
    return { ...following, release, reads: true }
  },
}

for (const [name, reach] of Object.entries(STATES)) {
  t.test(`a follower that is ${name} ends when it should, and leaves nothing`, async (t) => {
    for (const how of ['deleted', 'draining', 'left'] as const) {
      const set = setUp()
      const { between, history } = set
      const id = await session(opening)
      const { reader, done, abort, release, reads = false } = await reach(set, id)
      t.ok(history.following >= 1)
      t.equal(between.watching, 1)
      if (how === 'deleted') await plain.remove(id)
      else if (how === 'draining') history.drain()
      else abort()
      const given = reader.pieces.length
      if (reads || how !== 'left') release()
      await done
      release()
      t.equal(reader.ended, how === 'left' ? undefined : how, how)
      if (how === 'left') t.equal(reader.pieces.length, given, 'nothing is given to a reader that left')
      if (how === 'draining') t.ok((reader.next ?? 9) >= 9, 'the opening part is whole')
      await until(() => history.following === 0)
      t.equal(between.watching, 0)
    }
  })
}

t.test('nobody is taken while the server drains', async (t) => {
  const { between, history } = setUp()
  const id = await session(messagesLog(1))
  history.drain()
  await t.rejects(history.follow({ id }, { chunks: 'packed' }), { code: 'server/draining', facts: { retryAfter: 1 } })
  await t.rejects(history.resume({ id }, { chunks: 'packed' }), { code: 'server/draining' })
  t.equal(between.watching, 0)
})

t.test('a session that goes, or is replaced, while the follower is opened', async (t) => {
  const { between, history } = setUp()
  for (const again of [false, true]) {
    const id = await session(messagesLog(3))
    const first = between.calls
    between.after = async (_method, call) => {
      if (call !== first) return
      await plain.remove(id)
      if (again) await plain.create(id, undefined)
    }
    if (again) {
      const young = await follow(history, id)
      await level(between)
      await append(id, [userMessage(0)])
      await until(() => young.reader.next === 1)
      await assertGiven(id, young, messagesLog(1))
      young.abort()
      await young.done
    } else {
      await t.rejects(history.follow({ id }, { chunks: 'packed' }), { code: 'session/not-found' })
    }
    t.equal(history.following, 0)
    t.equal(between.watching, 0)
  }
})

t.test('another life of the same id is not heard of (case B13)', async (t) => {
  const { history, between } = setUp()
  const id = await session(messagesLog(2))
  const old = await follow(history, id)
  await level(between)
  old.reader.pause()
  await append(id, [userMessage(2)])
  await until(() => old.reader.next === 3)
  await plain.remove(id)
  await plain.create(id, undefined)
  await append(id, messagesLog(8))
  const young = await follow(history, id)
  old.reader.go()
  await old.done
  t.equal(old.reader.ended, 'deleted')
  t.equal(old.reader.next, 3)
  await append(id, [userMessage(8)])
  await until(() => young.reader.next === 9)
  await assertGiven(id, young, messagesLog(9))
  young.abort()
  await young.done
})

// ---- a store that fails -------------------------------------------------------------------------------------------

t.test('when the store fails the follower fails; it never ends as if that were all (case D7)', async (t) => {
  const gone = new Problem('store/unavailable', 'the disk is gone')
  const failing = (between: Between) => {
    between.before = (method) => {
      if (method === 'read') throw gone
    }
  }
  for (const state of ['opening', 'catching up', 'live'] as const) {
    const { between, history } = setUp()
    const id = await session(opening)
    if (state === 'opening') failing(between)
    const { reader, done } = await follow(history, id)
    if (state !== 'opening') {
      await until(() => reader.next === 9)
      await level(between)
    }
    if (state === 'catching up') {
      reader.pause()
      await append(id, [userMessage(9)])
      await until(() => reader.next === 10)
      await append(id, [userMessage(10)])
    }
    failing(between)
    if (state === 'live') await append(id, [userMessage(9)])
    reader.go()
    await t.rejects(done, gone, state)
    t.equal(reader.ended, undefined)
    t.match({ following: history.following, watching: between.watching }, { following: 0, watching: 0 })
  }
})

t.test('a read for all that fails once is made up for by each', async (t) => {
  const { between, history } = setUp()
  const id = await session(messagesLog(1))
  const all = await Promise.all([follow(history, id), follow(history, id)])
  await level(between)
  between.before = (method) => {
    if (method !== 'read') return
    between.before = () => {}
    throw new Problem('store/unavailable', 'for a moment')
  }
  await append(id, [userMessage(1)])
  await until(() => all.every(({ reader }) => reader.next === 2))
  await append(id, [userMessage(2)])
  await until(() => all.every(({ reader }) => reader.next === 3))
  for (const following of all) {
    await assertGiven(id, following, messagesLog(3))
    following.abort()
    await following.done
  }
  t.equal(history.following, 0)
})

// ---- places -------------------------------------------------------------------------------------------------------

t.test('there are so many places; one more is refused, and none is put out', async (t) => {
  const { between, history } = setUp(2)
  const id = await session(messagesLog(3))
  const first = await follow(history, id)
  const unrun = await history.follow({ id }, { chunks: 'packed' })
  const busy = { code: 'server/busy', facts: { limit: 2, retryAfter: 5 } }
  await t.rejects(history.follow({ id }, { chunks: 'packed' }), busy)
  await t.rejects(history.resume({ id }, { chunks: 'packed' }), busy)
  await t.rejects(history.follow({ id: 'nobody' }, { chunks: 'packed' }), { code: 'session/not-found' })
  t.equal(history.following, 2)
  unrun.leave()
  unrun.leave()
  t.equal(history.following, 1)
  const other = await follow(history, await session(messagesLog(1)))
  await append(id, [userMessage(3)])
  await until(() => first.reader.next === 4)
  t.equal(other.reader.next, 1, 'of another log nothing is heard (case C12)')
  for (const each of [first, other]) {
    each.abort()
    await each.done
  }
  t.match({ following: history.following, watching: between.watching }, { following: 0, watching: 0 })
  await t.rejects(setUp(0).history.follow({ id }, { chunks: 'packed' }), { code: 'server/busy' })
})

t.test('one who has left before it was run is given nothing', async (t) => {
  const { between, history } = setUp()
  for (const id of [await session(), await session(messagesLog(3))]) {
    const follower = await history.follow({ id }, { chunks: 'packed' })
    const reader = new Reader()
    await follower.run(reader, AbortSignal.abort())
    t.equal(reader.pieces.length, 0)
    t.equal(reader.ended, undefined)
    t.match({ following: history.following, watching: between.watching }, { following: 0, watching: 0 })
  }
})

t.test('a cursor that does not fit any more begins again from the newest page', async (t) => {
  const { history } = setUp()
  const id = await session(messagesLog(10))
  const { epoch } = await plain.describe(id)
  for (const [query, from] of [
    [{ afterSeq: 4 }, 5],
    [{ afterSeq: 4, epoch }, 5],
    [{ afterSeq: 4, epoch: 'another', maxMessages: 3 }, 7],
    [{ afterSeq: 10, epoch, maxMessages: 3 }, 7],
    [{ afterSeq: 10, epoch: 'another' }, 0],
  ] as const) {
    const follower = await history.resume({ id }, { chunks: 'packed', ...query })
    t.match(follower?.page, { from, to: 10, epoch }, JSON.stringify(query))
    follower?.leave()
  }
  t.equal(await history.resume({ id: 'nobody' }, { chunks: 'packed' }), undefined)
  t.equal(await history.resume({ parent: id, child: 'nobody' }, { chunks: 'packed' }), undefined)
  t.equal(history.following, 0)
})
