// A plain `node:http` server on a port of the system's choice, which it prints; the frame of all references.

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export async function servePlain(
  answer: (request: IncomingMessage, response: ServerResponse) => Promise<void> | void,
): Promise<void> {
  const server = createServer((request, response) => {
    Promise.resolve(answer(request, response)).catch((error: unknown) => {
      console.error(error)
      response.destroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.on('SIGTERM', () => process.exit())
  console.log(`listening ${(server.address() as AddressInfo).port}`)
}

/** Send pieces chunked, no faster than the socket takes them. */
export async function sendPieces(response: ServerResponse, pieces: Iterable<Uint8Array | string>): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' })
  for (const piece of pieces) {
    if (!response.write(piece)) await once(response, 'drain')
  }
  response.end()
}
