// A process that appends events of its own to one session of a store that others write too, and prints where each went.
//
//   node appender.ts <store> <session> <name> <events>

import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { bodyOf } from '../support/logs.ts'

const [path = '', session = '', name = '', events = '0'] = process.argv.slice(2)
const store = await openSqliteStore(path)
const history = new History(store)
const seqs: number[] = []
for (let n = 0; n < Number(events); n++) {
  const { head } = await history.append(session, bodyOf(JSON.stringify({ type: 'x', data: { name, n } })), {})
  seqs.push(head)
}
await store.close()
process.stdout.write(JSON.stringify(seqs))
