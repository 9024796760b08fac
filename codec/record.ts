// Owns the record: one NDJSON line of history, which is an event, a row or an omitted range. What makes one valid,
// which seqs it covers, its text, and how a line that a producer sends is told apart.
//
//   {"type":"event","event":{"type":…,"seq":…,"time":…,"data":…}}
//   {"type":"chunks","event":{"type":"chunkrow/text-chunks","seq":…,"time":…,
//     "data":{"turn":…,"step":…,"index":…,"dt":[…],"texts":[…]}}}
//   {"type":"chunks","event":{"type":"chunkrow/tool-call-chunks","seq":…,"time":…,
//     "data":{"turn":…,"step":…,"index":…,"id":…,"name":…,"dt":[…],"args":[…]}}}      "name" may be absent
//   {"type":"omitted","event":{"type":"chunkrow/omitted","seq":…,"time":…,"data":{"count":…}}}

import type { DeltaKind, EventText, EventTextOptions, SessionEvent } from './event.ts'
import { deltaEvent, LIMITS, parseEventText, validateEvent } from './event.ts'
import { exceedsUtf8, scanObject } from './json-text.ts'
import { Problem } from './problem.ts'

/** A run of text or reasoning deltas as one value. `seq` and `time` are the first member's. */
export interface TextRow {
  type: 'chunkrow/text-chunks' | 'chunkrow/reasoning-chunks'
  seq: number
  time: number
  data: {
    turn: number
    step: number
    index: number
    /** milliseconds from each member to the next, one fewer than there are members; may be negative */
    dt: number[]
    texts: string[]
  }
}

/** A run of tool-call deltas as one value. `name` is absent when no member gave one. */
export interface ToolCallRow {
  type: 'chunkrow/tool-call-chunks'
  seq: number
  time: number
  data: { turn: number; step: number; index: number; id: string; name?: string; dt: number[]; args: string[] }
}

export type ChunkRowEvent = TextRow | ToolCallRow

/** `count` consecutive events from `seq` on that were left out because the reader asked for it. */
export interface OmittedEvent {
  type: 'chunkrow/omitted'
  seq: number
  time: number
  data: { count: number }
}

export type SessionHistoryRecord =
  | { type: 'event'; event: SessionEvent }
  | { type: 'chunks'; event: ChunkRowEvent }
  | { type: 'omitted'; event: OmittedEvent }

/** Seqs of a log: `from` is included, `to` is not. */
export interface Range {
  from: number
  to: number
}

/** One line of an append body, checked. */
export type InputItem = { kind: 'event'; event: EventText } | { kind: 'row'; row: ChunkRowEvent }

/** The row type of each kind of delta, and the delta kind of each row type. */
export const ROW_TYPES = {
  'text-delta': 'chunkrow/text-chunks',
  'reasoning-delta': 'chunkrow/reasoning-chunks',
  'tool-call-delta': 'chunkrow/tool-call-chunks',
} as const satisfies Record<DeltaKind, ChunkRowEvent['type']>

const DELTA_KINDS: Record<ChunkRowEvent['type'], DeltaKind> = {
  'chunkrow/text-chunks': 'text-delta',
  'chunkrow/reasoning-chunks': 'reasoning-delta',
  'chunkrow/tool-call-chunks': 'tool-call-delta',
}

/** Rows of fewer members are events. */
export const ROW_LEAST_MEMBERS = 3

export function rowKind(row: ChunkRowEvent): DeltaKind {
  return DELTA_KINDS[row.type]
}

/** The members' fragments, whichever kind of row it is. The row's own array, not a copy. */
export function rowFragments(row: ChunkRowEvent): string[] {
  return row.type === 'chunkrow/tool-call-chunks' ? row.data.args : row.data.texts
}

/** The seqs that a valid record covers. */
export function recordRange(record: SessionHistoryRecord): Range {
  const from = record.event.seq
  if (record.type === 'event') return { from, to: from + 1 }
  if (record.type === 'chunks') return { from, to: from + rowFragments(record.event).length }
  return { from, to: from + record.event.data.count }
}

// ---------------------------------------------------------------------------------------------------------------
// Validation
// ---------------------------------------------------------------------------------------------------------------

/**
 * Checks a parsed record and gives it back. Time is linear in the members of a row; nothing is allocated for them.
 * Throws `record/malformed` (an event inside: `event/invalid`) with `path`, a JSON pointer from the record.
 */
