// An append body, read in the order it came: bytes to numbered items, in slices, so that a large request never holds a
// thread for long. Nothing is stored from here; the first bad line ends it with an error that names the line.

import type { InputItem } from '../../codec/index.ts'
import { elementTexts, LineDecoder, Problem, parseInputLine } from '../../codec/index.ts'
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

export class AppendInput {
  readonly items: NumberedItem[] = []
  readonly #texts: Iterator<{ text: string; line: number }>
  readonly #limits: InputLimits

  constructor(body: AppendBody, limits: InputLimits) {
    this.#limits = limits
    this.#texts = body.format === 'json' ? elements(body.bytes) : lines(body.bytes, limits)
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
      const { text, line } = next.value
      this.items.push({ line, item: readItem(text, line, this.#limits) })
      // Asking the clock costs about as much as reading a token.
      unasked += Math.max(text.length, TOKEN_CHARACTERS)
      if (unasked < ASK_CHARACTERS) continue
      if (enough()) return false
      unasked = 0
    }
  }
}

const TOKEN_CHARACTERS = 1_024
const ASK_CHARACTERS = 16 * TOKEN_CHARACTERS

function readItem(text: string, line: number, limits: InputLimits): InputItem {
  try {
    return parseInputLine(text, limits)
  } catch (error) {
    throw atLine(error, line)
  }
}

/** The same error, naming the line it is about. */
export function atLine(error: unknown, line: number): unknown {
  return error instanceof Problem && error.facts.line === undefined ? error.withFacts({ line }) : error
}

function* lines(bytes: readonly Uint8Array[], limits: InputLimits): Generator<{ text: string; line: number }> {
  const decoder = new LineDecoder(limits)
  for (const piece of bytes) {
    // A slice keeps the list of lines short when one piece holds the whole request.
    for (let start = 0; start < piece.length; start += SLICE_BYTES) {
      yield* decoder.feed(piece.subarray(start, start + SLICE_BYTES))
    }
  }
  yield* decoder.end()
}

const SLICE_BYTES = 64 * 1024

function* elements(bytes: readonly Uint8Array[]): Generator<{ text: string; line: number }> {
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
