/** Owns the event: its envelope, its limits, the packable deltas among the chunks, and the one text of each. */
import { compactJson, exceedsUtf8, type JsonMember, type JsonValue, scanObject } from './json-text.ts'
import { Problem } from './problem.ts'

export type { JsonValue } from './json-text.ts'

/** The limits of the formats. Bytes are UTF-8 bytes without the line's newline. */
export const LIMITS = {
  /** of one line that is sent in */
  lineBytes: 8 * 1024 * 1024,
  /** levels of nesting of an event; its envelope is level 1 */
  depth: 512,
  /** characters (Unicode code points) of an event's type; at least one */
  typeLength: 200,
  /** members of a row that is written */
  rowMembers: 4096,
  /** bytes of a row's line that is written */
  rowBytes: 1024 * 1024,
  /** what a line of the service's own output may have beyond `lineBytes`: the record around the event, and its number */
  readerExtraBytes: 1024,
  /** the record around the event */
  readerExtraDepth: 1,
} as const

/** The surface operation: the entry joins the end, or takes the place of the entries from `start` to `end`, both included. */
export type SurfaceOp = 'append' | { op: 'replace'; start: number; end: number }

export interface SessionEvent {
  /** 1 to 200 characters; an open set, see `isReservedType` for what is not in it */
  type: string
  /** safe integer >= 0 */
  seq: number
  /** epoch milliseconds, a safe integer; may step backwards */
  time: number
  data: JsonValue
  ignorable?: true
  /** earlier seqs without duplicates; only on the surface types, empty only on `assistant/message` */
  sourceEventSeqs?: number[]
  /** only on the surface types */
  surfaceOp?: SurfaceOp
}

export type DeltaKind = 'text-delta' | 'reasoning-delta' | 'tool-call-delta'

/** A packable chunk without its place in the log. `id` is a string exactly for tool calls. */
export interface Delta {
  kind: DeltaKind
  turn: number
  step: number
  index: number
  id: string | undefined
  name: string | undefined
  fragment: string
}

/** An event as text, looked through once. */
export interface EventText {
  type: string
  /** undefined: whoever takes the event numbers it */
  seq: number | undefined
  /** undefined only together with `seq`: whoever numbers the event stamps it as well */
  time: number | undefined
  /** compact, otherwise exactly as sent; the canonical text for a delta that has its seq */
  text: string
  /** set when the whole shape is that of a packable delta */
  delta: Delta | undefined
  sourceEventSeqs: readonly number[] | undefined
  surfaceOp: SurfaceOp | undefined
}

/** The types that may carry `surfaceOp` and `sourceEventSeqs`. */
export const SURFACE_TYPES: ReadonlySet<string> = new Set(['user/message', 'assistant/message', 'tool/result'])

const RESERVED_TYPES: ReadonlySet<string> = new Set([
  'session',
  'event',
  'chunks',
  'omitted',
  'end',
  'text-chunks',
  'reasoning-chunks',
  'tool-call-chunks',
])

/** Whether the type is a word of the formats themselves, which no event may have. */
export function isReservedType(type: string): boolean {
  return RESERVED_TYPES.has(type) || type.startsWith('chunkrow/')
}

/** No leading zero, no point, no exponent; `-0` is left out by the caller. */
const PLAIN_INTEGER = /^-?(?:0|[1-9]\d{0,15})$/
/**
 * Other spellings of an integer: zeros after the point, an exponent that is not negative. What they stand for is an
 * integer by arithmetic, not by rounding (as `1.00000000000000001` or `1e-400` would be), so a delta may be packed.
 */
const INTEGER_VALUE = /^-?\d{1,16}(?:\.0+)?(?:[eE]\+?\d{1,2})?$/

function invalid(path: string, detail: string, facts?: { limit: number }): Problem {
  return new Problem('event/invalid', detail, { path, ...facts })
}

