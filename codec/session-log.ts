// Owns the session log, the file form of a history: a header line, then one storage record a line.
//
//   {"type":"session","version":0,"id":…,"createdAt":…,…}
//   {"type":"user/message","seq":0,"time":…,"data":…}                       an event as it is
//   {"type":"text-chunks","seq0":1,"time0":…,"data":{…}}                    a row: the same `data` under a shorter head
//
// Header fields and events are kept as text, so that a log comes out as it went in.

import type { EventText, EventTextOptions } from './event.ts'
import { LIMITS, parseEventText } from './event.ts'
import type { JsonValue } from './json-text.ts'
import { exceedsUtf8, memberSlice, scanObject } from './json-text.ts'
import { Problem } from './problem.ts'
import type { ChunkRowEvent, InputItem } from './record.ts'
import { checkRowParts, EVENT_LINE_START, lineType, plainRowText, pointerToken, ROW_LINE_START } from './record.ts'

/** The one version of the format that is written and read. */
export const SESSION_LOG_VERSION = 0

export const SESSION_ID = /^[A-Za-z0-9._~:@-]{1,128}$/

/** Whether a text can name a session: 1 to 128 of `A-Z a-z 0-9 . _ ~ : @ -`, but not `.` or `..`. */
export function isSessionId(id: string): boolean {
  return SESSION_ID.test(id) && id !== '.' && id !== '..'
}

/** Line 1 of a session log, parsed. Fields that are not named here are kept. */
export interface SessionHeader {
  type: 'session'
  version: 0
  id: string
  /** epoch milliseconds */
  createdAt: number
  cwd?: string
  parentSession?: string
  /** how many events at the start were copied from the parent */
  seedLength?: number
  /** `subagent` for a child that is read through its parent */
  origin?: string
  delegationDepth?: number
  agentPreset?: JsonValue
  [other: string]: JsonValue | undefined
}

/** A header as text, with what the service itself needs to know of it. */
export interface HeaderText {
  /** compact, otherwise exactly as given */
  text: string
  id: string
  createdAt: number
  parentSession: string | undefined
  origin: string | undefined
}

// ---------------------------------------------------------------------------------------------------------------
// Header
// ---------------------------------------------------------------------------------------------------------------

/** Reads line 1 of a log. Throws `log/invalid` with `line` 1 and `path`; another version is named. */
export function parseHeaderLine(text: string): HeaderText {
  const refuse: Refuse = (path, reason) => {
    const where = path === '' ? 'the header' : `the header's ${path}`
    return new Problem('log/invalid', `line 1: ${where}: ${reason}`, { line: 1, path })
  }
  const { text: compact, fields } = objectFields(text, refuse)
  if (fields.get('type') !== '"session"' && parsedField(fields, 'type') !== 'session') {
    throw refuse('/type', 'a session log begins with a header of the type "session"')
  }
  const version = fields.get('version')
  if (version === undefined) throw refuse('/version', 'missing')
  if (version !== `${SESSION_LOG_VERSION}`) {
    throw refuse('/version', `version ${clipped(version)} is not supported, only version ${SESSION_LOG_VERSION} is`)
  }
  for (const key of ['id', 'createdAt']) if (!fields.has(key)) throw refuse(`/${key}`, 'missing')
  checkFields(fields, refuse)
  return headerOf(compact, fields)
}

/**
 * Makes a header from the body of a create request: the fields given, and the defaults of those that were not.
 * `given` holds the compact text of each field given, for a later comparison. `now` is in epoch milliseconds.
 * Throws `request/invalid` with `path`.
 */
