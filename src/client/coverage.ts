// Owns the proof that a body is whole: its lines cover a range of the log from the beginning to the end, each where the
// one before stopped. Nothing else proves it; a body that was cut at a line's edge looks like a shorter one.

import type { Range } from '../../codec/index.ts'
import { AnswerError } from './errors.ts'

export class Coverage {
  readonly #range: Range
  /** the seq that the next line must begin with */
  #next: number

  constructor(range: Range) {
    this.#range = range
    this.#next = range.from
  }

  get next(): number {
    return this.#next
  }

  /** Takes the range of the next line. Throws AnswerError for a gap, an overlap, or more than was promised. */
  take(line: Range): void {
    if (line.from !== this.#next) {
      const kind = line.from > this.#next ? 'leaves out events' : 'repeats events'
      throw AnswerError.malformed(`the answer ${kind}: seq ${this.#next} should come next, and ${line.from} does`)
    }
    if (line.to > this.#range.to) {
      throw AnswerError.malformed(`the answer goes on to seq ${line.to - 1}; it should end at ${this.#range.to - 1}`)
    }
    this.#next = line.to
  }

  /** Throws AnswerError when something is missing. */
  end(): void {
    if (this.#next === this.#range.to) return
    const { from, to } = this.#range
    throw AnswerError.incomplete(`the answer ended before seq ${this.#next}; seqs ${from} to ${to - 1} were promised`)
  }
}
