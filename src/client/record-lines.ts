// Owns reading records: the bytes of a body to lines, each checked in shape and place before it is handed on.

import type { NumberedLine, Range, SessionHistoryRecord } from '../../codec/index.ts'
import { LIMITS, LineDecoder, Problem, recordRange, validateRecord } from '../../codec/index.ts'
import { Coverage } from './coverage.ts'
import { AnswerError } from './errors.ts'

/** A record with the text it came in, for those who pass it on. */
export interface RecordLine {
  /** without the newline */
  readonly text: string
  readonly record: SessionHistoryRecord
}

/**
 * The records of a body, as many at a time as arrived together. They cover `range` exactly, or the last of it throws:
 * AnswerError for a line that is no record or stands in a wrong place, and for a body that ends early.
 */
export async function* readRecordLines(
  body: AsyncIterable<Uint8Array>,
  range: Range,
  lineBytes: number = LIMITS.lineBytes,
): AsyncGenerator<RecordLine[]> {
  const coverage = new Coverage(range)
  for await (const lines of readLines(body, lineBytes)) {
    yield* goodFirst(lines, (line) => {
      const record = readRecord(line)
      coverage.take(recordRange(record))
      return { text: line.text, record }
    })
  }
  coverage.end()
}

/** The lines of a body. Throws AnswerError for one over the limit, or not in UTF-8. */
export async function* readLines(body: AsyncIterable<Uint8Array>, lineBytes: number): AsyncGenerator<NumberedLine[]> {
  const decoder = new LineDecoder({ lineBytes: lineBytes + LIMITS.readerExtraBytes })
  for await (const bytes of body) {
    const lines = fromCodec(() => decoder.feed(bytes))
    if (lines.length > 0) yield lines
  }
  const last = fromCodec(() => decoder.end())
  if (last.length > 0) yield last
}

/** What was good before the first bad line is handed on before that line's error is thrown. */
export function* goodFirst<Value>(lines: NumberedLine[], read: (line: NumberedLine) => Value): Generator<Value[]> {
  const good: Value[] = []
  let failure: { error: unknown } | undefined
  for (const line of lines) {
    try {
      good.push(read(line))
    } catch (error) {
      failure = { error }
      break
    }
  }
  if (good.length > 0) yield good
  if (failure) throw failure.error
}

function readRecord(line: NumberedLine): SessionHistoryRecord {
  return recordOf(parseLine(line), line)
}

/** The value of a line. Throws AnswerError for what is not JSON. */
export function parseLine({ text, line }: NumberedLine): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw AnswerError.malformed(`the answer cannot be read: line ${line} is not JSON`, error)
  }
}

/** The record that a line's value is. Throws AnswerError for any other value. */
export function recordOf(value: unknown, { line }: NumberedLine): SessionHistoryRecord {
  return fromCodec(() => validateRecord(value), line)
}

/** What the codec refuses in an answer is the answer's fault, not a problem that the service reports. */
export function fromCodec<Value>(read: () => Value, line?: number): Value {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw AnswerError.of(line === undefined ? error : error.withFacts({ line }))
  }
}
