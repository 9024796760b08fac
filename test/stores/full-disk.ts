// A process that fills a small disk with appends, frees some of it and goes on; it prints what it saw.
//
//   node full-disk.ts <directory on the disk>

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Problem } from '../../codec/index.ts'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { bodyOfEvents, pageRecords, userMessage } from '../support/logs.ts'

const [directory = ''] = process.argv.slice(2)
const ballast = join(directory, 'ballast')
writeFileSync(ballast, Buffer.alloc(6 * 1024 * 1024))
const store = await openSqliteStore(join(directory, 'full.db'))
const history = new History(store)
await history.create('deleted', undefined)
await history.create('s', undefined)
const text = 'x'.repeat(20_000)
const batch = (head: number) => [1, 2, 3].map((by) => ({ ...userMessage(head + by), data: { content: text } }))
await history.append('deleted', { format: 'ndjson', bytes: [bytes(batch(-1))] }, {})
const { log } = await history.describe('s')
/** The furthest that those who watch were told of. */
let hinted = -1
store.watch((hint) => {
  if ('head' in hint && hint.log === log) hinted = Math.max(hinted, hint.head)
})

function bytes(events: ReturnType<typeof batch>): Uint8Array {
  return Buffer.concat(bodyOfEvents(events).bytes)
}

const codes: string[] = []
let head = -1
/** Appends until one fails; the code of its failure. */
const fill = async (): Promise<string> => {
  for (;;) {
    try {
      ;({ head } = await history.append('s', bodyOfEvents(batch(head)), {}))
    } catch (error) {
      return error instanceof Problem ? error.code : String(error)
    }
  }
}
codes.push(await fill())
// Others fail in the same way, a deletion too, and none of them ends the writer.
await history.remove('deleted').catch((error) => codes.push(error.code))
codes.push(await fill())
const full = head
const whole = await pageRecords(await history.range({ id: 's' }, { chunks: 'packed' }))
const described = (await history.describe('s')).head
const hintedAtMost = hinted

rmSync(ballast)
// Until the last failure is forgotten nothing needs to be done: the same request is taken.
;({ head } = await history.append('s', bodyOfEvents(batch(head)), {}))
const after = await pageRecords(await history.range({ id: 's' }, { chunks: 'packed' }))
await store.close()
process.stdout.write(
  JSON.stringify({ codes, full, described, hinted: hintedAtMost, records: whole.length, head, after: after.length }),
)