export function validateRecord(value: unknown): SessionHistoryRecord {
  const record = plainObject(value, '')
  const type = record.type
  if (type !== 'event' && type !== 'chunks' && type !== 'omitted') {
    throw malformed('/type', `the type of a record is "event", "chunks" or "omitted", not ${shown(type)}`)
  }
  exactKeys(record, RECORD_KEYS, NO_KEYS, '')
  if (type === 'event') belowEvent(() => validateEvent(record.event))
  else if (type === 'chunks') checkRow(record.event, '/event')
  else checkOmitted(record.event, '/event')
  return value as SessionHistoryRecord
}

/** Checks a parsed row and gives it back. Throws `record/malformed` with `path`, a JSON pointer from the row. */
export function validateRow(value: unknown): ChunkRowEvent {
  checkRow(value, '')
  return value as ChunkRowEvent
}

const NO_KEYS: readonly string[] = []
const RECORD_KEYS = ['type', 'event']
const EVENT_KEYS = ['type', 'seq', 'time', 'data']
const TEXT_DATA_KEYS = ['turn', 'step', 'index', 'dt', 'texts']
const TOOL_CALL_DATA_KEYS = ['turn', 'step', 'index', 'id', 'dt', 'args']
const NAME_KEY = ['name']

function checkRow(value: unknown, path: string): void {
  const row = plainObject(value, path)
  if (typeof row.type !== 'string' || !Object.hasOwn(DELTA_KINDS, row.type)) {
    throw malformed(`${path}/type`, `the type of a row is one of ${Object.keys(DELTA_KINDS).join(', ')}`)
  }
  exactKeys(row, EVENT_KEYS, NO_KEYS, path)
  checkRowParts(row.type as ChunkRowEvent['type'], row.seq, row.time, row.data, {
    seq: `${path}/seq`,
    time: `${path}/time`,
    data: `${path}/data`,
  })
}

/** The paths by which a row's parts are named in an error: the storage form calls two of them otherwise. */
export interface RowPaths {
  seq: string
  time: string
  data: string
}

/**
 * Checks the parts of a row before they are put together. Throws `record/malformed`.
 * Sums of two safe integers are exact, or round to another integer that is not safe; so each step is checked as it is.
 */
export function checkRowParts(
  type: ChunkRowEvent['type'],
  seq: unknown,
  time: unknown,
  value: unknown,
  paths: RowPaths,
): void {
  safeSeq(seq, paths.seq)
  safeInteger(time, paths.time)
  const data = plainObject(value, paths.data)
  const isToolCall = type === 'chunkrow/tool-call-chunks'
  const fragmentsKey = isToolCall ? 'args' : 'texts'
  exactKeys(data, isToolCall ? TOOL_CALL_DATA_KEYS : TEXT_DATA_KEYS, isToolCall ? NAME_KEY : NO_KEYS, paths.data)
  safeInteger(data.turn, `${paths.data}/turn`)
  safeInteger(data.step, `${paths.data}/step`)
  safeInteger(data.index, `${paths.data}/index`)
  if (isToolCall) {
    text(data.id, `${paths.data}/id`)
    if (Object.hasOwn(data, 'name')) text(data.name, `${paths.data}/name`)
  }

  const { dt, [fragmentsKey]: fragments } = data
  if (!Array.isArray(dt)) throw malformed(`${paths.data}/dt`, 'dt must be an array')
  const fragmentsPath = `${paths.data}/${fragmentsKey}`
  if (!Array.isArray(fragments)) throw malformed(fragmentsPath, `${fragmentsKey} must be an array`)
  const members = fragments.length
  if (members === 0) throw malformed(fragmentsPath, 'a row has at least one member')
  if (dt.length !== members - 1) {
    throw malformed(
      `${paths.data}/dt`,
      `dt must have one entry fewer than ${fragmentsKey} (${members - 1}), not ${dt.length}`,
    )
  }
  // The brackets matter: the sum with `members` alone may be rounded, and rounded back into the safe range.
  if (!Number.isSafeInteger(seq + (members - 1))) {
    throw malformed(paths.seq, `seq ${seq} of a row of ${members} members runs past the largest safe integer`)
  }
  let at = time
  for (let k = 0; k < dt.length; k++) {
    const gap = dt[k]
    // Asked in this order because a path is text, and text for each of a million good gaps would be dear.
    if (!isSafe(gap)) safeInteger(gap, `${paths.data}/dt/${k}`)
    at += gap as number
    if (!Number.isSafeInteger(at)) {
      throw malformed(`${paths.data}/dt/${k}`, `the time of member ${k + 1} is not a safe integer`)
    }
  }
  for (let k = 0; k < members; k++) {
    if (typeof fragments[k] !== 'string') text(fragments[k], `${fragmentsPath}/${k}`)
  }
}

