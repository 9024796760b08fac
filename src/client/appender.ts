// Owns appending: always in a form that the service recognises when it comes twice, and in the order of the calls.

import type { AppendResult } from '../../codec/index.ts'
import { unlessAborted } from './abort.ts'
import type { SessionHead } from './answers.ts'
import { readAppendResult } from './answers.ts'
import type { AppendItem, AppendLines } from './append-lines.ts'
import { encodeAppend } from './append-lines.ts'
import { AnswerError, ServiceError } from './errors.ts'
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
  #turn: Promise<unknown> = Promise.resolve()

  constructor(wiring: Wiring, path: string, askHead: (signal: AbortSignal | undefined) => Promise<SessionHead>) {
    this.#wiring = wiring
    this.#path = path
    this.#askHead = askHead
  }

  async append(events: Iterable<AppendItem> | AppendLines, options: AppendOptions): Promise<AppendResult> {
    const checks = { expectedSeq: exclusiveSeq, epoch: anEpoch, signal: aSignal }
    const { expectedSeq, epoch, signal } = checkOptions('append()', options, checks)
    // At once, so that nobody can change them while they wait for their turn.
    const lines = Symbol.iterator in events ? encodeAppend(events) : events
    const first = lines.expectedSeq ?? expectedSeq
    if (lines.numbered) return this.#send(lines, { epoch, signal })
    if (first !== undefined) return this.#send(lines, { expectedSeq: first, epoch, signal })
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
    try {
      const result = await this.#send(lines, { expectedSeq: seq, epoch: guard, signal })
      this.#next = { seq: Math.max(result.head + 1, seq + lines.events), epoch: result.epoch }
      return result
    } catch (error) {
      if (error instanceof ServiceError && ELSEWHERE.has(error.code)) this.#next = undefined
      throw error
    }
  }

  async #send(batch: AppendLines, options: AppendOptions): Promise<AppendResult> {
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
    const attempt = async () => readAppendResult(await transport.document(request))
    const result = await withRetries(request, attempt, retry, signal)
    if (result.appended + result.duplicates === batch.events) return result
    throw AnswerError.malformed(
      `${batch.events} events were sent, and the answer counts ${result.appended} appended and ${result.duplicates} duplicates`,
    )
  }

  /** After the appends that were called before, however they end. */
  async #inTurn<Value>(signal: AbortSignal | undefined, work: () => Promise<Value>): Promise<Value> {
    const before = this.#turn
    const { promise: done, resolve } = Promise.withResolvers<void>()
    // An append that gives up while it waits must not let the next one pass those before it.
    this.#turn = before.then(() => done)
    try {
      await unlessAborted(before, signal)
      return await work()
    } finally {
      resolve()
    }
  }
}
