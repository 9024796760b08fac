// Rounds of kill -9 under followers: a process serves, one writer appends and several readers follow through the SDK, it
// is killed at any moment and started again on the same port and data. Everybody comes back by themselves. What a reader
// saw is what is stored, each goes on behind its last event, all end level with the head. Run by itself it does many:
//
//   node follow-crash.ts [rounds] [seed]     default 200, 1

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { Random } from '../../bench/fixtures/random.ts'
import type { SessionEvent, SessionHistoryRecord } from '../../codec/index.ts'
import { expandRecord, recordRange } from '../../codec/index.ts'
import type { FollowedLog, FollowOptions, Journal, JournalOptions, SessionClient } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { assertCovers, assertGapless, assistantMessage, textDelta } from '../support/logs.ts'
import { ServiceProcess, steadyPort } from './service-process.ts'

/** Each round compares the whole log, so a store that grew for hundreds of rounds would take most of the time. */
const ROUNDS_A_STORE = 50
/** Milliseconds. Long beside every wait of a follower here. */
const PATIENCE = 30_000

export interface Figures {
  rounds: number
  /** of the service */
  kills: number
  events: number
  acknowledged: number
  /** events that were sent again, and were there already */
  repeated: number
  /** losses that followers were told of */
  losses: number
  /** windows that the newest page took the place of */
  resumed: number
  /** the longest time, in milliseconds, from the service's start to the last follower being level with a quiet log */
  slowest: number
}

/** What two copies of one event have in common. */
function textOf({ type, time, data, sourceEventSeqs, surfaceOp }: SessionEvent): string {
  return JSON.stringify([type, time, data, sourceEventSeqs, surfaceOp])
}

/** Appends batch after batch. What each life of it writes is told apart from what any other would write at that seq. */
class Writer {
  /** texts of the acknowledged events by their seq */
  readonly acknowledged: string[] = []
  repeated = 0
  #life = 0
  #next = 0
  #batch = 0

  /** Until `enough`, which is asked after each acknowledgement. Throws the signal's reason. */
  async write(session: SessionClient, enough: (acknowledgements: number) => boolean, signal: AbortSignal) {
    for (let count = 1; ; count++) {
      const events = this.#events(1 + ((this.#batch++ * 7) % 30))
      // A life has one of the forms that can be sent twice: with seqs, or without, where the SDK counts.
      const sent = this.#life % 2 === 0 ? events : events.map(({ seq: _seq, ...rest }) => rest)
      const { head, duplicates } = await session.append(sent, { signal })
      assert.equal(head, this.#next + events.length - 1)
      this.repeated += duplicates
      for (const event of events) this.acknowledged[event.seq] = textOf(event)
      this.#next = head + 1
      if (enough(count)) return
    }
  }

  /** Goes on behind what is stored, with other events than those whose fate is not known. */
  async beginAgain(session: SessionClient): Promise<void> {
    const { head } = await session.head()
    assert(head + 1 >= this.acknowledged.length, `${this.acknowledged.length - 1} was acknowledged, ${head} is stored`)
    this.#next = head + 1
    this.#life++
  }

  #events(count: number): SessionEvent[] {
    return Array.from({ length: count }, (_, at) => {
      const seq = this.#next + at
      if (seq % 23 === 22) return assistantMessage(seq, [seq - 2 - (seq % 19), seq - 1])
      return textDelta(seq, `${this.#life}/${seq} é`, seq % 41 > 30 ? 1 : 0)
    })
  }
}

/** What one reader was given. */
abstract class Reader {
  /** texts of the events by their seq */
  readonly seen: string[] = []
  losses = 0
  resumed = 0
  failure: unknown
  /** the seq that comes next */
  abstract readonly next: number
  abstract readonly isLive: boolean

  abstract close(): void
  abstract check(log: readonly SessionEvent[]): void

  protected take(records: readonly SessionHistoryRecord[]): void {
    for (const record of records) {
      if (record.type === 'omitted') continue
      for (const event of expandRecord(record)) {
        const text = textOf(event)
        assert.equal(this.seen[event.seq] ?? text, text, `seq ${event.seq} was another event before`)
        this.seen[event.seq] = text
      }
    }
  }
}

class JournalReader extends Reader {
  readonly #journal: Journal
  #closed = false

