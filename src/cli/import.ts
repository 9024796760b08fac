// Owns `scrollback import`: session log files to the service, one after the other.

import type { ImportResult } from '../../codec/index.ts'
import type { HistoryClient } from '../client/index.ts'
import type { Surroundings } from './command.ts'
import { command } from './command.ts'
import { describeFailure } from './failure.ts'
import { openInput } from './input.ts'
import { integer, option, UsageError } from './options.ts'
import { Progress } from './progress.ts'
import { urlOption, withClient } from './service.ts'

export const importCommand = command({
  shape: {
    name: 'import',
    about: [
      'Imports session logs, as "scrollback export" writes them, plain or Zstandard.',
      'A log is imported as a whole or not at all; one that is there already changes nothing.',
      'Writes a line {"file","id","epoch","head"} for each. Goes on after a file that fails, and then exits with 1.',
    ].join('\n'),
    operands: [{ name: 'FILE', help: 'file of a session log, or - for standard input', many: true }],
    options: {
      'expected-head': option(
        'SEQ',
        integer(-1),
        'refuse the file unless this is its last seq: a file\ncut between two lines is a valid shorter log',
      ),
      url: urlOption,
    },
  },
  async run(values, files, around) {
    const expectedHead = values['expected-head']
    if (expectedHead !== undefined && files.length > 1) {
      throw new UsageError(`--expected-head expects exactly one FILE, got ${files.length}`)
    }
    if (files.filter((file) => file === '-').length > 1) {
      throw new UsageError('FILE expects - at most once: standard input can be read once')
    }
    return withClient(values.url, around, async (client) => {
      let failed = 0
      for (const file of files) {
        try {
          const { id, epoch, head } = await importFile(client, file, expectedHead, around)
          await around.output.tell({ file, id, epoch, head })
        } catch (error) {
          around.signal.throwIfAborted()
          failed++
          around.terminal.write(`scrollback: ${file}: ${describeFailure(error)}\n`)
        }
      }
      return failed === 0 ? 0 : 1
    })
  },
})

async function importFile(
  client: HistoryClient,
  name: string,
  expectedHead: number | undefined,
  around: Surroundings,
): Promise<ImportResult> {
  const { terminal, signal } = around
  const file = await openInput(name, around)
  const progress = new Progress({ terminal, label: name, total: file.size })
  try {
    const { start, bytes } = await withStart(file.bytes)
    const zstd = /\.zstd?$/i.test(name) || isZstd(start)
    return await client.sessions.import(counted(bytes, progress), { zstd, expectedHead, signal })
  } finally {
    progress.clear()
    file.close()
  }
}

async function* counted(bytes: AsyncIterable<Uint8Array>, progress: Progress): AsyncGenerator<Uint8Array> {
  for await (const piece of bytes) {
    yield piece
    progress.add(piece.length)
  }
}

const MAGIC_BYTES = 4

/** The first bytes of a stream, however they are cut, and the whole stream. */
async function withStart(
  source: AsyncIterable<Uint8Array>,
): Promise<{ start: Uint8Array; bytes: AsyncIterable<Uint8Array> }> {
  const pieces: Uint8Array[] = []
  const iterator = source[Symbol.asyncIterator]()
  for (let length = 0; length < MAGIC_BYTES; ) {
    const next = await iterator.next()
    if (next.done) break
    pieces.push(next.value)
    length += next.value.length
  }
  const start = Buffer.concat(pieces)
  async function* all(): AsyncGenerator<Uint8Array> {
    if (start.length > 0) yield start
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  return { start, bytes: all() }
}

/** A frame, or one of the skippable frames that some tools put first; both little-endian (RFC 8878, 3.1). */
function isZstd(bytes: Uint8Array): boolean {
  if (bytes.length < MAGIC_BYTES) return false
  const magic = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true)
  return magic === 0xfd2fb528 || (magic & 0xfffffff0) >>> 0 === 0x184d2a50
}
