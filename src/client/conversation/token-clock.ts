// When the tokens of a step came, and how many.

import type { Moment, TokenRun } from './token-run.ts'
import { firstToken, lastMoment } from './token-run.ts'

export class TokenClock {
  #count = 0
  #first: Moment | undefined
  #last: Moment | undefined

  add(run: TokenRun): void {
    this.#count += run.fragments.length
    this.#last = lastMoment(run)
    this.#first ??= firstToken(run)
  }

  get count(): number {
    return this.#count
  }

  /** the first token that carries something: text, reasoning, arguments or a tool's name */
  get first(): Moment | undefined {
    return this.#first
  }

  get last(): Moment | undefined {
    return this.#last
  }
}
