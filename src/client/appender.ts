// Owns appending: always in a form that the service recognises when it comes twice, and in the order of the calls.

import type { AppendResult } from '../../codec/index.ts'
import { unlessAborted } from './abort.ts'
import type { SessionHead } from './answers.ts'
import { readAppendResult } from './answers.ts'
import type { AppendItem, AppendLines } from './append-lines.ts'
import { encodeAppend } from './append-lines.ts'
import { AnswerError, AppendError, NetworkError, ServiceError, TokenError } from './errors.ts'
import { anEpoch, aSignal, checkOptions, exclusiveSeq } from './options.ts'
import { withRetries } from './retry.ts'
import { NDJSON } from './transport.ts'
import type { Wiring } from './wiring.ts'

export interface AppendOptions {
  /** the seq that the first event gets, for events that carry none */
  expectedSeq?: number | undefined
  /** the log that is meant; another one is `session/replaced` */
  epoch?: string | undefined
  signal?: AbortSignal | undefined
}

/** Answers after which the number that was used leads nowhere; after any other it may be the number of what is stored. */
const ELSEWHERE = new Set(['append/gap', 'append/conflict', 'session/replaced', 'session/not-found'])

export class Appender {
  readonly #wiring: Wiring
  readonly #path: string
  readonly #askHead: (signal: AbortSignal | undefined) => Promise<SessionHead>
  /** where events without seq go next; undefined: ask */
  #next: { readonly seq: number; readonly epoch: string } | undefined
  /** Whether what was numbered last may be stored: then the same events are recognised, and not those of another writer. */
  #isUncertain = false
  #turn: Promise<unknown> = Promise.resolve()
  /** Appends that have failed in their turn, and what the last of them failed with. */
  #failures = 0
  #failure: unknown

  constructor(wiring: Wiring, path: string, askHead: (signal: AbortSignal | undefined) => Promise<SessionHead>) {
    this.#wiring = wiring
    this.#path = path
    this.#askHead = askHead
  }

  async append(events: Iterable<AppendItem> | AppendLines, options: AppendOptions): Promise<AppendResult> {
    const checks = { expectedSeq: exclusiveSeq, epoch: anEpoch, signal: aSignal }
    const { expectedSeq, epoch, signal } = checkOptions('append()', options, checks)
    // At once, so that nobody can change them while they wait for their turn.
    const lines = isLines(events) ? events : encodeAppend(checkEvents(events))
    const first = lines.expectedSeq ?? expectedSeq
    if (lines.numbered || first !== undefined) {
      const result = await this.#send(lines, { expectedSeq: lines.numbered ? undefined : first, epoch, signal })
      this.#goOnAfter(result)
      return result
    }
    return this.#inTurn(signal, () => this.#number(lines, epoch, signal))
  }

  async #number(lines: AppendLines, epoch: string | undefined, signal: AbortSignal | undefined): Promise<AppendResult> {
    if (this.#next === undefined || (epoch !== undefined && epoch !== this.#next.epoch)) {
      const head = await this.#askHead(signal)
      this.#next = { seq: head.head + 1, epoch: epoch ?? head.epoch }
    }
    const { seq } = this.#next
    // The log that was numbered for: a session that was made again under the id must not get the rest of a stream.
    const guard = this.#next.epoch
    // Whether a try of this very call may have stored them: then duplicates may be its own.
    let mayBeStored = false
    const onUnknown = () => {
      mayBeStored = true
    }
    try {
      const result = await this.#send(lines, { expectedSeq: seq, epoch: guard, signal }, onUnknown)
      if (result.duplicates > 0 && !mayBeStored && !this.#isUncertain) throw takenByAnother(seq, result.head)
      this.#isUncertain = false
      this.#next = { seq: Math.max(result.head + 1, seq + lines.events), epoch: result.epoch }
      return result
    } catch (error) {
      const code = error instanceof ServiceError ? error.code : undefined
      if (code !== undefined && ELSEWHERE.has(code)) {
        this.#next = undefined
        const wasUncertain = this.#isUncertain
        this.#isUncertain = false
        // What stands there is what was appended before with an unknown outcome: these come after it.
        if (wasUncertain && code === 'append/conflict') return this.#number(lines, epoch, signal)
      } else if (mayBeStored) {
        this.#isUncertain = true
      }
      throw error
    }
  }

  /** An append that said itself where its events go has moved the end too. */
  #goOnAfter({ head, epoch }: AppendResult): void {
    if (this.#next?.epoch === epoch && head >= this.#next.seq) this.#next = { seq: head + 1, epoch }
  }

  /** `onUnknown` is told of each try that failed and may have stored them all the same; a refused one has not. */
  async #send(batch: AppendLines, options: AppendOptions, onUnknown: () => void = () => {}): Promise<AppendResult> {
    const { transport, retry } = this.#wiring
    const { expectedSeq, epoch, signal } = options
    const request = {
      method: 'POST',
      path: `${this.#path}/events`,
      query: { expectedSeq, epoch },
      contentType: NDJSON,
      body: batch.lines,
      repeatable: true,
      signal,
    } as const
    const attempt = async () => {
      try {
        return checkCounts(readAppendResult(await transport.document(request)), batch.events)
      } catch (error) {
        if (!isRefusal(error)) onUnknown()
        throw error
      }
    }
    return withRetries(request, attempt, retry, signal)
  }

  /**
   * After the appends that were called before. When one of them fails, its events may be stored or may be appended again:
   * whatever took their place meanwhile would be before them, or make them come twice.
   */
  async #inTurn<Value>(signal: AbortSignal | undefined, work: () => Promise<Value>): Promise<Value> {
    const before = this.#turn
    const failures = this.#failures
    const { promise: done, resolve } = Promise.withResolvers<void>()
    // An append that gives up while it waits must not let the next one pass those before it.
    this.#turn = before.then(() => done)
    try {
      await unlessAborted(before, signal)
      if (this.#failures > failures) throw AppendError.behind(this.#failure)
      return await work().catch((error: unknown) => {
        this.#failures++
        this.#failure = error
        throw error
      })
    } finally {
      resolve()
    }
  }
}

function isLines(events: Iterable<AppendItem> | AppendLines): events is AppendLines {
  return typeof (events as AppendLines | undefined)?.lines === 'string'
}

/** Throws TypeError for what is no list of events. An async one is refused too: an append is one step. */
function checkEvents(events: unknown): Iterable<AppendItem> {
  if (typeof events === 'object' && events !== null && Symbol.iterator in events) return events as Iterable<AppendItem>
  throw new TypeError('append() takes an array of events, or another iterable that is not asynchronous')
}

/** Throws AnswerError for an answer that is not about as many events as were sent. */
function checkCounts(result: AppendResult, sent: number): AppendResult {
  const { appended, duplicates } = result
  if (appended + duplicates === sent) return result
  throw AnswerError.malformed(
    `${sent} events were sent, and the answer counts ${appended} appended and ${duplicates} duplicates`,
  )
}

/** Equal events stand where these were to go, and nobody here has sent them. */
function takenByAnother(seq: number, head: number): ServiceError {
  const detail = `another writer has appended equal events from seq ${seq} on`
  return new ServiceError(409, 'append/conflict', detail, { seq, head }, undefined)
}

/** Nothing of it is stored. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ServiceError) return error.status < 500
  return error instanceof TokenError || (error instanceof NetworkError && error.code === 'network/unreachable')
}
