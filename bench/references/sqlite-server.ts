// The SQLite limit: the page's lines are read from a table in batches and sent. Argument: the table's file.

import { DatabaseSync } from 'node:sqlite'
import { BATCH_BYTES } from './lines-file.ts'
import { sendPieces, servePlain } from './plain-server.ts'

const db = new DatabaseSync(process.argv[2] as string, { readOnly: true })
const read = db.prepare('SELECT place, line FROM lines WHERE place > ? ORDER BY place')

await servePlain((_request, response) => sendPieces(response, batches()))

/** No statement stays open between two batches. */
function* batches(): Generator<Buffer> {
  let after = 0
  for (;;) {
    const lines: Uint8Array[] = []
    let length = 0
    for (const row of read.iterate(after)) {
      const line = row.line as Uint8Array
      lines.push(line)
      length += line.length
      after = row.place as number
      if (length >= BATCH_BYTES) break
    }
    if (lines.length === 0) return
    yield Buffer.concat(lines, length)
  }
}
