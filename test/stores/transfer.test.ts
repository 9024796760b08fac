import { test } from 'tap'
import { byteLength, gather, gatherAll, parts } from '../../src/stores/transfer.ts'

const bytes = (...values: number[]) => Uint8Array.from(values)
const MIB = 1024 * 1024

test('pieces are copied together in their order, into an array of their own', (t) => {
  const pieces = [bytes(1, 2, 3, 4).subarray(1, 3), bytes(), bytes(5)]
  t.equal(byteLength(pieces), 3)
  const whole = gather(pieces)
  t.same([...whole], [2, 3, 5])
  t.equal(whole.buffer.byteLength, 3)
  t.end()
})

test('small bodies share one buffer, each with its own part of it', (t) => {
  const arrays = gatherAll([[bytes(1), bytes(2, 3)], [], [bytes()], [bytes(4)]])
  t.same(
    arrays.map((array) => [...array]),
    [[1, 2, 3], [], [], [4]],
  )
  t.equal(new Set(arrays.map(({ buffer }) => buffer)).size, 1)
  t.equal(arrays[0]?.buffer.byteLength, 4)
  t.same(gatherAll([]), [])
  t.end()
})

test('a large body is cut into parts of a few MiB, wherever its pieces end', (t) => {
  const piece = new Uint8Array(3 * MIB + 1).map((_, at) => at % 251)
  const whole = gather([piece, piece, piece])
  const cut = [...parts([piece, piece, piece])]
  t.same(cut.map(byteLength), [4 * MIB, 4 * MIB, MIB + 3])
  t.equal(Buffer.compare(gather(cut.flat()), whole), 0)
  t.same([...parts([])], [])
  t.same([...parts([bytes()])], [])
  t.end()
})
