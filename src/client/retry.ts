// Owns trying again: whether a request is safe to repeat, what a follower does about a loss, how long to wait, the loop.

import { setTimeout as sleep } from 'node:timers/promises'
import { AnswerError, NetworkError, ServiceError, StreamEndedError, TokenError } from './errors.ts'

export interface RetryOptions {
  /** how often a request is sent at most; 1 is never again */
  tries: number
  /** milliseconds: the wait before the n-th repetition is random, up to this times 2^(n-1) */
  firstDelay: number
  /** milliseconds: the most that a random wait grows to */
  longestDelay: number
  /** seconds: a service that asks for more patience than this is given up */
  longestRetryAfter: number
  /** told before each wait, in milliseconds */
  onRetry: ((error: Error, delay: number) => void) | undefined
}

export const RETRY_DEFAULTS: RetryOptions = {
  tries: 6,
  firstDelay: 200,
  longestDelay: 10_000,
  longestRetryAfter: 60,
  onRetry: undefined,
}

/** How a follower connects again, for as long as it takes. Milliseconds, each. */
export interface ReconnectOptions {
  /** the wait before the n-th try in a row is random, up to this times 2^(n-1) */
  firstDelay: number
  /** the most that a random wait grows to */
  longestDelay: number
  /** Of silence, after which a connection is taken for lost. The service sends something every 15 s by itself. */
  silence: number
}

export const RECONNECT_DEFAULTS: ReconnectOptions = { firstDelay: 500, longestDelay: 10_000, silence: 37_500 }

/** What decides whether a request may be sent twice. */
export interface Repeatability {
  readonly method: string
  /** for a method that is not safe in itself: the service recognises the repetition */
  readonly repeatable?: boolean | undefined
}

/** GET and HEAD change nothing; a PUT that repeats finds what it made. A DELETE might meet the next session of that id. */
const SAFE_METHODS = new Set(['GET', 'HEAD', 'PUT'])
const PASSING_STATUS = new Set([408, 425, 429])

/** Whether the request may be sent again after this error, and whether that may help. The one place that says so. */
export function mayRepeat(request: Repeatability, error: unknown): boolean {
  if (error instanceof NetworkError && error.code === 'network/unreachable') return true
  if (error instanceof TokenError) return true
  if (!SAFE_METHODS.has(request.method) && request.repeatable !== true) return false
  return isPassing(error)
}

/** Whether the same request may have another outcome later. */
function isPassing(error: unknown): boolean {
  if (error instanceof NetworkError || error instanceof TokenError) return true
  return error instanceof ServiceError && (error.status >= 500 || PASSING_STATUS.has(error.status))
}

/** What a follower does: connect again from its cursor, start over without one, or stop: all is read, or it failed. */
export type AfterLoss = 'again' | 'over' | 'ended' | 'failed'

/** What a follower was about when it met an error. */
export interface LossContext {
  /** a cursor was sent with the request */
  readonly resuming: boolean
  /** the session was there at an earlier connection */
  readonly known: boolean
  /** the answer before could not be believed either, and nothing new came in between */
  readonly distrusted: boolean
}

/** What to do about the end of a followed stream. The one place that says so. */
export function afterLoss(error: unknown, { resuming, known, distrusted }: LossContext): AfterLoss {
  if (error instanceof StreamEndedError || isPassing(error)) return 'again'
  // One answer may have been spoilt on the way; a service that goes on like this will not get better.
  if (error instanceof AnswerError) return error.code === 'answer/malformed' && distrusted ? 'failed' : 'again'
  if (!(error instanceof ServiceError)) return 'failed'
  if (resuming && (error.code === 'session/replaced' || error.code === 'history/ahead')) return 'over'
  return error.status === 404 && known ? 'ended' : 'failed'
}

/** Milliseconds to wait before the n-th repetition (n from 1), or undefined when the service asks for too long a wait. */
export function retryDelay(n: number, error: unknown, options: RetryOptions, random: () => number): number | undefined {
  return askedBy(error) > options.longestRetryAfter ? undefined : reconnectDelay(n, error, options, random)
}

/**
 * The same for a follower, which has all the time that the service asks for. Full jitter: clients that failed together
 * must not come back together. What the service asks for comes on top.
 */
export function reconnectDelay(
  n: number,
  error: unknown,
  { firstDelay, longestDelay }: Pick<ReconnectOptions, 'firstDelay' | 'longestDelay'>,
  random: () => number,
): number {
  return askedBy(error) * 1000 + random() * Math.min(longestDelay, firstDelay * 2 ** Math.min(n - 1, 50))
}

/** Seconds that the service asks to be left alone for. */
function askedBy(error: unknown): number {
  return error instanceof ServiceError ? (error.retryAfter ?? 0) : 0
}

/** Calls `attempt` until it succeeds or must not be tried again. Throws the last error, or the signal's reason. */
export async function withRetries<Result>(
  request: Repeatability,
  attempt: () => Promise<Result>,
  options: RetryOptions,
  signal?: AbortSignal,
): Promise<Result> {
  for (let n = 1; ; n++) {
    try {
      return await attempt()
    } catch (error) {
      if (n >= options.tries || signal?.aborted || !mayRepeat(request, error)) throw error
      const delay = retryDelay(n, error, options, Math.random)
      if (delay === undefined) throw error
      options.onRetry?.(error as Error, delay)
      await pause(delay, signal)
    }
  }
}

/** A timer that is asked for more would go off at once. */
const LONGEST_TIMER = 2 ** 31 - 1

/** Milliseconds. Throws the signal's reason, at once. */
export async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(Math.min(milliseconds, LONGEST_TIMER), undefined, signal ? { signal } : {})
  } catch (error) {
    throw signal?.aborted ? signal.reason : error
  }
}
