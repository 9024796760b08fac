/** Owns JSON as text: where its members lie, how deep it nests, how many bytes it takes; no number or key is ever rewritten. */

export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue }

/** One member of an object: its decoded key, and its value's slice of the compact text. */
export interface JsonMember {
  key: string
  start: number
  end: number
}

export interface JsonObjectText {
  /** compact; the very same string when there was no white space to remove */
  text: string
  /** members of the outermost object in their order, keys given twice included */
  members: JsonMember[]
  /** the outermost object is level 1 */
  depth: number
  /** keys at all levels, keys given twice counted twice */
  keys: number
}

const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/**
 * Looks through the text of a JSON object in one pass. The text must already be known to be valid JSON (`JSON.parse`
 * took it). Throws SyntaxError when the text is valid but not an object.
 */
export function scanObject(text: string): JsonObjectText {
  if (text.charCodeAt(skipSpace(text, 0)) !== OPEN_BRACE) throw new SyntaxError('expected a JSON object')
  const members: JsonMember[] = []
  return { members, ...scan(text, members) }
}

/** Removes the white space between the tokens of any valid JSON value. A scalar has depth 0. */
export function compactJson(text: string): { text: string; depth: number } {
  const { text: compact, depth } = scan(text, undefined)
  return { text: compact, depth }
}

/** The slice of the last member `key` of a valid compact object text; undefined when it has none or is no object. */
export function memberSlice(text: string, key: string): { start: number; end: number } | undefined {
  if (text.charCodeAt(0) !== OPEN_BRACE) return undefined
  const member = scanObject(text).members.findLast((each) => each.key === key)
  return member && { start: member.start, end: member.end }
}

function scan(text: string, members: JsonMember[] | undefined): { text: string; depth: number; keys: number } {
  const pieces: string[] = []
  let copied = 0 // everything before it is in `pieces`
  let removed = 0 // white space so far: a place in the compact text is the place in `text` less this
  let depth = 0
  let deepest = 0
  let keys = 0
  let stringStart = 0
  let stringEnd = 0
  let member: JsonMember | undefined
  const length = text.length
  let i = 0
  while (i < length) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        stringStart = i
        i = closingQuote(text, i) + 1
        stringEnd = i
        continue
      case COLON:
        keys++
        if (depth === 1 && members !== undefined) {
          member = { key: keyOf(text, stringStart, stringEnd), start: i + 1 - removed, end: 0 }
          members.push(member)
        }
        break
      case COMMA:
        if (depth === 1 && member !== undefined) member.end = i - removed
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth++
        if (depth > deepest) deepest = depth
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (depth === 1 && member !== undefined) member.end = i - removed
        depth--
        break
      case SPACE:
      case TAB:
      case LINE_FEED:
      case CARRIAGE_RETURN: {
        const end = skipSpace(text, i)
        if (i > copied) pieces.push(text.slice(copied, i))
        removed += end - i
        copied = end
        i = end
        continue
      }
    }
    i++
  }
  if (removed === 0) return { text, depth: deepest, keys }
  if (copied < length) pieces.push(text.slice(copied))
  return { text: pieces.join(''), depth: deepest, keys }
}

function keyOf(text: string, start: number, end: number): string {
  const key = text.slice(start + 1, end - 1)
  return key.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : key
}

/** The place of the quote that closes the string opened at `open`. A long string is jumped over, not walked through. */
function closingQuote(text: string, open: number): number {
  let quote = open
  for (;;) {
    quote = text.indexOf('"', quote + 1)
    if (quote === -1) throw new SyntaxError('a string is not closed')
    let backslashes = quote
    while (text.charCodeAt(backslashes - 1) === BACKSLASH) backslashes--
    if ((quote - backslashes) % 2 === 0) return quote
  }
}

function isSpace(code: number): boolean {
  return code === SPACE || code === LINE_FEED || code === CARRIAGE_RETURN || code === TAB
}

function skipSpace(text: string, from: number): number {
  let i = from
  while (isSpace(text.charCodeAt(i))) i++
  return i
}

/**
 * The texts of the elements of one JSON array, white space around them removed; anything but an array is given whole.
 * The elements are not parsed: one that is not JSON, or is empty, is found by whoever parses it. Throws SyntaxError
 * when the array is not closed, is followed by more, or the text is empty, possibly after elements were given.
 */
export function* elementTexts(text: string): Generator<string> {
  const open = skipSpace(text, 0)
  if (open === text.length) throw new SyntaxError('expected JSON, got nothing')
  if (text.charCodeAt(open) !== OPEN_BRACKET) {
    yield trimmed(text, open, text.length)
    return
  }
  let depth = 1
  let start = skipSpace(text, open + 1)
  let i = start
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      i = closingQuote(text, i)
    } else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      depth++
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) {
      depth--
      if (depth > 0) continue
      if (code !== CLOSE_BRACKET) throw new SyntaxError('the array is closed by a brace')
      break
    } else if (code === COMMA && depth === 1) {
      yield trimmed(text, start, i)
      start = skipSpace(text, i + 1)
      i = start - 1
      // From here on `[` cannot close at once: an element is owed after a comma.
      if (text.charCodeAt(start) === CLOSE_BRACKET) throw new SyntaxError('an element is missing after a comma')
    }
  }
  if (i >= text.length) throw new SyntaxError('the array is not closed')
  if (skipSpace(text, i + 1) !== text.length) throw new SyntaxError('the array is followed by something else')
  if (i > start) yield trimmed(text, start, i)
}

function trimmed(text: string, start: number, end: number): string {
  let last = end
  while (last > start && isSpace(text.charCodeAt(last - 1))) last--
  return text.slice(start, last)
}

/** UTF-8 bytes of `JSON.stringify(text)`, its quotes included. A lone surrogate counts as its escape of six bytes. */
export function jsonStringBytes(text: string): number {
  const length = text.length
  let bytes = 2
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x80) {
      if (code >= 0x20) bytes += code === QUOTE || code === BACKSLASH ? 2 : 1
      // \b \t \n \f \r have short escapes, the other control characters \u00xx.
      else bytes += (code >= 0x08 && code <= 0x0a) || code === 0x0c || code === 0x0d ? 2 : 6
    } else if (code < 0x800) {
      bytes += 2
    } else if (isSurrogate(code)) {
      if (isPair(text, i, code)) {
        bytes += 4
        i++
      } else bytes += 6
    } else bytes += 3
  }
  return bytes
}

/** UTF-8 bytes of the text. A lone surrogate counts as the three bytes of the replacement character. */
export function utf8Bytes(text: string): number {
  const length = text.length
  let bytes = length
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x80) continue
    if (code < 0x800) bytes += 1
    else {
      bytes += 2
      // A pair is four bytes for two units: its second unit adds nothing.
      if (isSurrogate(code) && isPair(text, i, code)) i++
    }
  }
  return bytes
}

/** Whether the text takes more than `limit` bytes as UTF-8; the text is walked through only when its length leaves a doubt. */
export function exceedsUtf8(text: string, limit: number): boolean {
  if (text.length > limit) return true
  return text.length * 3 > limit && utf8Bytes(text) > limit
}

function isSurrogate(code: number): boolean {
  return (code & 0xf800) === 0xd800
}

function isPair(text: string, at: number, code: number): boolean {
  return code < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
}
