// A reader that missed more messages than it asks for gets the newest page, and the groups of messages overlap: one may
// reach back behind the reader's own place. That page began in the middle of what the reader had, with a row that was in
// part old. It was taken for an error of the service, and the second time the journal failed for good. What comes after
// the place is less than that page, so it is asked for, and the reader goes on at its place.

import type { Test } from 'tap'
import t from 'tap'
import type { SessionHistoryRecord } from '../../codec/index.ts'
import { CHUNKS_MODES, expandRecord, recordRange } from '../../codec/index.ts'
import type { JournalChange } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { faultProxy } from '../support/fault-proxy.ts'
import { assertCovers, assistantMessage, textDeltas, userMessage } from '../support/logs.ts'
import { startService, until } from '../support/service.ts'

/** The reader's place is inside the run of tokens. */
const BEFORE = [userMessage(0), ...textDeltas(1, 100)]
const MISSED = [
  ...textDeltas(100, 200),
  ...[200, 201, 202, 203].map((seq) => userMessage(seq)),
  // One of the three newest messages was made of tokens on both sides of the place.
  assistantMessage(204, [10, 150]),
  userMessage(205),
  ...textDeltas(206, 210),
]
const AFTER = [...textDeltas(210, 213), userMessage(213)]
const LOG = [...BEFORE, ...MISSED, ...AFTER]

/** A session behind a proxy: each client's second connection waits for `goOn`. */
async function interrupted(t: Test) {
  const service = await startService(t)
  await service.append('s', BEFORE)
  const proxy = await faultProxy(t, service.url)
  const { promise, resolve } = Promise.withResolvers<string>()
  const connect = () => {
    let asked = 0
    const client = new HistoryClient({
      baseUrl: proxy.url,
      token: () => (asked++ === 0 ? 'first' : promise),
      reconnect: { firstDelay: 1, longestDelay: 4 },
    })
    t.teardown(() => client.close())
    return client.session('s')
  }
  return { service, proxy, connect, goOn: () => resolve('again') }
}

/** Records are the log of their range, but for tokens that were left out. */
function assertLog(t: Test, records: readonly SessionHistoryRecord[], from: number, to: number): void {
  assertCovers(records, from, to)
  for (const record of records) {
    const range = recordRange(record)
    if (record.type !== 'omitted') t.strictSame([...expandRecord(record)], LOG.slice(range.from, range.to))
  }
}

for (const chunks of CHUNKS_MODES) {
  t.test(`a journal goes on at its end, with ${chunks} tokens`, async (t) => {
    const { service, proxy, connect, goOn } = await interrupted(t)
    const journal = connect().journal({ maxMessages: 3, chunks })
    t.teardown(() => journal.close())
    const changes: JournalChange[] = []
    const reading = (async () => {
      for await (const change of journal) changes.push(change)
    })()
    await until(() => journal.status === 'live')
    proxy.now('reset')
    await until(() => journal.status === 'reconnecting')
    await service.append('s', MISSED)
    goOn()
    const told = changes.length
    await Promise.race([reading, until(() => journal.status === 'live')])
    await service.append('s', AFTER)
    await Promise.race([reading, until(() => journal.to === LOG.length)])
    t.equal(journal.status, 'live', `${journal.error}`)
    assertLog(t, journal.entries, 0, LOG.length)
    const since = changes.slice(told)
    const appended = since.flatMap((change) => (change.type === 'append' ? change.entries : []))
    assertLog(t, appended, BEFORE.length, LOG.length)
    t.notOk(since.some(({ type }) => type === 'replace'))
    t.strictSame(
      since.flatMap((change) => (change.type === 'status' ? [change.status] : [])),
      ['live'],
      'without another loss',
    )
  })
}

t.test('a followed log begins at its cursor, however far back the newest page goes', async (t) => {
  const { service, connect, goOn } = await interrupted(t)
  await service.append('s', MISSED)
  goOn()
  const statuses: string[] = []
  const log = connect().follow({ afterSeq: 99, maxMessages: 3, onStatus: (status) => statuses.push(status) })
  const records: SessionHistoryRecord[] = []
  for await (const record of log) {
    records.push(record)
    if (log.next === 210) break
  }
  assertLog(t, records, 100, 210)
  t.notMatch(statuses, ['connecting', 'reconnecting'])
})

t.test('the newest page itself still takes the place of a window that it does not reach', async (t) => {
  const { service, proxy, connect, goOn } = await interrupted(t)
  const journal = connect().journal({ maxMessages: 1 })
  t.teardown(() => journal.close())
  const replaced: JournalChange[] = []
  void (async () => {
    for await (const change of journal) if (change.type === 'replace') replaced.push(change)
  })()
  await until(() => journal.status === 'live')
  proxy.now('reset')
  await until(() => journal.status === 'reconnecting')
  await service.append('s', MISSED)
  goOn()
  await until(() => journal.status === 'live')
  t.match(replaced, [
    { reason: 'opened', from: 0 },
    { reason: 'resumed', from: 205 },
  ])
})
