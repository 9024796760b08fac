// Owns how a server of a test is reached: on a free port of this machine, for as long as the test runs.

import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import type { Test } from 'tap'

/** @returns its address. It takes no more connections when the test ends; those that it has are its owner's to end. */
export async function listening(t: Test, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