export function headerFromFields(
  id: string,
  fieldsText: string | undefined,
  now: number,
): { header: HeaderText; given: ReadonlyMap<string, string> } {
  const refuse: Refuse = (path, reason) =>
    new Problem('request/invalid', path === '' ? reason : `${path}: ${reason}`, { path })
  if (!isSessionId(id)) throw refuse('/id', 'this cannot be the id of a session')
  const given =
    fieldsText === undefined || fieldsText.trim() === ''
      ? new Map<string, string>()
      : objectFields(fieldsText, refuse).fields
  const settled: [string, JsonValue][] = [
    ['type', 'session'],
    ['version', SESSION_LOG_VERSION],
    ['id', id],
  ]
  for (const [key, value] of settled) {
    if (given.has(key) && parsedField(given, key) !== value) {
      throw refuse(`/${key}`, `must be ${JSON.stringify(value)} or left out`)
    }
  }
  checkFields(given, refuse)
  const fields = new Map<string, string>(settled.map(([key, value]) => [key, JSON.stringify(value)]))
  fields.set('createdAt', given.get('createdAt') ?? `${now}`)
  for (const [key, text] of given) if (!fields.has(key)) fields.set(key, text)
  const members: string[] = []
  for (const [key, text] of fields) members.push(`${JSON.stringify(key)}:${text}`)
  return { header: headerOf(`{${members.join(',')}}`, fields), given }
}

/**
 * The first of the fields given that a stored header has not, or not with the same text, as a JSON pointer; undefined
 * when it has them all. Fields not given are not compared.
 */
export function differingField(headerText: string, given: ReadonlyMap<string, string>): string | undefined {
  for (const [key, text] of given) {
    const slice = memberSlice(headerText, key)
    if (slice === undefined) return `/${pointerToken(key)}`
    const stored = headerText.slice(slice.start, slice.end)
    // Type, version and id were checked by value, and may be spelt with escapes.
    if (stored !== text && !(SETTLED_KEYS.has(key) && JSON.parse(stored) === JSON.parse(text)))
      return `/${pointerToken(key)}`
  }
  return undefined
}

const SETTLED_KEYS = new Set(['type', 'version', 'id'])

type Refuse = (path: string, reason: string) => Problem

/** The fields of a JSON object as compact texts. A key like `__proto__` is a field like others. */
function objectFields(text: string, refuse: Refuse): { text: string; fields: Map<string, string> } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw refuse('', 'not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refuse('', 'not a JSON object')
  const object = scanObject(text)
  if (object.depth > LIMITS.depth) throw refuse('', `nested deeper than ${LIMITS.depth} levels`)
  const fields = new Map<string, string>()
  for (const { key, start, end } of object.members) {
    if (fields.has(key)) throw refuse(`/${pointerToken(key)}`, 'this key is given twice')
    fields.set(key, object.text.slice(start, end))
  }
  return { text: object.text, fields }
}

function checkFields(fields: ReadonlyMap<string, string>, refuse: Refuse): void {
  const id = parsedField(fields, 'id')
  if (id !== undefined && !(typeof id === 'string' && isSessionId(id))) {
    throw refuse('/id', 'a session id is 1 to 128 characters of A-Z a-z 0-9 . _ ~ : @ -, and not . or ..')
  }
  const parent = parsedField(fields, 'parentSession')
  if (parent !== undefined && !(typeof parent === 'string' && isSessionId(parent))) {
    throw refuse('/parentSession', 'must be the id of a session')
  }
  for (const key of ['cwd', 'origin']) {
    const value = parsedField(fields, key)
    if (value !== undefined && typeof value !== 'string') throw refuse(`/${key}`, 'must be a string')
  }
  plainField(fields, 'createdAt', 'a safe integer, in epoch milliseconds', refuse)
  for (const key of ['seedLength', 'delegationDepth']) {
    if (plainField(fields, key, 'a safe integer of at least 0', refuse) < 0) {
      throw refuse(`/${key}`, 'must be a safe integer of at least 0')
    }
  }
}

