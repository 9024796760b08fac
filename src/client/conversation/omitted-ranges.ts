// Where a window has left events out.

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
    let low = 0
    let high = starts.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((starts[middle] as number) < before) low = middle + 1
      else high = middle
    }
    return low > 0 && (starts[low - 1] as number) > after
  }
}
