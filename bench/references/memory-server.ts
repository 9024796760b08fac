// The memory limit: the page's bytes lie ready and are sent as they are. Argument: the file of the body.

import { readBatches } from './lines-file.ts'
import { sendPieces, servePlain } from './plain-server.ts'

const batches = readBatches(process.argv[2] as string)

await servePlain((_request, response) => sendPieces(response, batches))
