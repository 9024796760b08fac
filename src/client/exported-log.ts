// Owns an exported log as it is read over one answer.

import { readLogLines } from './log-lines.ts'
import type { ServiceAnswer } from './transport.ts'

/** An exported log whose body is open. It is read once, or cancelled. */
export class ExportedLog {
  readonly epoch: string
  readonly head: number
  readonly #id: string
  readonly #answer: ServiceAnswer
  readonly #lineBytes: number

  constructor(id: string, headers: { epoch: string; head: number }, answer: ServiceAnswer, lineBytes: number) {
    this.epoch = headers.epoch
    this.head = headers.head
    this.#id = id
    this.#answer = answer
    this.#lineBytes = lineBytes
  }

  /** The lines, checked, without newlines; reading ends in an error unless they are the whole log up to `head`. */
  lines(): AsyncGenerator<string[]> {
    return readLogLines(this.#answer.body(), this.#id, this.head + 1, this.#lineBytes)
  }

  cancel(): void {
    this.#answer.discard()
  }
}
