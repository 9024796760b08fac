// Finding a place in what is sorted.

/** The first of `count` places of which `isBefore` is not true; it is true up to there, and nowhere behind. */
export function lowerBound(count: number, isBefore: (place: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(middle)) low = middle + 1
    else high = middle
  }
  return low
}