/** The number of a field that must be a plain decimal integer; 0 when the field is absent. */
function plainField(fields: ReadonlyMap<string, string>, key: string, wanted: string, refuse: Refuse): number {
  const text = fields.get(key)
  if (text === undefined) return 0
  if (!PLAIN_INTEGER.test(text) || !Number.isSafeInteger(Number(text))) {
    throw refuse(`/${key}`, `must be ${wanted}, written as plain decimal digits`)
  }
  return Number(text)
}

const PLAIN_INTEGER = /^(0|-?[1-9][0-9]*)$/

function parsedField(fields: ReadonlyMap<string, string>, key: string): unknown {
  const text = fields.get(key)
  return text === undefined ? undefined : JSON.parse(text)
}

function headerOf(text: string, fields: ReadonlyMap<string, string>): HeaderText {
  return {
    text,
    id: parsedField(fields, 'id') as string,
    createdAt: Number(fields.get('createdAt')),
    parentSession: parsedField(fields, 'parentSession') as string | undefined,
    origin: parsedField(fields, 'origin') as string | undefined,
  }
}

function clipped(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}

// ---------------------------------------------------------------------------------------------------------------
// Storage records
// ---------------------------------------------------------------------------------------------------------------

/** A row as a session log writes it. `data` is that of the row. */
export interface StorageRow {
  type: 'text-chunks' | 'reasoning-chunks' | 'tool-call-chunks'
  seq0: number
  time0: number
  data: ChunkRowEvent['data']
}

const STORAGE_KEYS = ['type', 'seq0', 'time0', 'data']
const STORAGE_PATHS = { seq: '/seq0', time: '/time0', data: '/data' }

/**
 * Reads one line after the header: an event, numbered and stamped, or a row in storage form.
 * Throws `event/invalid` or `record/malformed` with `path`, a JSON pointer from the line's value.
 */
export function decodeStorageRecord(text: string, options?: EventTextOptions): InputItem {
  const type = lineType(text)
  switch (type) {
    case 'text-chunks':
    case 'reasoning-chunks':
    case 'tool-call-chunks':
      return { kind: 'row', row: storageRow(text, options) }
    case 'event':
    case 'chunks':
    case 'omitted':
      throw malformed('/type', `a session log holds no "${type}" records: events stand bare, rows in storage form`)
    case 'session':
      throw malformed('/type', 'a session log has one header, in line 1')
    default:
      return { kind: 'event', event: parseEventText(text, { ...options, numbered: true }) }
  }
}

function storageRow(text: string, options: EventTextOptions | undefined): ChunkRowEvent {
  const limit = options?.lineBytes ?? LIMITS.lineBytes
  if (exceedsUtf8(text, limit))
    throw new Problem('request/too-large', `a row takes more than ${limit} bytes`, { limit })
  let value: Record<string, unknown>
  try {
    value = JSON.parse(text)
  } catch {
    throw malformed('', 'not JSON')
  }
  // A text that is its own value's text repeats no key and spells every number plainly; then nothing is scanned.
  if (JSON.stringify(value) !== text) plainRowText(text, '')
  for (const key of Object.keys(value)) {
    if (!STORAGE_KEYS.includes(key)) throw malformed(`/${pointerToken(key)}`, 'this key does not belong here')
  }
  for (const key of STORAGE_KEYS) {
    if (!Object.hasOwn(value, key)) throw malformed(`/${key}`, `the key "${key}" is missing`)
  }
  const type = `chunkrow/${value.type}` as ChunkRowEvent['type']
  checkRowParts(type, value.seq0, value.time0, value.data, STORAGE_PATHS)
  return { type, seq: value.seq0, time: value.time0, data: value.data } as ChunkRowEvent
}

function malformed(path: string, reason: string): Problem {
  return new Problem('record/malformed', path === '' ? reason : `${path}: ${reason}`, { path })
}

