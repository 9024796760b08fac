// Owns reading an exported session log: its header, then storage lines that cover the log from the first event on.

import type { InputItem, NumberedLine, Range } from '../../codec/index.ts'
import { decodeStorageRecord, LIMITS, parseHeaderLine, recordRange } from '../../codec/index.ts'
import { Coverage } from './coverage.ts'
import { AnswerError } from './errors.ts'
import { fromCodec, goodFirst, readLines } from './record-lines.ts'

/**
 * The lines of the log of session `id`, without newlines, as many at a time as arrived together; the header is the first.
 * They cover `[0, to)` exactly, or the last of it throws AnswerError.
 */
export async function* readLogLines(
  body: AsyncIterable<Uint8Array>,
  id: string,
  to: number,
  lineBytes: number = LIMITS.lineBytes,
): AsyncGenerator<string[]> {
  const coverage = new Coverage({ from: 0, to })
  let headed = false
  for await (const lines of readLines(body, lineBytes)) {
    yield* goodFirst(lines, (line) => {
      if (headed) coverage.take(readStorageLine(line, lineBytes))
      else readHeader(line, id)
      headed = true
      return line.text
    })
  }
  if (!headed) throw AnswerError.incomplete('the answer ended before the header of the log')
  coverage.end()
}

function readHeader({ text }: NumberedLine, id: string): void {
  const header = fromCodec(() => parseHeaderLine(text))
  if (header.id !== id) throw AnswerError.malformed(`the answer is the log of session ${header.id}, not of ${id}`)
}

function readStorageLine({ text, line }: NumberedLine, lineBytes: number): Range {
  const limits = { lineBytes: lineBytes + LIMITS.readerExtraBytes, depth: LIMITS.depth + LIMITS.readerExtraDepth }
  return itemRange(fromCodec(() => decodeStorageRecord(text, limits), line))
}

function itemRange(item: InputItem): Range {
  if (item.kind === 'row') return recordRange({ type: 'chunks', event: item.row })
  const seq = item.event.seq as number
  return { from: seq, to: seq + 1 }
}