function checkOmitted(value: unknown, path: string): void {
  const event = plainObject(value, path)
  if (event.type !== 'chunkrow/omitted') {
    throw malformed(`${path}/type`, `the type of an omitted range is "chunkrow/omitted", not ${shown(event.type)}`)
  }
  exactKeys(event, EVENT_KEYS, NO_KEYS, path)
  safeSeq(event.seq, `${path}/seq`)
  safeInteger(event.time, `${path}/time`)
  const data = plainObject(event.data, `${path}/data`)
  exactKeys(data, ['count'], NO_KEYS, `${path}/data`)
  safeInteger(data.count, `${path}/data/count`)
  if (data.count < 1) throw malformed(`${path}/data/count`, 'an omitted range holds at least one event')
  if (!Number.isSafeInteger(event.seq + (data.count - 1))) {
    throw malformed(`${path}/data/count`, 'the omitted range runs past the largest safe integer')
  }
}

function malformed(path: string, reason: string): Problem {
  return new Problem('record/malformed', path === '' ? reason : `${path}: ${reason}`, { path })
}

function plainObject(value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw malformed(path, `expected an object, got ${shown(value)}`)
  }
  return value as Record<string, unknown>
}

/** Own enumerable keys only: those are what a text of the value would show. `__proto__` is a key like others here. */
function exactKeys(
  value: Record<string, unknown>,
  required: readonly string[],
  optional: readonly string[],
  path: string,
): void {
  const keys = Object.keys(value)
  for (const key of keys) {
    if (!required.includes(key) && !optional.includes(key)) {
      throw malformed(`${path}/${pointerToken(key)}`, 'this key does not belong here')
    }
  }
  for (const key of required) {
    if (!keys.includes(key)) throw malformed(`${path}/${key}`, `the key "${key}" is missing`)
  }
}

function isSafe(value: unknown): value is number {
  return Number.isSafeInteger(value) && !Object.is(value, -0)
}

function safeInteger(value: unknown, path: string): asserts value is number {
  if (!isSafe(value)) throw malformed(path, `expected a safe integer, got ${shown(value)}`)
}

function safeSeq(value: unknown, path: string): asserts value is number {
  if (!isSafe(value) || value < 0) throw malformed(path, `expected a safe integer of at least 0, got ${shown(value)}`)
}

function text(value: unknown, path: string): asserts value is string {
  if (typeof value !== 'string') throw malformed(path, `expected a string, got ${shown(value)}`)
}

function shown(value: unknown): string {
  if (typeof value === 'string')
    return value.length > 40 ? `${JSON.stringify(value.slice(0, 40))}…` : JSON.stringify(value)
  if (Object.is(value, -0)) return '-0'
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  return String(value)
}

export function pointerToken(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1')
}