/** A JSON pointer of one step. */
function pointer(key: string): string {
  return `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

export interface EventTextOptions {
  /** most UTF-8 bytes; default LIMITS.lineBytes */
  lineBytes?: number
  /** most levels of nesting; default LIMITS.depth */
  depth?: number
  /** `seq` and `time` must be there */
  numbered?: boolean
}

/**
 * Looks through the JSON text of one event. Throws Problem: `event/invalid` with `path` for text that is no event,
 * `request/too-large` with `limit` for more than `lineBytes` bytes.
 */
export function parseEventText(text: string, options?: EventTextOptions): EventText {
  const lineBytes = options?.lineBytes ?? LIMITS.lineBytes
  if (exceedsUtf8(text, lineBytes)) {
    throw new Problem('request/too-large', `an event takes more than ${lineBytes} bytes`, { limit: lineBytes })
  }
  const depth = options?.depth ?? LIMITS.depth
  const event = (depth >= DELTA_DEPTH ? recogniseDelta(text) : undefined) ?? parseAnyEvent(text, depth)
  if (options?.numbered === true && event.seq === undefined) throw invalid('/seq', 'seq is missing')
  return event
}

function parseAnyEvent(text: string, maxDepth: number): EventText {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new Problem('event/invalid', `not JSON: ${(cause as Error).message}`, { path: '' }, { cause })
  }
  if (!isObject(value)) throw invalid('', `an event must be an object, got ${nameOf(value)}`)
  const { text: compact, members, depth, keys } = scanObject(text)
  const seen = new Map<string, JsonMember>()
  for (const member of members) {
    if (seen.has(member.key)) throw invalid(pointer(member.key), `the key ${quoted(member.key)} is given twice`)
    seen.set(member.key, member)
  }
  if (depth > maxDepth) {
    const deep = members.find(({ start, end }) => compactJson(compact.slice(start, end)).depth >= maxDepth)
    throw tooDeep(deep === undefined ? '' : pointer(deep.key), maxDepth)
  }

  const type = checkType(value.type)
  const seq = placeOf('seq', value, compact, seen)
  const time = placeOf('time', value, compact, seen)
  if (seq !== undefined && seq < 0) throw invalid('/seq', `seq must not be negative, got ${seq}`)
  if (seq !== undefined && time === undefined) throw invalid('/time', 'seq is given without time')
  checkRest(type, value)
  const surfaceOp = value.surfaceOp as SurfaceOp | undefined
  const op = seen.get('surfaceOp')
  // Outside `data` nothing may be given twice: `JSON.parse` kept one of them, and a reader may keep the other.
  if (typeof surfaceOp === 'object' && op && scanObject(compact.slice(op.start, op.end)).members.length !== 3) {
    throw invalid('/surfaceOp', 'a key of surfaceOp is given twice')
  }
  const delta = type === CHUNK_TYPE ? deltaOfText(value, compact, keys, seen) : undefined
  const event: EventText = {
    type,
    seq,
    time,
    text: delta !== undefined && seq !== undefined ? deltaText(delta, seq, time!) : compact,
    delta,
    sourceEventSeqs: value.sourceEventSeqs as number[] | undefined,
    surfaceOp,
  }
  if (seq !== undefined) checkSources(event, seq)
  return event
}

/** `seq` or `time`, judged by its text: `1.0` and `1e3` would not come back as they were sent. */
function placeOf(
  key: 'seq' | 'time',
  value: Record<string, unknown>,
  compact: string,
  members: ReadonlyMap<string, JsonMember>,
): number | undefined {
  const member = members.get(key)
  if (member === undefined) return undefined
  const text = compact.slice(member.start, member.end)
  const number = value[key] as number
  if (!PLAIN_INTEGER.test(text) || text === '-0' || !Number.isSafeInteger(number)) {
    throw invalid(`/${key}`, `${key} must be a safe integer in plain decimal digits, got ${shortened(text)}`)
  }
  return number
}

function checkType(type: unknown): string {
  if (typeof type !== 'string') throw invalid('/type', `type must be a string, got ${nameOf(type)}`)
  if (type === '') throw invalid('/type', 'type must not be empty')
  if (isLongerThan(type, LIMITS.typeLength)) {
    throw invalid('/type', `type is longer than ${LIMITS.typeLength} characters`, { limit: LIMITS.typeLength })
  }
  if (isReservedType(type)) throw invalid('/type', `the type ${quoted(type)} is reserved`)
  return type
}

/** Whether the text has more than `limit` code points. */
function isLongerThan(text: string, limit: number): boolean {
  if (text.length <= limit) return false
  return text.length > 2 * limit || Array.from(text).length > limit
}

/** All of the envelope but type, seq and time. */
function checkRest(type: string, value: Record<string, unknown>): void {
  if (!Object.hasOwn(value, 'data') || value.data === undefined) throw invalid('/data', 'data is missing')
  const { ignorable, sourceEventSeqs, surfaceOp } = value
  if (ignorable !== undefined && ignorable !== true) {
    throw invalid('/ignorable', `ignorable must be true when it is given, got ${nameOf(ignorable)}`)
  }
  if (sourceEventSeqs === undefined && surfaceOp === undefined) return
  if (!SURFACE_TYPES.has(type)) {
    const key = surfaceOp !== undefined ? 'surfaceOp' : 'sourceEventSeqs'
    throw invalid(`/${key}`, `an event of type ${quoted(type)} must not carry ${key}`)
  }
  if (surfaceOp !== undefined) checkSurfaceOp(surfaceOp)
  if (sourceEventSeqs !== undefined) checkSourceEventSeqs(type, sourceEventSeqs)
}

function checkSurfaceOp(value: unknown): void {
  if (value === 'append') return
  if (!isObject(value) || value.op !== 'replace') {
    throw invalid('/surfaceOp', "surfaceOp must be 'append' or { op: 'replace', start, end }")
  }
  for (const key of ['start', 'end'] as const) {
    if (!isSeq(value[key])) throw invalid(`/surfaceOp/${key}`, `${key} must be the seq of a surface entry`)
  }
  if (Object.keys(value).length !== 3) throw invalid('/surfaceOp', 'surfaceOp has keys beside op, start and end')
}

function checkSourceEventSeqs(type: string, value: unknown): void {
  if (!Array.isArray(value)) throw invalid('/sourceEventSeqs', `expected an array, got ${nameOf(value)}`)
  if (value.length === 0 && type !== 'assistant/message') {
    throw invalid('/sourceEventSeqs', 'it may be empty only on assistant/message')
  }
  // A message may name each of its many thousand tokens. They mostly rise, and what rises holds nothing twice.
  let highest = -1
  let seen: Set<number> | undefined
  for (let at = 0; at < value.length; at++) {
    const seq: unknown = value[at]
    if (!isSeq(seq)) {
      throw invalid(`/sourceEventSeqs/${at}`, `expected a seq, got ${typeof seq === 'number' ? seq : nameOf(seq)}`)
    }
    if (seen === undefined && seq > highest) {
      highest = seq
      continue
    }
    seen ??= new Set(value.slice(0, at))
    if (seen.has(seq)) throw invalid(`/sourceEventSeqs/${at}`, `the seq ${seq} is given twice`)
    seen.add(seq)
  }
}

/**
 * Checks what can only be checked against the event's own seq: its sources and the surface entries that it replaces
 * are earlier. `parseEventText` has done it for an event that came with its seq. Throws Problem `event/invalid`.
 */
export function checkSources(
  event: {
    readonly sourceEventSeqs?: readonly number[] | undefined
    readonly surfaceOp?: SurfaceOp | undefined
  },
  seq: number,
): void {
  const { sourceEventSeqs, surfaceOp } = event
  if (sourceEventSeqs !== undefined) {
    const at = sourceEventSeqs.findIndex((source) => source >= seq)
    if (at !== -1) {
      throw invalid(`/sourceEventSeqs/${at}`, `the source ${sourceEventSeqs[at]} is not earlier than ${seq}`)
    }
  }
  if (typeof surfaceOp !== 'object') return
  for (const key of ['start', 'end'] as const) {
    const entry = surfaceOp[key]
    if (entry >= seq) throw invalid(`/surfaceOp/${key}`, `the entry ${entry} is not earlier than ${seq}`)
  }
}

/**
 * The text of the event at its place in the log. `time` stamps an event that has none. What is given is written
 * directly after the opening brace; a delta has its canonical text.
 */
export function numberEvent(event: EventText, seq: number, time: number): string {
  if (event.seq !== undefined) return event.text
  if (event.delta !== undefined) return deltaText(event.delta, seq, event.time ?? time)
  const given = event.time === undefined ? `{"seq":${seq},"time":${time},` : `{"seq":${seq},`
  // An event has a type and data, so something always follows the comma.
  return given + event.text.slice(1)
}

// ---- deltas -------------------------------------------------------------------------------------------------------

const CHUNK_TYPE = 'assistant/chunk'
/** envelope, data, chunk */
const DELTA_DEPTH = 3

/** The one text of a packable delta: `JSON.stringify` of its keys in their documented order. */
export function deltaText(delta: Delta, seq: number, time: number): string {
  const { kind, turn, step, index, id, name, fragment } = delta
  const head = `{"type":"assistant/chunk","seq":${seq},"time":${time},"data":{"turn":${turn},"step":${step},"chunk":{"type":"${kind}","index":${index},`
  if (kind !== 'tool-call-delta') return `${head}"text":${JSON.stringify(fragment)}}}}`
  const named = name === undefined ? '' : `"name":${JSON.stringify(name)},`
  return `${head}"id":${JSON.stringify(id)},${named}"argumentsDelta":${JSON.stringify(fragment)}}}}`
}

/** The event of a delta at its place, its keys in the documented order. */
export function deltaEvent(delta: Delta, seq: number, time: number): SessionEvent {
  const { kind, turn, step, index, id, name, fragment } = delta
  const chunk: JsonValue =
    kind !== 'tool-call-delta'
      ? { type: kind, index, text: fragment }
      : name === undefined
        ? { type: kind, index, id: id!, argumentsDelta: fragment }
        : { type: kind, index, id: id!, name, argumentsDelta: fragment }
  return { type: CHUNK_TYPE, seq, time, data: { turn, step, chunk } }
}

/** The delta of a parsed event whose whole shape is that of a packable one, else undefined. */
export function deltaOf(event: SessionEvent): Delta | undefined {
  if (event.type !== CHUNK_TYPE || Object.keys(event).length !== 4) return undefined
  if (!isPlace(event.seq) || event.seq < 0 || !isPlace(event.time)) return undefined
  return Object.hasOwn(event, 'data') ? deltaOfData(event.data) : undefined
}

function deltaOfData(data: unknown): Delta | undefined {
  if (!isObject(data) || Object.keys(data).length !== 3) return undefined
  const { turn, step, chunk } = data
  if (!isPlace(turn) || !isPlace(step) || !isObject(chunk)) return undefined
  const { type, index, id, name } = chunk
  if (!isPlace(index)) return undefined
  const size = Object.keys(chunk).length
  if (type === 'text-delta' || type === 'reasoning-delta') {
    const { text } = chunk
    if (size !== 3 || typeof text !== 'string') return undefined
    return { kind: type, turn, step, index, id: undefined, name: undefined, fragment: text }
  }
  if (type !== 'tool-call-delta') return undefined
  const { argumentsDelta } = chunk
  if (typeof id !== 'string' || typeof argumentsDelta !== 'string') return undefined
  if (name === undefined ? size !== 4 : size !== 5 || typeof name !== 'string') return undefined
  return { kind: type, turn, step, index, id, name: name as string | undefined, fragment: argumentsDelta }
}

/** The same for an event given as text, whose `seq` and `time` are judged already and may be absent. */
function deltaOfText(
  value: Record<string, unknown>,
  compact: string,
  keys: number,
  members: ReadonlyMap<string, JsonMember>,
): Delta | undefined {
  const envelope = 2 + Number(members.has('seq')) + Number(members.has('time'))
  if (members.size !== envelope) return undefined
  const delta = deltaOfData(value.data)
  if (delta === undefined) return undefined
  // A key given twice, at any level, shows in the count: the shape fixes how many there are.
  const chunkKeys = delta.kind !== 'tool-call-delta' ? 3 : delta.name === undefined ? 4 : 5
  if (keys !== envelope + 3 + chunkKeys) return undefined
  const data = members.get('data')!
  const dataText = scanObject(compact.slice(data.start, data.end))
  for (const { key, start, end } of dataText.members) {
    const text = dataText.text.slice(start, end)
    if (key !== 'chunk') {
      if (!INTEGER_VALUE.test(text)) return undefined
      continue
    }
    const chunkText = scanObject(text)
    const index = chunkText.members.find((member) => member.key === 'index')!
    if (!INTEGER_VALUE.test(text.slice(index.start, index.end))) return undefined
  }
  return delta
}

/**
 * Takes text that is already the canonical text of a delta, with or without its seq and time, and nothing else:
 * undefined says only that `parseAnyEvent` must look. Appends are mostly such lines, and this costs a fraction of
 * parsing and scanning them.
 */
export function recogniseDelta(text: string): EventText | undefined {
  if (!text.startsWith(HEAD)) return undefined
  at = HEAD.length
  let seq: number | undefined
  let time: number | undefined
  if (text.startsWith(SEQ, at)) {
    at += SEQ.length
    seq = readInteger(text)
    // Without a time behind it, it is for `parseAnyEvent` to refuse; `!(>=)` is true of NaN too.
    if (!(seq >= 0) || !text.startsWith(TIME, at)) return undefined
  }
  if (text.startsWith(TIME, at)) {
    at += TIME.length
    time = readInteger(text)
    if (Number.isNaN(time)) return undefined
  }
  const turn = readAfter(text, TURN)
  const step = readAfter(text, STEP)
  if (Number.isNaN(turn) || Number.isNaN(step) || !text.startsWith(CHUNK, at)) return undefined
  at += CHUNK.length
  let kind: DeltaKind
  if (text.startsWith(TEXT_KIND, at)) {
    kind = 'text-delta'
    at += TEXT_KIND.length
  } else if (text.startsWith(REASONING_KIND, at)) {
    kind = 'reasoning-delta'
    at += REASONING_KIND.length
  } else if (text.startsWith(TOOL_KIND, at)) {
    kind = 'tool-call-delta'
    at += TOOL_KIND.length
  } else return undefined
  const index = readAfter(text, INDEX)
  if (Number.isNaN(index)) return undefined
  let id: string | undefined
  let name: string | undefined
  let fragment: string | undefined
  if (kind !== 'tool-call-delta') {
    fragment = readStringAfter(text, TEXT)
  } else {
    id = readStringAfter(text, ID)
    if (id === undefined) return undefined
    if (text.startsWith(NAME, at)) {
      name = readStringAfter(text, NAME)
      if (name === undefined) return undefined
    }
    fragment = readStringAfter(text, ARGUMENTS)
  }
  if (fragment === undefined || text.length !== at + 3 || !text.endsWith('}}}')) return undefined
  const delta = { kind, turn, step, index, id, name, fragment }
  return { type: CHUNK_TYPE, seq, time, text, delta, sourceEventSeqs: undefined, surfaceOp: undefined }
}

const HEAD = '{"type":"assistant/chunk"'
const SEQ = ',"seq":'
const TIME = ',"time":'
const TURN = ',"data":{"turn":'
const STEP = ',"step":'
const CHUNK = ',"chunk":{"type":"'
const TEXT_KIND = 'text-delta"'
const REASONING_KIND = 'reasoning-delta"'
const TOOL_KIND = 'tool-call-delta"'
const INDEX = ',"index":'
const TEXT = ',"text":'
const ID = ',"id":'
const NAME = ',"name":'
const ARGUMENTS = ',"argumentsDelta":'

/** Where the recogniser stands. A variable of the module, so that the readers can return plain values. */
let at = 0

function readAfter(text: string, literal: string): number {
  if (!text.startsWith(literal, at)) return Number.NaN
  at += literal.length
  return readInteger(text)
}

/** A safe integer in plain decimal digits, not `-0`; NaN for anything else. */
function readInteger(text: string): number {
  const negative = text.charCodeAt(at) === 0x2d
  if (negative) at++
  const first = at
  let value = 0
  for (;;) {
    const digit = text.charCodeAt(at) - 0x30
    if (!(digit >= 0 && digit <= 9)) break
    value = value * 10 + digit
    at++
  }
  const digits = at - first
  if (digits === 0 || value > Number.MAX_SAFE_INTEGER) return Number.NaN
  if (text.charCodeAt(first) === 0x30 && (digits > 1 || negative)) return Number.NaN
  return negative ? -value : value
}

/** Up to this length V8 copies a slice; a longer one would hold the whole text, and what that was cut from, alive. */
const COPIED_SLICE = 12

/** A string that is spelled as `JSON.stringify` spells it, else undefined. */
function readStringAfter(text: string, literal: string): string | undefined {
  if (!text.startsWith(literal, at)) return undefined
  const open = at + literal.length
  if (text.charCodeAt(open) !== 0x22) return undefined
  let plain = true
  let i = open + 1
  for (; ; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) break
    // Not a number at the end of the text: not >= either.
    if (!(code >= 0x20)) return undefined
    if (code === 0x5c) {
      plain = false
      i++
    } else if ((code & 0xf800) === 0xd800) plain = false
  }
  at = i + 1
  if (plain && i - open - 1 <= COPIED_SLICE) return text.slice(open + 1, i)
  const spelled = text.slice(open, at)
  try {
    const value = JSON.parse(spelled) as string
    return plain || JSON.stringify(value) === spelled ? value : undefined
  } catch {
    return undefined
  }
}

// ---- parsed events ------------------------------------------------------------------------------------------------

/**
 * Checks a parsed event and returns it: the envelope, and that it nests no deeper than `depth` levels. Throws Problem
 * `event/invalid` with `path`. Numbers are judged by value, since their text is gone, and `data` may hold the Infinity
 * that `JSON.parse` makes of `1e400`; `eventText` is what refuses it.
 */
export function validateEvent(value: unknown, options?: { depth?: number }): SessionEvent {
  if (!isObject(value)) throw invalid('', `an event must be an object, got ${nameOf(value)}`)
  const event = value as unknown as SessionEvent
  if (deltaOf(event) !== undefined) return event
  const type = checkType(value.type)
  if (!isSeq(value.seq)) throw invalid('/seq', `seq must be a safe integer, not negative, got ${nameOf(value.seq)}`)
  if (!isPlace(value.time)) throw invalid('/time', `time must be a safe integer, got ${nameOf(value.time)}`)
  checkRest(type, value)
  checkSources(event, value.seq)
  const depth = options?.depth ?? LIMITS.depth
  for (const key of Object.keys(value)) {
    if (isDeeperThan(value[key], depth - 1)) throw tooDeep(pointer(key), depth)
  }
  return event
}

/**
 * The JSON text of a parsed event, checked as `validateEvent` does. Throws Problem `event/invalid` with the path of
 * what JSON cannot carry (Infinity, NaN, undefined in an array, a function, an object with a class), which
 * `JSON.stringify` would change without a word; `-0` keeps its sign. A member that is undefined is left out.
 */
export function eventText(event: SessionEvent): string {
  validateEvent(event)
  const delta = deltaOf(event)
  return delta !== undefined ? deltaText(delta, event.seq, event.time) : exactText(event, '')
}

function exactText(value: unknown, path: string): string {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return JSON.stringify(value)
    case 'number':
      if (!Number.isFinite(value)) throw invalid(path, `JSON has no number ${value}`)
      return Object.is(value, -0) ? '-0' : String(value)
    case 'object': {
      if (value === null) return 'null'
      if (Array.isArray(value)) {
        return `[${Array.from(value, (item, index) => exactText(item, `${path}/${index}`)).join(',')}]`
      }
      const prototype = Object.getPrototypeOf(value)
      if (prototype !== null && Object.getPrototypeOf(prototype) !== null) break
      const members = Object.entries(value)
        // The one thing that JSON.stringify may leave out: to give undefined for an optional field is a common habit.
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => `${JSON.stringify(key)}:${exactText(item, path + pointer(key))}`)
      return `{${members.join(',')}}`
    }
  }
  throw invalid(path, `JSON cannot carry this: ${nameOf(value)}`)
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((item) => isDeeperThan(item, levels - 1))
  // Only own keys: the object may come from anywhere.
  return Object.values(value).some((item) => isDeeperThan(item, levels - 1))
}

function tooDeep(path: string, limit: number): Problem {
  return invalid(path, `nested deeper than ${limit} levels`, { limit })
}

/** A safe integer that is not `-0`, which would come back without its sign. */
function isPlace(value: unknown): value is number {
  return Number.isSafeInteger(value) && !Object.is(value, -0)
}

function isSeq(value: unknown): value is number {
  return isPlace(value) && value >= 0
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What came, for a sentence: its kind and not its content, which may be long. */
function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (value === undefined) return 'nothing'
  if (typeof value === 'number') return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function quoted(text: string): string {
  return JSON.stringify(shortened(text))
}

function shortened(text: string): string {
  return text.length <= 40 ? text : `${text.slice(0, 40)}…`
}
