// The log under a reader becomes another one: an older copy of the store is put in its place, or the session is deleted
// and made again under its id. A reader with a window is told that it starts over, one with a bare cursor gets a typed
// error, and a cursor that has died is sent no second time (cases B12, B13, B24).

import { copyFileSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import type { SessionEvent } from '../../codec/index.ts'
import type { Journal, JournalChange } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { run } from '../cli/command-line.ts'
import { eventsOf, textDeltas, userMessage } from '../support/logs.ts'
import { until } from '../support/service.ts'
import { Gate } from './gate.ts'
import { ServiceProcess, steadyPort } from './service-process.ts'

/** Two logs that no event has in common tell what a reader really holds. */
function talk(from: number, count: number, words = 'first'): SessionEvent[] {
  return Array.from({ length: count }, (_, at) => {
    const seq = from + at
    return seq % 5 === 4
      ? { ...userMessage(seq), data: { content: `${words} ${seq}` } }
      : { ...textDeltas(seq, seq + 1)[0]!, time: 1_785_000_000_000 + words.length }
  })
}

async function served(t: Test) {
  const directory = t.testdir()
  const port = await steadyPort()
  const inFolder = (name: string) => ({ data: join(directory, name), port })
  let service = await ServiceProcess.start(inFolder('data'))
  t.teardown(() => service.end('SIGKILL'))
  const gate = await Gate.before(t, port)
  const through = new HistoryClient({ baseUrl: gate.url, reconnect: { firstDelay: 2, longestDelay: 20 } })
  const past = new HistoryClient({ baseUrl: service.url })
  t.teardown(() => Promise.all([through.close(), past.close()]))
  await past.sessions.create('s')
  return {
    directory,
    gate,
    /** through the gate */
    session: through.session('s'),
    /** past it */
    writer: () => past.session('s'),
    sessions: past.sessions,
    /** Readers wait at the gate until it is there again. */
    async end() {
      gate.shut()
      gate.cut()
      await service.end('SIGTERM')
    },
    async start(name = 'data') {
      service = await ServiceProcess.start(inFolder(name))
      gate.open()
    },
    /** the cursors of the requests to follow, in their order */
    cursors: () => {
      return gate.requests
        .filter((line) => line.includes('/follow'))
        .map((line) => new URL(line.split(' ')[1] as string, gate.url).searchParams)
        .map((query) => `${query.get('afterSeq')} ${query.get('epoch')}`)
    },
  }
}

/** A journal that is read, and all that it told. */
function reading(t: Test, journal: Journal) {
  t.teardown(() => journal.close())
  const changes: JournalChange[] = []
  const done = (async () => {
    for await (const change of journal) changes.push(change)
  })()
  const liveAt = (to: number) => Promise.race([done, until(() => journal.status === 'live' && journal.to === to)])
  return { changes, done, liveAt }
}

/** What a journal tells when it starts over, once: why, that it starts over, and that it is live. */
async function assertStartedOver(t: Test, journal: Journal, changes: JournalChange[], code: string) {
  const resets = changes.filter((change) => change.type === 'replace' && change.reason === 'reset')
  t.equal(resets.length, 1)
  const at = changes.indexOf(resets[0] as JournalChange)
  const reasons = changes.slice(0, at).filter((change) => change.type === 'status' && change.error)
  t.match(reasons.at(-1), { status: 'reconnecting', error: { name: 'ServiceError', status: 409, code } })
  t.match(changes.slice(at + 1)[0], { type: 'status', status: 'live' })
  t.equal(journal.status, 'live')
}

t.test('an older copy by `scrollback backup` is another log, and the reader starts over', async (t) => {
  const { directory, session, writer, end, start, cursors } = await served(t)
  await writer().append(talk(0, 30))
  const journal = session.journal({ maxMessages: 4 })
  const { changes, liveAt } = reading(t, journal)
  await liveAt(30)
  const bare = session.follow({ afterSeq: 19 })
  let given = 0
  const followed = (async () => {
    for await (const _ of bare) given = bare.next as number
  })()
  followed.catch(() => {})
  mkdirSync(join(directory, 'restored'))
  const copy = join(directory, 'restored', 'scrollback.db')
  t.match(await run(['backup', copy, '--data', join(directory, 'data')]), { code: 0 })
  await writer().append(talk(30, 20))
  await liveAt(50)
  await until(() => given === 50)
  const epoch = journal.epoch

  await end()
  await start('restored')
  await liveAt(30)
  await assertStartedOver(t, journal, changes, 'session/replaced')
  t.not(journal.epoch, epoch)
  t.strictSame(await eventsOf(journal.entries), talk(0, 30).slice(journal.from))
  await t.rejects(followed, { name: 'ServiceError', code: 'session/replaced', status: 409 })

  // What is written from now on has the seqs of what was lost.
  await writer().append(talk(30, 10, 'restored'))
  await liveAt(40)
  t.strictSame(await eventsOf(journal.entries), [...talk(0, 30), ...talk(30, 10, 'restored')].slice(journal.from))
  const dead = cursors().filter((cursor) => cursor === `49 ${epoch}`)
  t.equal(dead.length, 2, 'once by each reader')
  t.equal(cursors().at(-1), 'null null')
})

t.test('a file put back in place is the same log, and shorter: the cursor is ahead of it', async (t) => {
  const { directory, session, writer, end, start, cursors } = await served(t)
  await writer().append(talk(0, 30))
  await end()
  const file = join(directory, 'data', 'scrollback.db')
  const kept = join(directory, 'kept.db')
  copyFileSync(file, kept)
  const { ino } = statSync(file)
  await start()
  await writer().append(talk(30, 20))
  const journal = session.journal({ maxMessages: 4 })
  const { changes, liveAt } = reading(t, journal)
  await liveAt(50)
  const { epoch } = journal

  await end()
  copyFileSync(kept, file)
  for (const name of ['-wal', '-shm']) rmSync(`${file}${name}`, { force: true })
  t.equal(statSync(file).ino, ino)
  await start()
  await liveAt(30)
  await assertStartedOver(t, journal, changes, 'history/ahead')
  t.equal(journal.epoch, epoch)
  t.strictSame(await eventsOf(journal.entries), talk(0, 30).slice(journal.from))
  t.equal(cursors().filter((cursor) => cursor === `49 ${epoch}`).length, 1)

  const ahead = session.follow({ afterSeq: 1029, epoch })
  await t.rejects(ahead[Symbol.asyncIterator]().next(), {
    name: 'ServiceError',
    code: 'history/ahead',
    facts: { head: 29 },
  })
  t.equal(cursors().filter((cursor) => cursor.startsWith('1029')).length, 1)
  const level = session.follow({ afterSeq: 29, epoch })[Symbol.asyncIterator]()
  const next = level.next()
  await writer().append(talk(30, 1, 'after'))
  t.match(await next, { value: { event: { seq: 30 } } }, 'the head itself is no cursor ahead')
  await level.return(undefined)
})

t.test('a session that is deleted and made again while the reader is away', async (t) => {
  const { gate, session, writer, sessions, cursors } = await served(t)
  await writer().append(talk(0, 50))
  const journal = session.journal({ maxMessages: 4 })
  const { changes, liveAt } = reading(t, journal)
  await liveAt(50)
  const { epoch } = journal
  for (const count of [20, 50, 80]) {
    // Shorter than the reader's place, just as long, and longer.
    const [before, told] = [journal.epoch, changes.length]
    gate.shut()
    gate.cut()
    await until(() => journal.status === 'reconnecting')
    await sessions.delete('s')
    await sessions.create('s')
    await writer().append(talk(0, count, 'second'))
    const last = `${journal.to - 1} ${before}`
    gate.open()
    await liveAt(count)
    await until(() => journal.epoch !== before)
    await assertStartedOver(t, journal, changes.slice(told), 'session/replaced')
    t.strictSame(await eventsOf(journal.entries), talk(0, count, 'second').slice(journal.from))
    t.equal(cursors().filter((cursor) => cursor === last).length, 1, 'the cursor that died was sent once')
  }
  await t.rejects(session.follow({ afterSeq: 9, epoch })[Symbol.asyncIterator]().next(), { code: 'session/replaced' })
})

t.test('a session that is deleted while it is followed has ended, also when another one takes its place', async (t) => {
  const { session, writer, sessions, cursors } = await served(t)
  await writer().append(talk(0, 20))
  const journal = session.journal()
  const { changes, done, liveAt } = reading(t, journal)
  await liveAt(20)
  await sessions.delete('s')
  await sessions.create('s')
  await done
  t.match(changes.at(-1), { type: 'status', status: 'ended' })
  t.equal(journal.to, 20, 'the window can still be read')
  t.equal(cursors().length, 1)
})
