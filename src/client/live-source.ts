// Owns the connection of a follower: what one brings, and how another is made when it is lost. What the records mean to
// the reader is the reader's business, and so is where to go on: it is asked for its place at each connection.

import type { ChunksMode, NumberedLine } from '../../codec/index.ts'
import { LIMITS, LineDecoder, Problem } from '../../codec/index.ts'
import type { PageHeaders } from './answers.ts'
import { readPageHeaders } from './answers.ts'
import { AnswerError, ServiceError, StreamEndedError } from './errors.ts'
import { watchSilence } from './idle-watch.ts'
import type { RecordLine } from './record-lines.ts'
import { fromCodec, parseLine, recordOf } from './record-lines.ts'
import type { ReconnectOptions } from './retry.ts'
import { afterLoss, pause, reconnectDelay } from './retry.ts'
import type { Transport } from './transport.ts'
import { NDJSON } from './transport.ts'

/** Where a connection begins. Without `afterSeq` it is the newest page. */
export interface FollowPlace {
  /** the last seq that the reader has; -1 for the beginning */
  readonly afterSeq?: number | undefined
  /** of the log that it was read from */
  readonly epoch?: string | undefined
  readonly maxMessages?: number | undefined
  readonly chunks?: ChunksMode | undefined
}

/** What a reader does with what its connections bring. Each step gives what the reader's own reader is to be told. */
export interface LiveReader<Told> {
  /** asked at each connection */
  place(): FollowPlace
  /** The headers of a connection's opening part. */
  opened(page: PageHeaders): Iterable<Told>
  /** What it throws is an error of the answer: the connection is given up, and the reader asked for its place again. */
  take(lines: RecordLine[]): AsyncIterable<Told>
  /** The connection is gone: what was held back until something was complete is told now. */
  settle(): Iterable<Told>
  /** Another connection is made after a wait; `error` says why. */
  lost(error: Error): Iterable<Told>
  /** The log at the place is another one, or shorter: the next place must be one without cursor. */
  startOver(error: Error): Iterable<Told>
  /** There is nothing more to come: the session was deleted. */
  ended(): Iterable<Told>
  /** Nothing more is tried. */
  failed(error: Error): Iterable<Told>
}

export interface LiveOptions {
  readonly transport: Transport
  /** of the resource that is followed */
  readonly path: string
  readonly lineBytes: number
  readonly reconnect: ReconnectOptions
  readonly signal: AbortSignal
}

/**
 * Follows until the session is deleted, something fails for good, or the signal is aborted, whose reason it throws.
 * It reads only as fast as it is read. While it waits for its reader there is a connection, and never a timer.
 */
export async function* followLive<Told>(reader: LiveReader<Told>, options: LiveOptions): AsyncGenerator<Told> {
  const { reconnect, signal } = options
  const progress = new Progress()
  let known = false
  for (;;) {
    const place = reader.place()
    progress.begin(place)
    let resuming = place.afterSeq !== undefined
    let failure: Error
    try {
      const connection = await connect(place, options)
      known = true
      resuming = true
      try {
        yield* reader.opened(connection.page)
        failure = yield* read(connection, reader, progress)
      } finally {
        connection.discard()
      }
    } catch (error) {
      signal.throwIfAborted()
      failure = error as Error
    }
    yield* reader.settle()
    if (failure instanceof StreamEndedError && failure.reason === 'deleted') return yield* reader.ended()
    progress.look(reader.place())
    const next = afterLoss(failure, { resuming, known, distrusted: progress.isDistrusted })
    if (next === 'ended') return yield* reader.ended()
    if (next === 'failed') return yield* reader.failed(failure)
    const failures = progress.failed(failure)
    // A log that is another one is no fault of the service, and the first try without a cursor need not wait.
    const delay = reconnectDelay(next === 'over' ? failures - 1 : failures, failure, reconnect, Math.random)
    yield* next === 'over' ? reader.startOver(failure) : reader.lost(failure)
    if (next === 'again' || failures > 1) await pauseWith(options, delay)
  }
}

/** A client that is closed ends the wait too. */
async function pauseWith({ transport, signal }: LiveOptions, delay: number): Promise<void> {
  const waiting = transport.start(signal)
  try {
    await pause(delay, waiting.signal)
  } finally {
    waiting.end()
  }
}

/** Gives what the connection brings. Returns why it ended. */
async function* read<Told>(
  connection: Connection,
  reader: LiveReader<Told>,
  progress: Progress,
): AsyncGenerator<Told, Error> {
  for await (const step of connection.steps) {
    if (step instanceof StreamEndedError) return step
    // A beat says that the service is well, also where nothing happens.
    if (step === 'beat') progress.made()
    else yield* reader.take(step)
    progress.look(reader.place())
  }
  return AnswerError.incomplete('the stream ended without saying so')
}

