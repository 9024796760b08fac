// The same behind a plain `node:http` server: a request is one batch and one commit, answered when it is on the disk.
// Argument: the table's file.

import { BatchTable } from './batch-table.ts'
import { linesOf } from './lines-file.ts'
import { servePlain } from './plain-server.ts'

const table = new BatchTable(process.argv[2] as string)
const logs = new Map<string, number>()

await servePlain(async (request, response) => {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece)
  const url = request.url as string
  const log = logs.get(url) ?? logs.size
  logs.set(url, log)
  table.commit(log, linesOf(Buffer.concat(pieces)))
  response.setHeader('content-type', 'application/json')
  response.end('{"head":0}')
})
