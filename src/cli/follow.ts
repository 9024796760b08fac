// Owns `scrollback follow`: the records of a session as they come, over as many connections as that takes.

import { CHUNKS_MODES, EPOCH_LENGTH, PAGE_MESSAGES } from '../../codec/index.ts'
import type { FollowedLog, FollowStatus, HistoryReader } from '../client/index.ts'
import type { Terminal } from './command.ts'
import { command } from './command.ts'
import { describeFailure } from './failure.ts'
import { integer, oneOf, option, textOf } from './options.ts'
import { OutputClosed } from './output.ts'
import { sessionId, sessionOperand, urlOption, withClient, withReader } from './service.ts'

export const followCommand = command({
  shape: {
    name: 'follow',
    about: [
      'Writes the newest page of a session, or what comes after a seq, a record a line, and then each event as it comes.',
      'Connects again after a loss and goes on where it was; every record is written once.',
      'Ends when the session is deleted, or when it is stopped.',
    ].join('\n'),
    operands: [sessionOperand],
    options: {
      after: option('SEQ', integer(-1), 'begin after this seq; -1 is the beginning of the log'),
      messages: option(
        'N',
        integer(PAGE_MESSAGES.minimum, PAGE_MESSAGES.maximum),
        `begin with the newest N messages, ${PAGE_MESSAGES.minimum} to ${PAGE_MESSAGES.maximum} (default ${PAGE_MESSAGES.default});\nwith --after, only when there are more than that after it`,
      ),
      chunks: option(
        'MODE',
        oneOf(CHUNKS_MODES),
        'of what is there already: packed (default), expanded, or omit;\nlive events are lines of their own',
      ),
      epoch: option('EPOCH', textOf('the epoch of a page', EPOCH_LENGTH), 'fail unless the log is still this one'),
      parent: option('ID', sessionId, 'the session is a subagent, read through this parent'),
      url: urlOption,
    },
  },
  async run(values, [id], around) {
    const { after: afterSeq, messages: maxMessages, chunks, epoch, parent } = values
    const { output, signal, terminal } = around
    const line = new StatusLine(id as string, terminal)
    const read = async (session: HistoryReader) => {
      const onStatus = (status: FollowStatus, error?: Error) => line.tell(status, log.next, error)
      const log: FollowedLog = session.follow({ afterSeq, maxMessages, chunks, epoch, signal, onStatus })
      try {
        for await (const lines of log.lines()) {
          // A terminal shows both; what is written must not end up behind the status.
          line.clear()
          await output.write(lines.map(({ text }) => `${text}\n`).join(''))
          line.draw(log.next)
        }
      } catch (error) {
        // To be stopped is how it usually ends.
        if (!signal.aborted || error instanceof OutputClosed) throw error
      } finally {
        line.clear()
      }
      return 0
    }
    return withClient(values.url, around, (client) => withReader(client, id as string, parent, read))
  },
})

/** Where the log stands, in one line that is drawn again and again, on a terminal; anywhere else a line for each loss. */
class StatusLine {
  readonly #id: string
  readonly #terminal: Terminal
  #status = ''
  #isLost = false
  #drawn = false

  constructor(id: string, terminal: Terminal) {
    this.#id = id
    this.#terminal = terminal
  }

  tell(status: FollowStatus, next: number | undefined, error: Error | undefined): void {
    const wasLost = this.#isLost
    this.#isLost = status === 'reconnecting' || (wasLost && status === 'connecting')
    this.#status = error === undefined ? status : `${status}: ${describeFailure(error)}`
    if (this.#terminal.isTTY) this.draw(next)
    // Each failed try says the same again; one line tells that it is lost, one that it is back.
    else if (this.#isLost !== wasLost) this.#terminal.write(`${this.#id} ${this.#status}\n`)
  }

  draw(next: number | undefined): void {
    if (!this.#terminal.isTTY) return
    const place = next === undefined ? '' : next === 0 ? '  empty' : `  seq ${next - 1}`
    const text = `${this.#id}${place}  ${this.#status}`
    // A line that wraps could not be taken away again.
    const width = Math.max(0, (this.#terminal.columns ?? 80) - 1)
    this.#terminal.write(`${CLEAR}${text.slice(0, width)}`)
    this.#drawn = true
  }

  clear(): void {
    if (this.#drawn) this.#terminal.write(CLEAR)
    this.#drawn = false
  }
}

const CLEAR = '\r\u001b[2K'