/** Counts what went wrong since something last went well. */
class Progress {
  #place: FollowPlace = {}
  #failures = 0
  #distrusted = false

  /** Whether an answer could not be believed since something last went well. */
  get isDistrusted(): boolean {
    return this.#distrusted
  }

  begin(place: FollowPlace): void {
    this.#place = place
  }

  look(place: FollowPlace): void {
    const { afterSeq, epoch } = this.#place
    if (place.afterSeq === afterSeq && place.epoch === epoch) return
    this.#place = place
    this.made()
  }

  made(): void {
    this.#failures = 0
    this.#distrusted = false
  }

  /** How many in a row there are now. */
  failed(error: Error): number {
    if (error instanceof AnswerError && error.code === 'answer/malformed') this.#distrusted = true
    this.#failures++
    return this.#failures
  }
}

type Step = RecordLine[] | 'beat' | StreamEndedError

interface Connection {
  readonly page: PageHeaders
  readonly steps: AsyncGenerator<Step>
  discard(): void
}

async function connect(place: FollowPlace, options: LiveOptions): Promise<Connection> {
  const connection = await open(place, options)
  const { afterSeq = -1, maxMessages } = place
  const { from, to } = connection.page
  if (maxMessages === undefined || from > afterSeq || to <= afterSeq) return connection
  // The newest page, a group of which reaches back behind the place: a row of it may be in part old. All that comes after
  // the place is less than this page.
  connection.discard()
  return open({ ...place, maxMessages: undefined }, options)
}

async function open(place: FollowPlace, options: LiveOptions): Promise<Connection> {
  const { transport, path, lineBytes, reconnect, signal } = options
  const { afterSeq, epoch, maxMessages, chunks } = place
  const answer = await transport.request({
    method: 'GET',
    path: `${path}/follow`,
    query: { afterSeq, epoch, maxMessages, chunks },
    accept: NDJSON,
    // A quiet session is no broken one. The silence is watched here, where a heartbeat counts and a slow reader does not.
    bodyTimeout: 0,
    headersTimeout: reconnect.silence,
    signal,
  })
  try {
    const page = readPageHeaders(answer.header)
    if (epoch !== undefined && page.epoch !== epoch) throw otherEpoch(page.epoch, epoch)
    const body = watchSilence(answer.body(), reconnect.silence, answer.discard)
    return { page, steps: readSteps(body, lineBytes), discard: answer.discard }
  } catch (error) {
    answer.discard()
    throw error
  }
}

/** A service that passes over the epoch that it was asked for has told all the same that the log is another one. */
function otherEpoch(epoch: string, asked: string): ServiceError {
  return new ServiceError(
    409,
    'session/replaced',
    `the log is of the epoch ${epoch}, not of ${asked}`,
    { epoch },
    undefined,
  )
}

async function* readSteps(body: AsyncIterable<Uint8Array>, lineBytes: number): AsyncGenerator<Step> {
  const decoder = new LineDecoder({ lineBytes: lineBytes + LIMITS.readerExtraBytes })
  for await (const bytes of body) {
    const lines = fromCodec(() => decoder.feed(bytes))
    // Blank lines alone, the last one whole.
    if (lines.length === 0 && decoder.pendingBytes === 0) yield 'beat'
    yield* readLines(lines)
  }
  yield* readLines(lastLine(decoder))
}

/** Stops at the end that a line announces, whatever follows it. What was good before a bad line is given first. */
function* readLines(lines: NumberedLine[]): Generator<Step> {
  let records: RecordLine[] = []
  for (const line of lines) {
    let end: StreamEndedError | undefined
    try {
      const value = parseLine(line)
      end = endOf(value)
      if (!end) records.push({ text: line.text, record: recordOf(value, line) })
    } catch (error) {
      if (records.length > 0) yield records
      throw error
    }
    if (!end) continue
    if (records.length > 0) yield records
    records = []
    yield end
  }
  if (records.length > 0) yield records
}

function endOf(value: unknown): StreamEndedError | undefined {
  const { type, reason } = (value ?? {}) as Record<string, unknown>
  return type === 'end' && typeof reason === 'string' ? new StreamEndedError(reason) : undefined
}

/** The line that no newline followed, if it is whole. Half a line is no lie, but a connection that was lost. */
function lastLine(decoder: LineDecoder): NumberedLine[] {
  try {
    const lines = decoder.end()
    for (const line of lines) parseLine(line)
    return lines
  } catch (cause) {
    if (!(cause instanceof Problem || cause instanceof AnswerError)) throw cause
    throw AnswerError.incomplete('the stream ended inside a line')
  }
}