/** Runs a check of the event inside a record; a path that it names is told from the record. */
function belowEvent<T>(check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (error instanceof Problem) throw error.withFacts({ path: `/event${error.facts.path ?? ''}` })
    throw error
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Text
// ---------------------------------------------------------------------------------------------------------------

export const EVENT_LINE_START = '{"type":"event","event":'
export const ROW_LINE_START = '{"type":"chunks","event":'

/** The record line, without newline, of an event whose compact text is given. */
export function eventRecordLine(eventText: string): string {
  return `${EVENT_LINE_START}${eventText}}`
}

/** `JSON.stringify` of a row with its keys in the documented order, whatever their order in the value. */
export function rowText(row: ChunkRowEvent): string {
  const { data } = row
  return row.type === 'chunkrow/tool-call-chunks'
    ? rowTextOf(
        'tool-call-delta',
        row.seq,
        row.time,
        data.turn,
        data.step,
        data.index,
        row.data.id,
        row.data.name,
        data.dt,
        row.data.args,
      )
    : rowTextOf(
        rowKind(row),
        row.seq,
        row.time,
        data.turn,
        data.step,
        data.index,
        undefined,
        undefined,
        data.dt,
        row.data.texts,
      )
}

/** The text of a row from its parts. `id` and `name` count for tool calls only. */
export function rowTextOf(
  kind: DeltaKind,
  seq: number,
  time: number,
  turn: number,
  step: number,
  index: number,
  id: string | undefined,
  name: string | undefined,
  dt: readonly number[],
  fragments: readonly string[],
): string {
  const head = `{"type":"${ROW_TYPES[kind]}","seq":${seq},"time":${time},"data":{"turn":${turn},"step":${step},"index":${index}`
  if (kind !== 'tool-call-delta') return `${head},"dt":${JSON.stringify(dt)},"texts":${JSON.stringify(fragments)}}}`
  const named = name === undefined ? '' : `,"name":${JSON.stringify(name)}`
  return `${head},"id":${JSON.stringify(id)}${named},"dt":${JSON.stringify(dt)},"args":${JSON.stringify(fragments)}}}`
}

/** The record line of a row, without newline. */
export function rowRecordLine(row: ChunkRowEvent): string {
  return `${ROW_LINE_START}${rowText(row)}}`
}

/** The record line, without newline, that stands for `count` events from `seq` on. `time` is the first one's. */
export function omittedRecordLine(seq: number, time: number, count: number): string {
  return `{"type":"omitted","event":{"type":"chunkrow/omitted","seq":${seq},"time":${time},"data":{"count":${count}}}}`
}

// ---------------------------------------------------------------------------------------------------------------
// Slices
// ---------------------------------------------------------------------------------------------------------------

/**
 * The part of a valid row with `from <= seq < to`: a row, or its events when one or two members are left (none: `[]`).
 * The whole of a row of three or more is the row itself; a part shares no array with it.
 */
export function sliceRow(row: ChunkRowEvent, from: number, to: number): ChunkRowEvent | SessionEvent[] {
  const fragments = rowFragments(row)
  const first = Math.max(0, from - row.seq)
  const end = Math.min(fragments.length, to - row.seq)
  if (end - first < ROW_LEAST_MEMBERS) return memberEvents(row, first, end)
  if (first === 0 && end === fragments.length) return row
  const seq = row.seq + first
  const time = rowTimeAt(row, seq)
  const { turn, step, index } = row.data
  const dt = row.data.dt.slice(first, end - 1)
  if (row.type !== 'chunkrow/tool-call-chunks') {
    return { type: row.type, seq, time, data: { turn, step, index, dt, texts: fragments.slice(first, end) } }
  }
  const { id, name } = row.data
  const named = name === undefined ? {} : { name }
  return { type: row.type, seq, time, data: { turn, step, index, id, ...named, dt, args: fragments.slice(first, end) } }
}

/** The time of the member of a valid row that has this seq. Cost is linear in the members before it. */
export function rowTimeAt(row: ChunkRowEvent, seq: number): number {
  let time = row.time
  for (let k = 0; k < seq - row.seq; k++) time += row.data.dt[k]!
  return time
}

function memberEvents(row: ChunkRowEvent, first: number, end: number): SessionEvent[] {
  const events: SessionEvent[] = []
  const fragments = rowFragments(row)
  const { turn, step, index } = row.data
  const { id, name } = row.type === 'chunkrow/tool-call-chunks' ? row.data : { id: undefined, name: undefined }
  for (let k = first; k < end; k++) {
    const delta = { kind: rowKind(row), turn, step, index, id, name, fragment: fragments[k]! }
    events.push(deltaEvent(delta, row.seq + k, rowTimeAt(row, row.seq + k)))
  }
  return events
}

// ---------------------------------------------------------------------------------------------------------------
// Input lines
// ---------------------------------------------------------------------------------------------------------------

/** The value of `type` when it is the first key, as in nearly every line there is. */
const FIRST_TYPE = /^[ \t\r\n]*\{[ \t\r\n]*"type"[ \t\r\n]*:[ \t\r\n]*"([^"\\]*)"/

/**
 * The `type` of a line that should be a JSON object, without scanning the line when that can be helped; undefined when
 * it is no JSON object or has no text there. With the key given twice this may be either: whoever reads on refuses it.
 */
export function lineType(text: string): string | undefined {
  const found = FIRST_TYPE.exec(text)
  if (found !== null) return found[1]
  const value = parsed(text)
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'type')) return undefined
  const { type } = value as { type: unknown }
  return typeof type === 'string' ? type : undefined
}

/**
 * Reads one line of an append body: a bare event, an `event` record or a `chunks` record. The text of an event inside
 * a record is the exact slice. Limits of depth count from the event, not from the record around it.
 * Throws `event/invalid` or `record/malformed` with `path`, a JSON pointer from the line's value.
 */
