// Owns trying again: whether a request is safe to repeat, how long to wait, and the loop.

import { setTimeout as sleep } from 'node:timers/promises'
import { NetworkError, ServiceError } from './errors.ts'

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
  if (!SAFE_METHODS.has(request.method) && request.repeatable !== true) return false
  if (error instanceof NetworkError) return true
  return error instanceof ServiceError && (error.status >= 500 || PASSING_STATUS.has(error.status))
}

/**
 * Milliseconds to wait before the n-th repetition (n from 1), or undefined when the service asks for too long a wait.
 * Full jitter: clients that failed together must not come back together. What the service asks for comes on top.
 */
export function retryDelay(n: number, error: unknown, options: RetryOptions, random: () => number): number | undefined {
  const jitter = random() * Math.min(options.longestDelay, options.firstDelay * 2 ** (n - 1))
  const asked = error instanceof ServiceError ? (error.retryAfter ?? 0) : 0
  return asked > options.longestRetryAfter ? undefined : asked * 1000 + jitter
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

async function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(milliseconds, undefined, signal ? { signal } : {})
  } catch (error) {
    throw signal?.aborted ? signal.reason : error
  }
}
