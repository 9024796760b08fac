// The frame walker: every slicing of many frames gives the same bytes, and whatever is not whole Zstandard is refused.

import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { constants, createZstdCompress, zstdCompressSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { Problem } from '../../codec/index.ts'
import { WINDOW_LOG_MAX, ZstdFrames } from '../../src/history/zstd-frames.ts'

const CHECKSUM = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }
const MAGIC = [0x28, 0xb5, 0x2f, 0xfd]

function skippable(nibble: number, content: Uint8Array): Buffer {
  const head = Buffer.from([0x50 + nibble, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content])
}

async function* slices(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function decode(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of new ZstdFrames(source)) parts.push(part)
  return Buffer.concat(parts)
}

/** Bytes that do not compress. */
function noise(bytes: number): Buffer {
  return createHash('shake256', { outputLength: bytes }).update('noise').digest()
}

async function streamed(text: Uint8Array): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of Readable.from([text]).pipe(createZstdCompress())) parts.push(part)
  return Buffer.concat(parts)
}

t.test('concatenated frames decode whole, in every slicing', async (t) => {
  const large = noise(300_000)
  const frames: [Buffer, Buffer][] = [
    [Buffer.from('first\n'), zstdCompressSync('first\n')],
    [Buffer.from('second\n'), zstdCompressSync('second\n', CHECKSUM)],
    [Buffer.alloc(0), zstdCompressSync('')],
    [Buffer.alloc(0), skippable(0, Buffer.from('skipped'))],
    [large, zstdCompressSync(large, CHECKSUM)],
    [Buffer.alloc(0), skippable(15, Buffer.alloc(0))],
    [Buffer.alloc(2_000_000, 'run'), zstdCompressSync(Buffer.alloc(2_000_000, 'run'))],
    [Buffer.from('without a size\n'), await streamed(Buffer.from('without a size\n'))],
  ]
  const bytes = Buffer.concat(frames.map(([, frame]) => frame))
  const content = Buffer.concat(frames.map(([text]) => text))
  for (const size of [7, 1000, 65_536, bytes.length]) {
    t.ok((await decode(slices(bytes, size))).equals(content), `${size} bytes at a time`)
  }
  const small = Buffer.concat(frames.filter(([, frame]) => frame.length < 1000).map(([, frame]) => frame))
  const smallContent = Buffer.concat(frames.filter(([, frame]) => frame.length < 1000).map(([text]) => text))
  t.ok((await decode(slices(small, 1))).equals(smallContent), 'one byte at a time')
})

t.test('any texts in any cut', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ maxLength: 2000 }), { maxLength: 6 }),
      fc.integer({ min: 1, max: 600 }),
      async (texts, size) => {
        const decoded = await decode(slices(Buffer.concat(texts.map((text) => zstdCompressSync(text))), size))
        return decoded.equals(Buffer.concat(texts))
      },
    ),
    { interruptAfterTimeLimit: 3000, markInterruptAsFailure: false, numRuns: 200 },
  )
})

t.test('nothing at all is nothing', async (t) => {
  t.equal((await decode(slices(Buffer.alloc(0), 1))).length, 0)
  t.equal((await decode(slices(skippable(3, Buffer.from('only this')), 4))).length, 0)
})

t.test('a cut at any byte inside is an error, never a shorter text', async (t) => {
  const bytes = Buffer.concat([zstdCompressSync('first\n'), zstdCompressSync(noise(200), CHECKSUM)])
  const edge = zstdCompressSync('first\n').length
  for (let length = 1; length < bytes.length; length++) {
    if (length === edge) continue
    await t.rejects(decode(slices(bytes.subarray(0, length), 50)), { code: 'log/invalid' }, `${length} bytes`)
  }
  const large = zstdCompressSync(noise(300_000))
  for (const length of [large.length - 1, 200_000, 40_000]) {
    await t.rejects(decode(slices(large.subarray(0, length), 65_536)), {
      code: 'log/invalid',
      message: 'the Zstandard data ends inside a frame',
    })
  }
})

t.test('what is not whole Zstandard data is refused by name', async (t) => {
  const frame = zstdCompressSync('text\n')
  const large = zstdCompressSync(noise(300_000), CHECKSUM)
  const flip = (bytes: Buffer, at: number) => {
    const copy = Buffer.from(bytes)
    copy[at] = copy[at]! ^ 0xff
    return copy
  }
  const table: [string, Buffer, RegExp][] = [
    ['text', Buffer.from('{"type":"session"}\n'), /not Zstandard/],
    ['gzip', Buffer.from([0x1f, 0x8b, 8, 0]), /not Zstandard/],
    ['garbage after a frame', Buffer.concat([frame, Buffer.from('garbage')]), /follows a frame/],
    ['zeros after a frame', Buffer.concat([frame, Buffer.alloc(8)]), /follows a frame/],
    ['three bytes after a frame', Buffer.concat([frame, Buffer.from('abc')]), /ends inside/],
    ['a wrong checksum', flip(zstdCompressSync('text\n', CHECKSUM), 20 - 4), /damaged/],
    ['a wrong checksum of a large frame', flip(large, large.length - 1), /damaged/],
    ['a reserved header bit', Buffer.from([...MAGIC, 0x08, 0x00, 1, 0, 0]), /reserved bit/],
    ['a reserved block type', Buffer.from([...MAGIC, 0x00, 0x00, 0x07, 0, 0]), /type that does not exist/],
    ['a dictionary', Buffer.from([...MAGIC, 0x01, 0x00, 0x05, 1, 0, 0]), /dictionary/],
    ['a window of 2^28', Buffer.from([...MAGIC, 0x00, (28 - 10) << 3, 1, 0, 0]), /window of 268435456/],
    ['a window just over 2^27', Buffer.from([...MAGIC, 0x00, ((27 - 10) << 3) | 1, 1, 0, 0]), /window of 150994944/],
    ['a single segment of 2^40', Buffer.from([...MAGIC, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0]), /window of/],
    ['a run over the block limit', Buffer.from([...MAGIC, 0x00, 0x00, 0xff, 0xff, 0x7b, 0x41]), /./],
  ]
  for (const [name, bytes, message] of table) {
    for (const size of [1, bytes.length]) {
      await t.rejects(decode(slices(bytes, Math.max(size, 64))), { code: 'log/invalid', message }, name)
    }
  }
  const atLimit = Buffer.from([...MAGIC, 0x00, (WINDOW_LOG_MAX - 10) << 3, 1, 0, 0])
  t.equal((await decode(slices(atLimit, 3))).length, 0, 'the largest window is taken')
})

t.test('a bomb is unpacked no further than it is read', async (t) => {
  const bomb = zstdCompressSync(Buffer.alloc(64 * 1024 * 1024))
  t.ok(bomb.length < 10_000)
  let seen = 0
  let closed = false
  const source = async function* () {
    try {
      for (;;) yield bomb
    } finally {
      closed = true
    }
  }
  for await (const part of new ZstdFrames(source())) {
    t.ok(part.length <= 512 * 1024)
    seen += part.length
    if (seen > 1024 * 1024) break
  }
  t.ok(closed, 'leaving early lets the source go')
})

t.test('an error of the source is thrown as it is', async (t) => {
  const lost = new Problem('request/timeout', 'nothing came')
  const large = zstdCompressSync(noise(300_000))
  for (const cut of [0, 3, 100, 100_000]) {
    const source = async function* () {
      yield large.subarray(0, cut)
      throw lost
    }
    await t.rejects(decode(source()), lost)
  }
})
