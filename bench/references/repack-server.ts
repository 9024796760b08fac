// The reference design: the log is stored one event a row; a page is made by reading and decoding every event of the
// session, cutting the page out, packing it with the codec and serialising it. Argument: the table's file.

import { DatabaseSync } from 'node:sqlite'
import type { SessionEvent } from '../../codec/index.ts'
import { encodeRecords, groupStart, isMessage, packEvents } from '../../codec/index.ts'
import { sendPieces, servePlain } from './plain-server.ts'

const MAX_MESSAGES = 50

const db = new DatabaseSync(process.argv[2] as string, { readOnly: true })
const read = db.prepare('SELECT line FROM lines ORDER BY place')
const decoder = new TextDecoder()

await servePlain((_request, response) => {
  const events: SessionEvent[] = read.all().map((row) => JSON.parse(decoder.decode(row.line as Uint8Array)))
  const records = packEvents(events.slice(pageStart(events)))
  return sendPieces(
    response,
    records.map((record) => encodeRecords([record])),
  )
})

function pageStart(events: readonly SessionEvent[]): number {
  let messages = 0
  let start = events.length
  for (const event of events.toReversed()) {
    if (isMessage(event)) messages++
    if (isMessage(event)) start = Math.min(start, groupStart(event.seq, event.sourceEventSeqs))
    if (messages === MAX_MESSAGES) return start
  }
  return 0
}