  constructor(session: SessionClient, options: JournalOptions) {
    super()
    this.#journal = session.journal(options)
    this.#read().catch((error) => {
      this.failure = error
    })
  }

  get next(): number {
    return this.#journal.to
  }

  get isLive(): boolean {
    return this.#journal.status === 'live'
  }

  close(): void {
    this.#closed = true
    this.#journal.close()
  }

  check(log: readonly SessionEvent[]): void {
    const { entries, from, to } = this.#journal
    assertCovers(entries, from, to)
    assert.equal(to, log.length, 'the window ends where the log does')
    for (const record of entries) {
      if (record.type === 'omitted') continue
      const range = recordRange(record)
      assert.deepEqual([...expandRecord(record)], log.slice(range.from, range.to))
    }
  }

  async #read(): Promise<void> {
    let to = 0
    for await (const change of this.#journal) {
      if (change.type === 'status') {
        if (change.status === 'reconnecting') this.losses++
        continue
      }
      this.take(change.entries)
      if (change.type === 'append') to = assertGapless(change.entries, to)
      if (change.type === 'replace') {
        assert.notEqual(change.reason, 'reset', 'the log was taken for another one')
        if (change.reason === 'resumed') {
          this.resumed++
          assert(change.from > to, `the window ended before ${to}, and began again at ${change.from}`)
        }
        to = assertGapless(change.entries, change.from)
      }
      assert.equal(this.#journal.to, to)
    }
    assert(this.#closed, `it ended: ${this.#journal.status}, ${this.#journal.error}`)
  }
}

class LogReader extends Reader {
  readonly #log: FollowedLog
  readonly #stop = new AbortController()
  #live = false

  constructor(session: SessionClient, options: FollowOptions) {
    super()
    const { signal } = this.#stop
    const onStatus: FollowOptions['onStatus'] = (status) => {
      this.#live = status === 'live'
      if (status === 'reconnecting') this.losses++
    }
    this.#log = session.follow({ ...options, onStatus, signal })
    this.#read().catch((error) => {
      if (!signal.aborted) this.failure = error
    })
  }

  get next(): number {
    return this.#log.next ?? 0
  }

  get epoch(): string | undefined {
    return this.#log.epoch
  }

  get isLive(): boolean {
    return this.#live
  }

  close(): void {
    this.#stop.abort()
  }

  check(log: readonly SessionEvent[]): void {
    assert.equal(this.next, log.length, 'the last event was given')
  }

  async #read(): Promise<void> {
    let next: number | undefined
    for await (const record of this.#log) {
      next = assertGapless([record], next ?? record.event.seq)
      this.take([record])
    }
    throw new Error('it ended')
  }
}

/** Every kind of follower; the older one, if there is one, has just been closed. */
const FOLLOWERS: readonly ((session: SessionClient, older: Reader | undefined) => Reader)[] = [
  (session) => new JournalReader(session, { maxMessages: 500 }),
  (session) => new JournalReader(session, { maxMessages: 1 }),
  (session) => new JournalReader(session, { chunks: 'expanded' }),
  (session) => new JournalReader(session, { maxMessages: 20, chunks: 'omit' }),
  (session) => new LogReader(session, {}),
  (session, older) =>
    older instanceof LogReader && older.epoch !== undefined
      ? // As a reader does that keeps its place somewhere.
        new LogReader(session, { afterSeq: older.next - 1, epoch: older.epoch })
      : new LogReader(session, { afterSeq: -1 }),
]

/**
 * Rounds over one store in the folder.
 * @throws when a round finds anything wrong
 */
