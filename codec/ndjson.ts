/** Owns NDJSON framing: bytes to numbered lines, lines to records, and records to text. Knows nothing of streams. */
import { eventText, LIMITS } from './event.ts'
import { Problem } from './problem.ts'
import {
  eventRecordLine,
  omittedRecordLine,
  rowRecordLine,
  type SessionHistoryRecord,
  validateRecord,
} from './record.ts'

/** One line that is not blank. */
export interface NumberedLine {
  /** without its line ending */
  text: string
  /** 1-based; blank lines are counted */
  line: number
}

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const

/**
 * Whole lines are decoded together up to this many bytes: one call for some hundred deltas instead of one for each.
 * It also bounds what a short string that was cut from the block can hold alive.
 */
const BLOCK_BYTES = 16 * 1024

/** A buffer for unfinished lines up to this size is kept for the next one. */
const KEPT_BYTES = 64 * 1024

/**
 * A push splitter: `feed` takes any slice of the bytes and gives the lines that are whole, `end` gives the last one if
 * its newline is missing. It splits at `\n` only, takes a `\r` before it as part of the ending, drops blank lines and a
 * byte order mark at the very start, and copies what it keeps, so a caller may use its buffer again.
 *
 * Throws Problem `request/too-large` (`line`, `limit`) for a line of more than `lineBytes` bytes, its ending not counted,
 * and `record/malformed` (`line`) for bytes that are not UTF-8. Good lines come first: what is wrong behind them is
 * thrown by the next call. There is no going on after an error: every later call throws it again.
 */
export class LineDecoder {
  readonly #lineBytes: number
  readonly #blockBytes: number
  /** ignoreBOM keeps U+FEFF in the text; the mark at the start is taken off as bytes. */
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  /** the unfinished line; a buffer that doubles, since 8 million slices of one byte would cost far more than the line */
  #pending = new Uint8Array(0)
  #pendingBytes = 0
  /** bytes of the byte order mark seen so far; -1 once it is known whether there is one */
  #mark = 0
  #lines = 0
  #failure: Problem | undefined

  constructor(options?: { lineBytes?: number }) {
    this.#lineBytes = options?.lineBytes ?? LIMITS.lineBytes
    // A block of whole lines no longer than the limit holds no line over it, so only single lines need to be measured.
    this.#blockBytes = Math.min(BLOCK_BYTES, this.#lineBytes)
  }

  /** lines begun so far, blank ones included */
  get lines(): number {
    return this.#lines + (this.#pendingBytes > 0 ? 1 : 0)
  }

  /** bytes held back for the line that is not finished */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  feed(bytes: Uint8Array): NumberedLine[] {
    return this.#guarded((lines) => this.#read(this.#mark < 0 ? bytes : this.#withoutMark(bytes), lines))
  }

  /** Gives the last line when no newline followed it. Nothing can be fed afterwards. */
  end(): NumberedLine[] {
    return this.#guarded((lines) => {
      if (this.#mark > 0) this.#keep(Uint8Array.from(BYTE_ORDER_MARK.slice(0, this.#mark)))
      this.#mark = -1
      if (this.#pendingBytes > 0) this.#finish(new Uint8Array(0), lines)
    })
  }

  #guarded(read: (lines: NumberedLine[]) => void): NumberedLine[] {
    if (this.#failure !== undefined) throw this.#failure
    const lines: NumberedLine[] = []
    try {
      read(lines)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      this.#failure = error
      this.#pending = new Uint8Array(0)
      this.#pendingBytes = 0
      if (lines.length === 0) throw error
    }
    return lines
  }

