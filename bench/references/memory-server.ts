// The memory limit: the page's bytes lie ready and are sent as they are. Argument: the file of the body.

import { readBatches } from './lines-file.ts'
import { sendPieces, servePlain } from './plain-server.ts'

const batches = readBatches(process.argv[2] as string)

await servePlain((request, response) => {
  // For clients that open their connection before the clock starts.
  if (request.url === '/livez') response.writeHead(204).end()
  else return sendPieces(response, batches)
})
