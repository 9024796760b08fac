// Owns what the parts of a client share, and where the sessions are.

import { checkSessionId } from './options.ts'
import type { ReconnectOptions, RetryOptions } from './retry.ts'
import type { ServiceAnswer, Transport } from './transport.ts'

/** What the parts of a client share. */
export interface Wiring {
  readonly transport: Transport
  readonly retry: RetryOptions
  readonly reconnect: ReconnectOptions
  /** limit of a line, as the service has it */
  readonly lineBytes: number
}

/** Throws TypeError for text that cannot name a session. */
export function sessionPath(id: string): string {
  return `/v1/sessions/${encodeURIComponent(checkSessionId(id))}`
}

/** Throws TypeError likewise. */
export function subagentPath(parent: string, child: string): string {
  return `${sessionPath(parent)}/subagents/${encodeURIComponent(checkSessionId(child))}`
}

/** An answer whose headers are refused must not keep its connection. */
export function openedAnswer<Opened>(answer: ServiceAnswer, open: () => Opened): Opened {
  try {
    return open()
  } catch (error) {
    answer.discard()
    throw error
  }
}
