// Owns a contiguous part of a log as it is read over one answer: asking for it, and proving that it came whole.

import type { ChunksMode, SessionHistoryRecord } from '../../codec/index.ts'
import type { PageHeaders } from './answers.ts'
import { readPageHeaders } from './answers.ts'
import { AnswerError } from './errors.ts'
import type { Checks } from './options.ts'
import { anEpoch, aSignal, chunksMode, exclusiveSeq, inclusiveSeq, messageCount } from './options.ts'
import type { RecordLine } from './record-lines.ts'
import { readRecordLines } from './record-lines.ts'
import { withRetries } from './retry.ts'
import type { ServiceAnswer } from './transport.ts'
import { NDJSON } from './transport.ts'
import type { Wiring } from './wiring.ts'
import { openedAnswer } from './wiring.ts'

export interface PageOptions {
  /** the page ends before this seq */
  beforeSeq?: number | undefined
  /** the page goes no further than this seq */
  throughSeq?: number | undefined
  maxMessages?: number | undefined
  chunks?: ChunksMode | undefined
  epoch?: string | undefined
  signal?: AbortSignal | undefined
}

export interface RangeOptions {
  /** default 0 */
  fromSeq?: number | undefined
  /** exclusive; default after the last event */
  toSeq?: number | undefined
  chunks?: ChunksMode | undefined
  epoch?: string | undefined
  signal?: AbortSignal | undefined
}

export const PAGE_CHECKS: Checks<PageOptions> = {
  beforeSeq: exclusiveSeq,
  throughSeq: inclusiveSeq,
  maxMessages: messageCount,
  chunks: chunksMode,
  epoch: anEpoch,
  signal: aSignal,
}

export const RANGE_CHECKS: Checks<RangeOptions> = {
  fromSeq: exclusiveSeq,
  toSeq: exclusiveSeq,
  chunks: chunksMode,
  epoch: anEpoch,
  signal: aSignal,
}

/** A contiguous part of a log whose body is open. It is read once, or cancelled. */
export class HistoryPage {
  readonly epoch: string
  /** inclusive */
  readonly from: number
  /** exclusive */
  readonly to: number
  readonly hasMore: boolean
  /** last seq of the log, when the end was not asked for */
  readonly head: number | undefined
  readonly #answer: ServiceAnswer
  readonly #lineBytes: number

  constructor(headers: PageHeaders, answer: ServiceAnswer, lineBytes: number) {
    this.epoch = headers.epoch
    this.from = headers.from
    this.to = headers.to
    this.hasMore = headers.hasMore
    this.head = headers.head
    this.#answer = answer
    this.#lineBytes = lineBytes
  }

  /** The records, checked; reading ends in an AnswerError or NetworkError unless they cover `[from, to)`. */
  get records(): AsyncIterable<SessionHistoryRecord> {
    return this.#records()
  }

  /** The same with their texts, as many at a time as arrived together. */
  lines(): AsyncGenerator<RecordLine[]> {
    return readRecordLines(this.#answer.body(), this, this.#lineBytes)
  }

  cancel(): void {
    this.#answer.discard()
  }

  async *#records(): AsyncGenerator<SessionHistoryRecord> {
    for await (const lines of this.lines()) for (const { record } of lines) yield record
  }
}

/** The newest page of the resource at `path`, or the one before a cursor. */
export async function openPage(wiring: Wiring, path: string, options: PageOptions): Promise<HistoryPage> {
  const { beforeSeq = Number.POSITIVE_INFINITY, throughSeq = Number.POSITIVE_INFINITY, epoch } = options
  const page = await open(wiring, `${path}/history`, options)
  return checked(page, { to: Math.min(beforeSeq, throughSeq + 1), epoch })
}

/** The log of the resource at `path` from one seq to another. */
export async function openRange(wiring: Wiring, path: string, options: RangeOptions): Promise<HistoryPage> {
  const { fromSeq: from = 0, toSeq: to = Number.POSITIVE_INFINITY, epoch } = options
  const page = await open(wiring, `${path}/events`, options)
  return checked(page, { from, to, epoch })
}

async function open(wiring: Wiring, path: string, options: PageOptions | RangeOptions): Promise<HistoryPage> {
  const { transport, retry, lineBytes } = wiring
  const { signal, ...query } = options
  const request = { method: 'GET', path, query, accept: NDJSON, signal } as const
  const answer = await withRetries(request, () => transport.request(request), retry, signal)
  return openedAnswer(answer, () => new HistoryPage(readPageHeaders(answer.header), answer, lineBytes))
}

/** An answer to another question than the one that was asked is an error. */
function checked(page: HistoryPage, asked: { from?: number; to: number; epoch: string | undefined }): HistoryPage {
  let wrong: string | undefined
  if (asked.from !== undefined && page.from !== asked.from) wrong = `begins at seq ${page.from}, not at ${asked.from}`
  else if (asked.to !== Number.POSITIVE_INFINITY && page.to !== asked.to) {
    wrong = `ends before seq ${page.to}, not before ${asked.to}`
  } else if (asked.epoch !== undefined && page.epoch !== asked.epoch) {
    wrong = `is of the epoch ${page.epoch}, not of ${asked.epoch}`
  }
  if (wrong === undefined) return page
  page.cancel()
  throw AnswerError.malformed(`the answer ${wrong}`)
}