export async function followCrashRounds(directory: string, rounds: number, seed: number): Promise<Figures> {
  const random = new Random(seed)
  const upTo = (most: number) => Math.floor(random.next() * most)
  const place = { data: join(directory, 'data'), port: await steadyPort() }
  const figures = { rounds, kills: 0, events: 0, acknowledged: 0, repeated: 0, losses: 0, resumed: 0, slowest: 0 }
  // A process that is killed leaves the next one nothing of what it compiled; one that ends does.
  await (await ServiceProcess.start(place)).end('SIGTERM')
  let service = await ServiceProcess.start(place)
  const client = new HistoryClient({
    baseUrl: service.url,
    retry: { tries: 10_000, firstDelay: 4, longestDelay: 64 },
    reconnect: { firstDelay: 8, longestDelay: 128 },
  })
  const writer = new Writer()
  let readers: Reader[] = []
  const gone: Reader[] = []
  try {
    await client.sessions.create('s')
    let session = client.session('s')
    readers = FOLLOWERS.map((open) => open(client.session('s'), undefined))
    for (let round = 0; round < rounds; round++) {
      const kill = 1 + upTo(25)
      const more = 1 + upTo(4)
      const rest = upTo(8)
      const changed = upTo(readers.length)
      const stop = new AbortController()
      const reached = Promise.withResolvers<void>()
      let restarted = Number.POSITIVE_INFINITY
      const written = writer.write(
        session,
        (count) => {
          if (count === kill) reached.resolve()
          return count >= restarted
        },
        stop.signal,
      )
      written.catch(reached.reject)

      // One reader begins anew while the log grows, and may be killed in its opening part.
      const older = readers[changed] as Reader
      older.close()
      gone.push(older)
      const newer = (FOLLOWERS[changed] as (typeof FOLLOWERS)[number])(client.session('s'), older)
      readers[changed] = newer

      await reached.promise
      await delay(rest)
      await service.end('SIGKILL')
      figures.kills++
      // Every other time the writer dies with the service, and what comes after it writes something else.
      const dies = round % 2 === 1
      if (dies) {
        stop.abort()
        await assert.rejects(written, { name: 'AbortError' })
      }
      service = new ServiceProcess(place)
      if (round % 7 === 6) {
        await delay(upTo(500))
        await service.end('SIGKILL')
        figures.kills++
        service = new ServiceProcess(place)
      }
      await service.listening()
      const since = performance.now()
      if (dies) {
        session = client.session('s')
        await writer.beginAgain(session)
        await writer.write(session, (count) => count >= more, new AbortController().signal)
      } else {
        restarted = 0
        await written
      }
      const { head } = await session.head()
      await level(readers, head)
      figures.slowest = Math.max(figures.slowest, performance.now() - since)

      const log: SessionEvent[] = []
      for await (const event of session.events()) log.push(event)
      const texts = log.map(textOf)
      assert.equal(log.length, head + 1)
      writer.acknowledged.forEach((text, seq) => {
        assert.equal(texts[seq], text, `the acknowledged event ${seq} is another one`)
      })
      for (const reader of [...readers, ...gone]) {
        reader.seen.forEach((text, seq) => {
          assert.equal(texts[seq], text, `event ${seq} was seen, and is another one`)
        })
      }
      for (const reader of readers) reader.check(log)
      figures.losses += older.losses
      figures.resumed += older.resumed
      figures.events = log.length
      gone.length = 0
    }
  } finally {
    for (const reader of readers) {
      reader.close()
      figures.losses += reader.losses
      figures.resumed += reader.resumed
    }
    await client.close()
    await service.end('SIGKILL')
  }
  figures.acknowledged = writer.acknowledged.filter((text) => text !== undefined).length
  figures.repeated = writer.repeated
  return figures
}

/** Waits until all have everything. */
async function level(readers: readonly Reader[], head: number): Promise<void> {
  const end = performance.now() + PATIENCE
  for (;;) {
    for (const { failure } of readers) if (failure !== undefined) throw failure
    if (readers.every(({ next, isLive }) => next === head + 1 && isLive)) return
    const places = readers.map(({ next, isLive }) => `${next}${isLive ? '' : ' (not live)'}`)
    assert(performance.now() < end, `the log has ${head + 1} events, and readers stay at ${places.join(', ')}`)
    await delay(2)
  }
}

if (import.meta.main) {
  const [rounds = 200, seed = 1] = process.argv.slice(2).map(Number)
  for (let done = 0; done < rounds; done += ROUNDS_A_STORE) {
    const directory = mkdtempSync(join(tmpdir(), 'scrollback-follow-crash-'))
    mkdirSync(join(directory, 'cache'))
    process.env.NODE_COMPILE_CACHE = join(directory, 'cache')
    const these = Math.min(ROUNDS_A_STORE, rounds - done)
    const begun = performance.now()
    const figures = await followCrashRounds(directory, these, seed + done)
    rmSync(directory, { recursive: true })
    const seconds = ((performance.now() - begun) / 1000).toFixed(1)
    console.log(`${done + these} of ${rounds} rounds in ${seconds} s: ${JSON.stringify(figures)}`)
  }
}
