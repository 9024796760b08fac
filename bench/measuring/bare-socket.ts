// A connection that leaves nothing to the garbage collector: every read overwrites one buffer.

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { connect } from 'node:net'

/**
 * Connected. `take` is called with what came, which is overwritten once it returns.
 * @param bufferBytes how much comes at once at the most
 */
export async function bareSocket(
  port: number,
  take: (bytes: Buffer) => void,
  bufferBytes = 16 * 1024,
): Promise<Socket> {
  const buffer = Buffer.allocUnsafe(bufferBytes)
  const socket = connect({
    ...{ port, host: '127.0.0.1', noDelay: true },
    onread: {
      buffer,
      callback: (length) => {
        take(buffer.subarray(0, length))
        return true
      },
    },
  })
  await once(socket, 'connect')
  return socket
}
