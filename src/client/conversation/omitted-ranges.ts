// Where a window has left events out.

import { lowerBound } from '../lower-bound.ts'

export class OmittedRanges {
  /** first seqs, rising */
  #starts: number[] = []

  add(seq: number): void {
    this.#starts.push(seq)
  }

  /** Puts those of an older part before. */
  putBefore(older: OmittedRanges): void {
    if (older.#starts.length > 0) this.#starts = older.#starts.concat(this.#starts)
  }

  /** Whether one begins between two seqs of the window. */
  isBetween(after: number, before: number): boolean {
    const starts = this.#starts
    const place = lowerBound(starts.length, (place) => (starts[place] as number) < before)
    return place > 0 && (starts[place - 1] as number) > after
  }
}
