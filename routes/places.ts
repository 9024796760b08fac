// Work of which only so much is done at one time. One more is refused, none is put out.

import { Problem } from '../codec/index.ts'

export class Places {
  readonly #limit: number
  readonly #what: string
  #taken = 0

  /** @param what names the work in the refusal */
  constructor(limit: number, what: string) {
    this.#limit = limit
    this.#what = what
  }

  /** @throws Problem `server/busy` */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#taken >= this.#limit) {
      throw new Problem('server/busy', `there are ${this.#limit} ${this.#what} at this moment`, {
        limit: this.#limit,
        retryAfter: 1,
      })
    }
    this.#taken++
    try {
      return await work()
    } finally {
      this.#taken--
    }
  }
}
