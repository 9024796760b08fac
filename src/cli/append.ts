// Owns `scrollback append`: events from a stream to a session, in requests that can be repeated without doubling anything.

import type { AppendResult } from '../../codec/index.ts'
import { Problem } from '../../codec/index.ts'
import type { RetryOptions, SessionClient, SessionHead } from '../client/index.ts'
import { ServiceError } from '../client/index.ts'
import type { Terminal } from './command.ts'
import { command } from './command.ts'
import type { BatchLimits, EventBatch } from './event-batches.ts'
import { readEventBatches } from './event-batches.ts'
import { describeFailure, InputLineError } from './failure.ts'
import { openInput } from './input.ts'
import { flag, integer, option } from './options.ts'
import { LINE_BYTES, sessionOperand, urlOption, withClient } from './service.ts'

const BATCH: BatchLimits = { bytes: 1024 * 1024, lines: 1000, pause: 200, lineBytes: LINE_BYTES }
const TRIES = 8

export const appendCommand = command({
  shape: {
    name: 'append',
    about: [
      'Appends events to a session, one JSON event or record a line, and sends what there is when the input pauses.',
      'Events without "seq" are numbered after the last one of the session; only one such writer at a time can succeed.',
      'Tries again when the service is away or busy, and never doubles an event by that.',
      'Writes a line {"head","appended","duplicates"} for each batch that is stored for good.',
    ].join('\n'),
    operands: [sessionOperand, { name: 'FILE', help: 'file of events, or - for standard input' }],
    options: {
      create: flag('make the session when it is not there'),
      'expected-seq': option(
        'SEQ',
        integer(0),
        'number events without "seq" from here; running it again with\nthe same number adds nothing twice',
      ),
      tries: option('N', integer(1, 1000), `send a batch at most this often (default ${TRIES})`),
      url: urlOption,
    },
  },
  async run(values, [id, file], around) {
    const { terminal, signal } = around
    const retry = { tries: values.tries ?? TRIES, onRetry: noteRetry(terminal) }
    return withClient(
      values.url,
      around,
      async (client) => {
        const session = client.session(id as string)
        const start = await (values.create ? client.sessions.create(session.id, {}, signal) : session.head(signal))
        const appender = new Appender(session, start, values['expected-seq'], signal)
        const input = await openInput(file as string, around)
        try {
          for await (const batch of readEventBatches(input.bytes, BATCH)) {
            const { head, appended, duplicates } = await appender.append(batch)
            await around.output.tell({ head, appended, duplicates })
          }
        } catch (error) {
          throw error instanceof Problem ? new InputLineError(error, error.facts.line) : error
        } finally {
          input.close()
        }
        return 0
      },
      retry,
    )
  },
})

/** Sends batches in order. Every one can be repeated: its events carry their seq, or it says where they belong. */
class Appender {
  readonly #session: SessionClient
  /** a session that was deleted and made again must not get the rest of a stream */
  readonly #epoch: string
  readonly #signal: AbortSignal
  #nextSeq: number

  constructor(session: SessionClient, start: SessionHead, nextSeq: number | undefined, signal: AbortSignal) {
    this.#session = session
    this.#epoch = start.epoch
    this.#nextSeq = nextSeq ?? start.head + 1
    this.#signal = signal
  }

  async append(batch: EventBatch): Promise<AppendResult> {
    const { lines, events, numbered, places } = batch
    const expectedSeq = numbered ? undefined : this.#nextSeq
    try {
      const options = { epoch: this.#epoch, signal: this.#signal }
      const result = await this.#session.append({ lines, events, numbered, expectedSeq }, options)
      // Events without a seq come after the line before them, wherever the head is: so a second run finds them again.
      this.#nextSeq = numbered ? batch.nextSeq : this.#nextSeq + events
      return result
    } catch (error) {
      const line = error instanceof ServiceError ? error.facts.line : undefined
      throw line === undefined ? error : new InputLineError(error, places[line - 1])
    }
  }
}

function noteRetry(terminal: Terminal): RetryOptions['onRetry'] {
  return (error, delay) => {
    terminal.write(`scrollback: ${describeFailure(error)}; trying again in ${(delay / 1000).toFixed(2)} s\n`)
  }
}