/** The head of a row's record line as the service writes it: the row's short type, its seq and its time. */
const ROW_HEAD =
  /^\{"type":"chunks","event":\{"type":"chunkrow\/(text|reasoning|tool-call)-chunks","seq":([0-9]+),"time":(-?[0-9]+),"data":/

/**
 * A record line as the service writes it, without newline, as a line of a session log. Only the head is rewritten: an
 * event's text and a row's data stay as they are. Throws `record/malformed` for an omitted range or any other text.
 */
export function storageLine(recordLine: string): string {
  if (recordLine.startsWith(EVENT_LINE_START)) return recordLine.slice(EVENT_LINE_START.length, -1)
  const head = ROW_HEAD.exec(recordLine)
  if (head === null) throw notARecordLine()
  return storageHead(head) + recordLine.slice(head[0].length, -1)
}

/** The same on bytes, without decoding more than the head of a row. An event's bytes are a view, not a copy. */
export function storageLineBytes(recordLine: Uint8Array): Uint8Array {
  if (startsWith(recordLine, EVENT_START_BYTES)) return recordLine.subarray(EVENT_START_BYTES.length, -1)
  // Two integers of 17 characters at most, and the longest type: no head is longer than this.
  const head = ROW_HEAD.exec(asciiDecoder.decode(recordLine.subarray(0, 160)))
  if (head === null) throw notARecordLine()
  const start = encoder.encode(storageHead(head))
  const rest = recordLine.subarray(head[0].length, -1)
  const line = new Uint8Array(start.length + rest.length)
  line.set(start)
  line.set(rest, start.length)
  return line
}

const encoder = new TextEncoder()
// Any single-byte decoder will do: the head is ASCII, and places in the text are then places in the bytes.
const asciiDecoder = new TextDecoder('latin1')
const EVENT_START_BYTES = encoder.encode(EVENT_LINE_START)

function storageHead(head: RegExpExecArray): string {
  return `{"type":"${head[1]}-chunks","seq0":${head[2]},"time0":${head[3]},"data":`
}

function notARecordLine(): Problem {
  return malformed('', `not an event or row as this service writes them (${ROW_LINE_START}…)`)
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  if (bytes.length < start.length) return false
  for (let i = 0; i < start.length; i++) if (bytes[i] !== start[i]) return false
  return true
}

/**
 * Reads a whole session log that is small enough to be one text. Lines may end with `\r\n`, and blank ones are passed
 * over. Throws `log/invalid` for the header or a hole, and what a bad line throws; each with `line` and `lastGoodLine`.
 */
export function decodeSessionLog(text: string): { header: HeaderText; items: InputItem[] } {
  let header: HeaderText | undefined
  const items: InputItem[] = []
  let expectedSeq = 0
  let lastGoodLine = 0
  let line = 0
  for (const each of (text.startsWith('\uFEFF') ? text.slice(1) : text).split('\n')) {
    line++
    const content = each.endsWith('\r') ? each.slice(0, -1) : each
    if (content.trim() === '') continue
    try {
      if (header === undefined) header = parseHeaderLine(content)
      else {
        const item = decodeStorageRecord(content)
        const { seq, next } = covered(item)
        if (seq !== expectedSeq) {
          throw new Problem('log/invalid', `expected seq ${expectedSeq}, got ${seq}`, { path: '/seq', expectedSeq })
        }
        expectedSeq = next
        items.push(item)
      }
    } catch (error) {
      throw error instanceof Problem ? error.withFacts({ line, lastGoodLine }) : error
    }
    lastGoodLine = line
  }
  if (header === undefined) {
    throw new Problem('log/invalid', 'the session log is empty: its header is missing', {
      line: 1,
      path: '',
      lastGoodLine,
    })
  }
  return { header, items }
}

function covered(item: InputItem): { seq: number; next: number } {
  if (item.kind === 'event') {
    const { seq } = item.event as EventText & { seq: number }
    return { seq, next: seq + 1 }
  }
  const { seq, data } = item.row
  return { seq, next: seq + data.dt.length + 1 }
}
