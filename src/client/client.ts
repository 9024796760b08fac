// Owns the client: where the service is, and the way to its sessions.

import { LIMITS } from '../../codec/index.ts'
import type { Check } from './options.ts'
import { aFunction, anObject, checkOptions, duration, integerOf } from './options.ts'
import type { ReconnectOptions, RetryOptions } from './retry.ts'
import { RECONNECT_DEFAULTS, RETRY_DEFAULTS } from './retry.ts'
import { HistoryReader, SessionClient } from './session.ts'
import { Sessions } from './sessions.ts'
import type { TransportOptions } from './transport.ts'
import { isToken, Transport } from './transport.ts'
import type { Wiring } from './wiring.ts'
import { subagentPath } from './wiring.ts'

export interface HistoryClientOptions extends TransportOptions {
  /** for the requests that are safe to repeat; a body that has begun is never glued to another */
  retry?: Partial<RetryOptions> | undefined
  /** for followed sessions and journals, which connect again as often as it takes */
  reconnect?: Partial<ReconnectOptions> | undefined
  /** the service's limit of a line, where it is not the usual one */
  lineBytes?: number | undefined
}

/** The service at one address. What it opens is ended by `close`. */
export class HistoryClient {
  /** create, list, get, delete, import */
  readonly sessions: Sessions
  readonly #wiring: Wiring

  /** Throws TypeError for a `baseUrl` that is no http URL, and for any other option that is wrong or not known. */
  constructor(options: HistoryClientOptions) {
    const { retry, reconnect, lineBytes = LIMITS.lineBytes, ...rest } = checkOptions('HistoryClient', options, CHECKS)
    this.#wiring = {
      transport: new Transport(rest),
      retry: withDefaults('HistoryClient retry', RETRY_DEFAULTS, retry, RETRY_CHECKS),
      reconnect: withDefaults('HistoryClient reconnect', RECONNECT_DEFAULTS, reconnect, RECONNECT_CHECKS),
      lineBytes,
    }
    this.sessions = new Sessions(this.#wiring)
  }

  /** Throws TypeError for text that cannot name a session. */
  session(id: string): SessionClient {
    return new SessionClient(this.#wiring, id)
  }

  /** A child, read through its direct parent. Throws TypeError likewise. */
  subagent(parent: string, child: string): HistoryReader {
    return new HistoryReader(this.#wiring, subagentPath(parent, child))
  }

  /** Ends what runs, with ClientError `client/closed` for those who wait for it. A `dispatcher` that was given stays open. */
  async close(): Promise<void> {
    await this.#wiring.transport.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

const aUrl: Check = (value) => (typeof value === 'string' || value instanceof URL ? undefined : 'a URL')

const aToken: Check = (value) => {
  const good = typeof value === 'function' || (typeof value === 'string' && isToken(value))
  return good ? undefined : 'a function, or a text that can stand in a header'
}

const aDispatcher: Check = (value) => {
  return typeof (value as { dispatch?: unknown } | null)?.dispatch === 'function' ? undefined : 'a dispatcher of undici'
}

const CHECKS = {
  baseUrl: aUrl,
  token: aToken,
  dispatcher: aDispatcher,
  timeouts: durations('connect', 'headers', 'body'),
  retry: anObject,
  reconnect: anObject,
  lineBytes: integerOf(1),
}

const RETRY_CHECKS = {
  tries: integerOf(1),
  firstDelay: duration,
  longestDelay: duration,
  longestRetryAfter: duration,
  onRetry: aFunction,
}

const RECONNECT_CHECKS = { firstDelay: duration, longestDelay: duration, silence: integerOf(1, 2 ** 31 - 1) }

function durations(...names: string[]): Check {
  return (value) => {
    const good =
      typeof value === 'object' &&
      value !== null &&
      Object.entries(value).every(([name, each]) => names.includes(name) && (each === undefined || !duration(each)))
    return good ? undefined : `an object of milliseconds: ${names.join(', ')}`
  }
}

/** An option that is given as undefined was not given. */
function withDefaults<Options extends object>(
  where: string,
  defaults: Options,
  given: Partial<Options> | undefined,
  checks: { readonly [Name in keyof Options]: Check },
): Options {
  const checked = checkOptions(where, given ?? {}, checks as Record<string, Check>)
  const entries = Object.entries(checked).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(entries) }
}