  /** Takes the byte order mark off the very start, also when it comes in pieces. */
  #withoutMark(bytes: Uint8Array): Uint8Array {
    let at = 0
    while (at < bytes.length && this.#mark >= 0) {
      if (bytes[at] !== BYTE_ORDER_MARK[this.#mark]) {
        const seen = this.#mark
        this.#mark = -1
        // What looked like a mark came in an earlier slice when it is not at the start of this one.
        if (seen > at) this.#keep(Uint8Array.from(BYTE_ORDER_MARK.slice(0, seen - at)))
        return bytes
      }
      at++
      this.#mark++
      if (this.#mark === BYTE_ORDER_MARK.length) this.#mark = -1
    }
    return bytes.subarray(at)
  }

  #read(bytes: Uint8Array, lines: NumberedLine[]): void {
    let at = 0
    if (this.#pendingBytes > 0) {
      const newline = bytes.indexOf(LINE_FEED)
      if (newline === -1) {
        this.#keep(bytes)
        return
      }
      this.#finish(bytes.subarray(0, newline), lines)
      at = newline + 1
    }
    while (at < bytes.length) {
      const window = bytes.subarray(at, at + this.#blockBytes)
      const last = window.lastIndexOf(LINE_FEED)
      if (last !== -1) {
        this.#decodeBlock(window.subarray(0, last), lines)
        at += last + 1
        continue
      }
      const newline = bytes.indexOf(LINE_FEED, at + window.length)
      if (newline === -1) {
        this.#keep(bytes.subarray(at))
        return
      }
      this.#decodeLine(bytes.subarray(at, newline), lines)
      at = newline + 1
    }
  }

  /** Adds bytes to the unfinished line, unless that makes it too long. */
  #keep(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    const size = this.#pendingBytes + bytes.length
    // One more may be the `\r` of the line's ending.
    const excess = size - this.#lineBytes
    if (excess > 1 || (excess === 1 && bytes.at(-1) !== CARRIAGE_RETURN)) throw this.#tooLong()
    if (size > this.#pending.length) {
      const longest = this.#lineBytes + 1
      const grown = new Uint8Array(Math.max(size, Math.min(longest, 2 * this.#pending.length), 256))
      grown.set(this.#pending.subarray(0, this.#pendingBytes))
      this.#pending = grown
    }
    this.#pending.set(bytes, this.#pendingBytes)
    this.#pendingBytes = size
  }

  /** Completes the unfinished line. */
  #finish(bytes: Uint8Array, lines: NumberedLine[]): void {
    this.#keep(bytes)
    const line = this.#pending.subarray(0, this.#pendingBytes)
    this.#pendingBytes = 0
    this.#decodeLine(line, lines)
    if (this.#pending.length > KEPT_BYTES) this.#pending = new Uint8Array(0)
  }

  #decodeLine(bytes: Uint8Array, lines: NumberedLine[]): void {
    const length = bytes.at(-1) === CARRIAGE_RETURN ? bytes.length - 1 : bytes.length
    if (length > this.#lineBytes) throw this.#tooLong()
    const text = this.#decode(bytes)
    if (text === undefined) throw this.#notUtf8()
    this.#push(text, lines)
  }

  /** Whole lines, the last newline left off. */
  #decodeBlock(bytes: Uint8Array, lines: NumberedLine[]): void {
    const text = this.#decode(bytes)
    if (text === undefined) {
      this.#decodeEach(bytes, lines)
      return
    }
    let start = 0
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      this.#push(text.slice(start, end), lines)
      start = end + 1
    }
    this.#push(start === 0 ? text : text.slice(start), lines)
  }

  /** The same line by line, to find the one that is not UTF-8. */
  #decodeEach(bytes: Uint8Array, lines: NumberedLine[]): void {
    let start = 0
    for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, start)) {
      this.#decodeLine(bytes.subarray(start, end), lines)
      start = end + 1
    }
    this.#decodeLine(bytes.subarray(start), lines)
  }

  #decode(bytes: Uint8Array): string | undefined {
    try {
      return this.#utf8.decode(bytes)
    } catch {
      return undefined
    }
  }

  #push(text: string, lines: NumberedLine[]): void {
    this.#lines++
    let end = text.length
    if (text.charCodeAt(end - 1) === CARRIAGE_RETURN) end--
    if (!isBlank(text, end)) lines.push({ text: end === text.length ? text : text.slice(0, end), line: this.#lines })
  }

  #tooLong(): Problem {
    const line = this.#lines + 1
    const limit = this.#lineBytes
    return new Problem('request/too-large', `line ${line} takes more than ${limit} bytes`, { line, limit })
  }

  #notUtf8(): Problem {
    const line = this.#lines + 1
    return new Problem('record/malformed', `line ${line} is not UTF-8`, { line })
  }
}

