// Owns the options by which a command finds the service and a session, and the client made from them.

import { isSessionId } from '../../codec/index.ts'
import type { RetryOptions } from '../client/index.ts'
import { HistoryClient } from '../client/index.ts'
import type { Surroundings } from './command.ts'
import type { Operand, Reader } from './options.ts'
import { option, UsageError } from './options.ts'

const DEFAULT_URL = 'http://127.0.0.1:7411'

/**
 * A service may be set up for longer lines than usual. No line can be longer than the request that brought it, and this
 * is what a request may usually have.
 */
export const LINE_BYTES = 64 * 1024 * 1024

const url: Reader<string> = (text) => {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  if (parsed && /^https?:$/.test(parsed.protocol) && parsed.search === '' && parsed.hash === '') return text
  throw new UsageError(`an http or https URL such as ${DEFAULT_URL}`)
}

export const urlOption = option('URL', url, `where the service is (default: $SCROLLBACK_URL, or ${DEFAULT_URL})`)

export const sessionId: Reader<string> = (text) => {
  if (isSessionId(text)) return text
  throw new UsageError('a session id: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -')
}

export const sessionOperand: Operand = { name: 'ID', help: 'id of the session', read: sessionId }

/** Calls `use` with a client that is closed afterwards. Each request is sent once unless `retry` says otherwise. */
export async function withClient<Result>(
  given: string | undefined,
  around: Surroundings,
  use: (client: HistoryClient) => Promise<Result>,
  retry: Partial<RetryOptions> = { tries: 1 },
): Promise<Result> {
  const client = new HistoryClient({ baseUrl: given ?? environmentUrl(around), lineBytes: LINE_BYTES, retry })
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}

function environmentUrl({ environment }: Surroundings): string {
  const text = environment.SCROLLBACK_URL
  if (text === undefined || text === '') return DEFAULT_URL
  try {
    return url(text)
  } catch (error) {
    throw new UsageError(`SCROLLBACK_URL expects ${(error as Error).message}, got ${JSON.stringify(text)}`)
  }
}
