// Owns the options by which a command finds the service and a session, and the client made from them.

import type { SessionHeader } from '../../codec/index.ts'
import { isSessionId, SESSION_ID_WORDS } from '../../codec/index.ts'
import type { HistoryReader, RetryOptions } from '../client/index.ts'
import { ClientError, HistoryClient, ServiceError } from '../client/index.ts'
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
  throw new UsageError(SESSION_ID_WORDS)
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

/** Calls `use` with the session, or with the subagent of a parent; where the parent should have been given, says so. */
export async function withReader<Result>(
  client: HistoryClient,
  id: string,
  parent: string | undefined,
  use: (session: HistoryReader) => Promise<Result>,
): Promise<Result> {
  try {
    return await use(parent === undefined ? client.session(id) : client.subagent(parent, id))
  } catch (error) {
    if (parent !== undefined || !(error instanceof ServiceError) || error.code !== 'session/not-found') throw error
    // A subagent is described by its own id, though it is read through its parent only.
    const header: SessionHeader | undefined = await client.sessions.get(id).then(
      (session) => session.header,
      () => undefined,
    )
    if (header?.origin !== 'subagent' || header.parentSession === undefined) throw error
    throw new ClientError(error.code, `${id} is a subagent; read it with --parent ${header.parentSession}`, {
      cause: error,
    })
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
