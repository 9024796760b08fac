// Owns cutting a stream of events into requests: by size, by count, where numbering begins or ends, and when the stream
// pauses, so that a slow producer's events do not wait for a full batch.

import { setTimeout as sleep } from 'node:timers/promises'
import type { InputItem } from '../../codec/index.ts'
import { LineDecoder, Problem, parseInputLine, rowFragments, utf8Bytes } from '../../codec/index.ts'

/** Lines that can go in one request. */
export interface EventBatch {
  /** newlines included */
  readonly lines: string
  /** events in them, members of rows counted */
  readonly events: number
  /** whether they carry their seq */
  readonly numbered: boolean
  /** the seq after the last one; 0 when they carry none */
  readonly nextSeq: number
  /** the line of the input that each line was, from 1 */
  readonly places: readonly number[]
}

export interface BatchLimits {
  /** a longer line goes alone */
  readonly bytes: number
  readonly lines: number
  /** milliseconds without input after which what is there is sent */
  readonly pause: number
  /** of one line */
  readonly lineBytes: number
}

/**
 * Throws Problem `event/invalid`, `record/malformed` or `request/too-large` with `line` for a line that cannot be
 * appended, once the batches of the lines before it were given.
 */
export async function* readEventBatches(
  input: AsyncIterable<Uint8Array>,
  limits: BatchLimits,
): AsyncGenerator<EventBatch> {
  const decoder = new LineDecoder({ lineBytes: limits.lineBytes })
  const open = new OpenBatch(limits)
  try {
    for await (const bytes of withPauses(input, limits.pause, () => !open.isEmpty)) {
      if (bytes === undefined) yield open.take()
      else for (const line of decoder.feed(bytes)) yield* open.add(line.text, line.line)
    }
    for (const line of decoder.end()) yield* open.add(line.text, line.line)
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    if (!open.isEmpty) yield open.take()
    throw error
  }
  if (!open.isEmpty) yield open.take()
}

/** The pieces of a stream, and undefined each time when none came for a while and `waiting` says that it matters. */
async function* withPauses(
  input: AsyncIterable<Uint8Array>,
  pause: number,
  waiting: () => boolean,
): AsyncGenerator<Uint8Array | undefined> {
  // Whoever opened the stream closes it: ending the iterator would wait for the piece that is on its way.
  const iterator = input[Symbol.asyncIterator]()
  let next = iterator.next()
  for (;;) {
    // It may fail while a batch is being sent and nobody waits for it; it is waited for afterwards.
    next.catch(() => {})
    const result = waiting() ? await within(next, pause) : await next
    if (result?.done) return
    yield result?.value
    if (result) next = iterator.next()
  }
}

async function within<Value>(promise: Promise<Value>, milliseconds: number): Promise<Value | undefined> {
  const stop = new AbortController()
  const timer = sleep(milliseconds, undefined, { signal: stop.signal })
  timer.catch(() => {})
  try {
    return await Promise.race([promise, timer])
  } finally {
    stop.abort()
  }
}

/** The batch that is being filled. */
class OpenBatch {
  readonly #limits: BatchLimits
  #lines: string[] = []
  #places: number[] = []
  #bytes = 0
  #events = 0
  #numbered = false
  #nextSeq = 0

  constructor(limits: BatchLimits) {
    this.#limits = limits
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0
  }

  /** Gives the batch before this line, when the line begins another one. */
  *add(text: string, place: number): Generator<EventBatch> {
    const item = readItem(text, place, this.#limits.lineBytes)
    const numbered = item.kind === 'row' || item.event.seq !== undefined
    const bytes = utf8Bytes(text) + 1
    const { bytes: mostBytes, lines: mostLines } = this.#limits
    const full = this.#bytes + bytes > mostBytes || this.#lines.length >= mostLines
    if (!this.isEmpty && (full || numbered !== this.#numbered)) yield this.take()
    this.#numbered = numbered
    this.#lines.push(text)
    this.#places.push(place)
    this.#bytes += bytes
    const events = item.kind === 'row' ? rowFragments(item.row).length : 1
    this.#events += events
    this.#nextSeq = item.kind === 'row' ? item.row.seq + events : (item.event.seq ?? -1) + 1
  }

  take(): EventBatch {
    const batch = {
      lines: `${this.#lines.join('\n')}\n`,
      events: this.#events,
      numbered: this.#numbered,
      nextSeq: this.#nextSeq,
      places: this.#places,
    }
    this.#lines = []
    this.#places = []
    this.#bytes = 0
    this.#events = 0
    return batch
  }
}

function readItem(text: string, line: number, lineBytes: number): InputItem {
  try {
    return parseInputLine(text, { lineBytes })
  } catch (error) {
    throw error instanceof Problem ? error.withFacts({ line }) : error
  }
}
