// An append body, read in the order it came: bytes to numbered items, in slices, so that a large request never holds a
// thread for long. Nothing is stored from here; the first bad line ends it with an error that names the line.

import type { InputItem } from '../../codec/index.ts'
import { elementTexts, LIMITS, LineDecoder, Problem, parseInputLine } from '../../codec/index.ts'
import type { AppendBody } from './store.ts'

/** One line of an append body, or one element of its array. */
export interface NumberedItem {
  /** Line of the body, from 1; for a JSON body the element's place in the array, from 1. */
  readonly line: number
  readonly item: InputItem
}

export interface InputLimits {
  /** UTF-8 bytes of one line. */
  readonly lineBytes: number
}

/**
 * Characters of which the items are kept once they are read. Those of a larger body are read again when they are
 * applied: as objects they would take many times the body's memory.
 */
const KEPT_CHARACTERS = 1024 * 1024

export class AppendInput {
  readonly #body: AppendBody
  readonly #limits: InputLimits
  readonly #texts: Iterator<NumberedText>
  #kept: NumberedItem[] | undefined = []
  #characters = 0

  constructor(body: AppendBody, limits: InputLimits) {
    this.#body = body
    this.#limits = limits
    this.#texts = textsOf(body, limits)
  }

  /**
   * Read items until the body ends or `enough` says to pause.
   * @returns whether the body has ended
   * @throws Problem `event/invalid`, `record/malformed`, `request/too-large`, `request/invalid`, each naming the line
   */
  read(enough: () => boolean): boolean {
    let unasked = 0
    for (;;) {
      const next = this.#texts.next()
      if (next.done) return true
      const item = readItem(next.value, this.#limits)
      const { length } = next.value.text
      this.#characters += length
      if (this.#characters > KEPT_CHARACTERS) this.#kept = undefined
      this.#kept?.push(item)
      // Asking the clock costs about as much as reading a token.
      unasked += Math.max(length, TOKEN_CHARACTERS)
      if (unasked < ASK_CHARACTERS) continue
      if (enough()) return false
      unasked = 0
    }
  }

  /** All items, once the body was read to its end. */
  items(): Iterable<NumberedItem> {
    return this.#kept ?? this.#again()
  }

  *#again(): Generator<NumberedItem> {
    for (const text of textsOf(this.#body, this.#limits)) yield readItem(text, this.#limits)
  }
}

interface NumberedText {
  readonly text: string
  readonly line: number
}

function textsOf(body: AppendBody, limits: InputLimits): Generator<NumberedText> {
  return body.format === 'json' ? elements(body.bytes) : lines(body.bytes, limits)
}

const TOKEN_CHARACTERS = 1_024
const ASK_CHARACTERS = 16 * TOKEN_CHARACTERS

function readItem({ text, line }: NumberedText, limits: InputLimits): NumberedItem {
  try {
    return { line, item: parseInputLine(text, limits) }
  } catch (error) {
    throw atLine(error, line)
  }
}

/** The same error, naming the line it is about. */
export function atLine(error: unknown, line: number): unknown {
  return error instanceof Problem && error.facts.line === undefined ? error.withFacts({ line }) : error
}

function* lines(bytes: readonly Uint8Array[], limits: InputLimits): Generator<NumberedText> {
  // A record of an event that just fits is longer than it; the event itself is measured when it is parsed.
  const decoder = new LineDecoder({ lineBytes: limits.lineBytes + LIMITS.readerExtraBytes })
  const read = (next: () => NumberedText[]): NumberedText[] => {
    try {
      return next()
    } catch (error) {
      if (error instanceof Problem && error.facts.limit !== undefined)
        throw error.withFacts({ limit: limits.lineBytes })
      throw error
    }
  }
  for (const piece of bytes) {
    // A slice keeps the list of lines short when one piece holds the whole request.
    for (let start = 0; start < piece.length; start += SLICE_BYTES) {
      yield* read(() => decoder.feed(piece.subarray(start, start + SLICE_BYTES)))
    }
  }
  yield* read(() => decoder.end())
}

const SLICE_BYTES = 64 * 1024

function* elements(bytes: readonly Uint8Array[]): Generator<NumberedText> {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(bytes))
  } catch (cause) {
    throw new Problem('request/invalid', 'the body is not UTF-8', {}, { cause })
  }
  let line = 0
  try {
    for (const element of elementTexts(text)) yield { text: element, line: ++line }
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new Problem('request/invalid', `the body is not JSON: ${cause.message}`, { line: line + 1 }, { cause })
  }
}