function isBlank(text: string, end: number): boolean {
  for (let i = 0; i < end; i++) {
    const code = text.charCodeAt(i)
    if (code !== 0x20 && code !== 0x09 && code !== CARRIAGE_RETURN) return false
  }
  return true
}

/** The line that ends a followed body for good. `closed` is reserved; a reason of a later version may be another word. */
export interface ControlRecord {
  type: 'end'
  reason: string
}

/**
 * Reads what the service sends: lines to checked records. A line may have 1 KiB and one level of nesting more than
 * what is sent in. Throws, by the rules of `LineDecoder`, what that throws, `record/malformed` (`line`, `path`) and
 * `event/invalid` (`line`, `path`) for a line that is no record, one cut off at the end included.
 */
export class RecordDecoder {
  readonly #lines: LineDecoder
  #ended = false
  #failure: Problem | undefined

  constructor(options?: { lineBytes?: number }) {
    this.#lines = new LineDecoder({ lineBytes: (options?.lineBytes ?? LIMITS.lineBytes) + LIMITS.readerExtraBytes })
  }

  /** bytes of a record that has begun and is not whole */
  get pendingBytes(): number {
    return this.#lines.pendingBytes
  }

  feed(bytes: Uint8Array): (SessionHistoryRecord | ControlRecord)[] {
    if (this.#failure !== undefined) throw this.#failure
    return this.#decode(this.#lines.feed(bytes))
  }

  end(): (SessionHistoryRecord | ControlRecord)[] {
    if (this.#failure !== undefined) throw this.#failure
    return this.#decode(this.#lines.end())
  }

  #decode(lines: NumberedLine[]): (SessionHistoryRecord | ControlRecord)[] {
    const records: (SessionHistoryRecord | ControlRecord)[] = []
    for (const { text, line } of lines) {
      try {
        records.push(this.#record(text))
      } catch (error) {
        if (!(error instanceof Problem)) throw error
        this.#failure = error.withFacts({ line })
        if (records.length === 0) throw this.#failure
        break
      }
    }
    return records
  }

  #record(text: string): SessionHistoryRecord | ControlRecord {
    if (this.#ended) throw new Problem('record/malformed', 'a record follows the end', { path: '' })
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (cause) {
      throw new Problem('record/malformed', `not JSON: ${(cause as Error).message}`, { path: '' }, { cause })
    }
    const control = controlOf(value)
    if (control === undefined) return validateRecord(value)
    this.#ended = true
    return control
  }
}

function controlOf(value: unknown): ControlRecord | undefined {
  const { type, reason } = (value ?? {}) as Record<string, unknown>
  return type === 'end' && typeof reason === 'string' ? { type, reason } : undefined
}

/**
 * The lines of the records, `\n` after each. Throws Problem `event/invalid` for an event that JSON cannot carry, such
 * as one that holds Infinity.
 */
export function encodeRecords(records: Iterable<SessionHistoryRecord>): string {
  let text = ''
  for (const record of records) text += `${lineOf(record)}\n`
  return text
}

function lineOf(record: SessionHistoryRecord): string {
  switch (record.type) {
    case 'event':
      return eventRecordLine(eventText(record.event))
    case 'chunks':
      return rowRecordLine(record.event)
    case 'omitted':
      return omittedRecordLine(record.event.seq, record.event.time, record.event.data.count)
  }
}
