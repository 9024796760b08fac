// The heap of this process, above what it held before the work: what is kept, and the most that was seen on the way.

/**
 * Empties the young generation, so that what is timed next does not pay for garbage of before. A full collection would
 * also throw away what the compiler has learned of objects that are gone, and what is timed next would pay for that.
 */
export function collectYoung(): void {
  collect({ type: 'minor' })
}

/** Needs `--expose-gc`. */
function collect(options: NodeJS.GCOptions): void {
  const { gc } = globalThis
  if (!gc) throw new Error('garbage can be collected only with --expose-gc')
  gc(options)
}

/** Bytes that are in use after everything unreachable is gone. */
function settledHeap(): number {
  // What a finalizer lets go is collected by the next one.
  for (let round = 0; round < 3; round++) collect({ type: 'major' })
  return process.memoryUsage().heapUsed
}

export interface HeapUse {
  /** Bytes above the baseline after a forced collection with everything held. */
  readonly kept: number
  /** The most bytes above the baseline that any sample saw, uncollected garbage included. */
  readonly highest: number
}

export class HeapWatch {
  readonly #baseline = settledHeap()
  #highest = 0

  sample(): void {
    this.#highest = Math.max(this.#highest, process.memoryUsage().heapUsed)
  }

  /** Whatever is to be counted must still be held by the caller. */
  end(): HeapUse {
    this.sample()
    const kept = settledHeap() - this.#baseline
    return { kept, highest: Math.max(this.#highest - this.#baseline, kept) }
  }
}