export function parseInputLine(text: string, options?: EventTextOptions): InputItem {
  // A token sent bare is the hot path: it needs neither the pattern nor a second look.
  if (text.startsWith('{"type":"assistant/chunk"')) return { kind: 'event', event: parseEventText(text, options) }
  switch (lineType(text)) {
    case 'event':
      return { kind: 'event', event: wrappedEvent(text, options) }
    case 'chunks':
      return { kind: 'row', row: wrappedRow(text, options) }
    case 'omitted':
      throw malformed('/type', 'an omitted range stands for events that are not here; it cannot be appended')
    case 'text-chunks':
    case 'reasoning-chunks':
    case 'tool-call-chunks':
      throw malformed('/type', 'this row is in storage form, which only an import reads; send a "chunks" record')
    case 'chunkrow/text-chunks':
    case 'chunkrow/reasoning-chunks':
    case 'chunkrow/tool-call-chunks':
      throw malformed('/type', 'a row is sent inside a record: {"type":"chunks","event":<the row>}')
    case 'session':
      throw malformed('/type', 'this is the header of a session log; send the file to the import instead')
    default:
      return { kind: 'event', event: parseEventText(text, options) }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function wrappedEvent(text: string, options: EventTextOptions | undefined): EventText {
  // Between exactly these edges a whole event makes a whole record, so its text is looked at once. What is refused here
  // may still be a record written otherwise; if not, the long way names the fault.
  if (text.startsWith(EVENT_LINE_START) && text.endsWith('}')) {
    try {
      return parseEventText(text.slice(EVENT_LINE_START.length, -1), options)
    } catch (error) {
      if (!(error instanceof Problem)) throw error
    }
  }
  // Not JSON at all: the event's reader says so, in the words that it uses for every other line.
  if (parsed(text) === undefined) return parseEventText(text, options)
  const record = scanObject(text)
  exactMembers(record.members, RECORD_KEYS)
  const { start, end } = record.members.find((member) => member.key === 'event')!
  return belowEvent(() => parseEventText(record.text.slice(start, end), options))
}

function wrappedRow(text: string, options: EventTextOptions | undefined): ChunkRowEvent {
  const limit = options?.lineBytes ?? LIMITS.lineBytes
  if (exceedsUtf8(text, limit)) {
    throw new Problem('request/too-large', `a record takes more than ${limit} bytes`, { limit })
  }
  const value = parsed(text)
  if (value === undefined) {
    parseEventText(text, options)
    throw malformed('', 'not JSON')
  }
  // A text that is its own value's text repeats no key and spells every number plainly; then nothing is scanned.
  if (JSON.stringify(value) !== text) plainRecordText(text)
  const record = validateRecord(value)
  return (record as { type: 'chunks'; event: ChunkRowEvent }).event
}

/** Refuses what parsing a row's text hides: a key given twice, a number that became an integer only by rounding. */
function plainRecordText(text: string): void {
  const record = scanObject(text)
  exactMembers(record.members, RECORD_KEYS)
  const { start, end } = record.members.find((member) => member.key === 'event')!
  plainRowText(record.text.slice(start, end), '/event')
}

/** The same for the text of a row alone, whichever form it has. Anything that is no row is left to the validation. */
export function plainRowText(text: string, path: string): void {
  if (text[0] !== '{') return
  const object = scanObject(text)
  const seen = new Set<string>()
  for (const { key, start, end } of object.members) {
    const at = `${path}/${pointerToken(key)}`
    if (seen.has(key)) throw malformed(at, 'this key is given twice')
    seen.add(key)
    if (key === 'data') plainRowText(object.text.slice(start, end), at)
    else if (PLAIN_KEYS.has(key)) {
      if (OTHER_SPELLING.test(object.text.slice(start, end))) throw malformed(at, 'expected plain decimal digits')
    } else if (INTEGER_KEYS.has(key)) {
      const value = object.text.slice(start, end)
      if (OTHER_SPELLING.test(value) && !INTEGERS.test(value)) throw malformed(at, 'expected an integer')
    }
  }
}

const PLAIN_KEYS = new Set(['seq', 'time', 'seq0', 'time0'])
const INTEGER_KEYS = new Set(['turn', 'step', 'index', 'dt'])
const OTHER_SPELLING = /[.eE]/
/** One or a list of numbers that are integers by arithmetic, like `1.0` and `1e3` and unlike `1.00000000000000001`. */
const INTEGERS = /^\[?-?\d{1,16}(?:\.0+)?(?:[eE]\+?\d{1,2})?(?:,-?\d{1,16}(?:\.0+)?(?:[eE]\+?\d{1,2})?)*\]?$/

function exactMembers(members: readonly { key: string }[], keys: readonly string[]): void {
  const seen = new Set<string>()
  for (const { key } of members) {
    if (seen.has(key)) throw malformed(`/${pointerToken(key)}`, 'this key is given twice')
    if (!keys.includes(key)) throw malformed(`/${pointerToken(key)}`, 'this key does not belong to a record')
    seen.add(key)
  }
  for (const key of keys) if (!seen.has(key)) throw malformed(`/${key}`, `the key "${key}" is missing`)
}
