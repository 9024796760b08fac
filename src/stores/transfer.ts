// Bytes on their way to the writer thread. An array that is handed over is not copied again, but each array handed over
// has a price of its own; so large bodies go as arrays of a few MiB, and the small ones of one message share one array.

/** A body up to this size shares its array with others. */
export const SMALL_BYTES = 64 * 1024
const PART_BYTES = 4 * 1024 * 1024

type Bytes = Uint8Array<ArrayBuffer>

export function byteLength(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, piece) => sum + piece.length, 0)
}

/** The pieces copied together, in an array of their own. */
export function gather(pieces: readonly Uint8Array[]): Bytes {
  const bytes = new Uint8Array(byteLength(pieces))
  copyInto(bytes, pieces)
  return bytes
}

/** Several bodies copied into one buffer, an array over its part of it for each. */
export function gatherAll(bodies: readonly (readonly Uint8Array[])[]): Bytes[] {
  const lengths = bodies.map(byteLength)
  const whole = new Uint8Array(lengths.reduce((sum, length) => sum + length, 0))
  let at = 0
  return bodies.map((pieces, place) => {
    const bytes = whole.subarray(at, at + (lengths[place] as number))
    copyInto(bytes, pieces)
    at += bytes.length
    return bytes
  })
}

/** The pieces in their order, in parts of a few MiB. */
export function* parts(pieces: readonly Uint8Array[]): Generator<Uint8Array[]> {
  let part: Uint8Array[] = []
  let bytes = 0
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      const cut = piece.subarray(at, at + PART_BYTES - bytes)
      part.push(cut)
      at += cut.length
      bytes += cut.length
      if (bytes < PART_BYTES) continue
      yield part
      part = []
      bytes = 0
    }
  }
  if (bytes > 0) yield part
}

function copyInto(target: Bytes, pieces: readonly Uint8Array[]): void {
  let at = 0
  for (const piece of pieces) {
    target.set(piece, at)
    at += piece.length
  }
}
