// Owns the small answers of the service, checked before anyone relies on them.

import type { AppendResult, ImportResult, Range, SessionDescription, SessionList } from '../../codec/index.ts'
import { HEADER_EPOCH, HEADER_FROM, HEADER_HEAD, HEADER_MORE, HEADER_TO } from '../../codec/index.ts'
import { AnswerError } from './errors.ts'

/** What the headers of a page promise. */
export interface PageHeaders extends Range {
  readonly epoch: string
  readonly hasMore: boolean
  /** last seq of the log, when the end of the page was not asked for */
  readonly head: number | undefined
}

type Header = (name: string) => string | undefined

/** Throws AnswerError for headers that are missing, are no numbers, or contradict each other. */
export function readPageHeaders(header: Header): PageHeaders {
  const epoch = readEpoch(header)
  const from = readInteger(header, HEADER_FROM, 0)
  const to = readInteger(header, HEADER_TO, from)
  const head = header(HEADER_HEAD) === undefined ? undefined : readInteger(header, HEADER_HEAD, -1)
  const more = header(HEADER_MORE)
  if (more !== `${from > 0}`) {
    throw AnswerError.malformed(`the answer begins at seq ${from} and says ${HEADER_MORE}: ${more}`)
  }
  if (head !== undefined && head !== to - 1) {
    throw AnswerError.malformed(`the answer ends before seq ${to} and says ${HEADER_HEAD}: ${head}`)
  }
  return { epoch, from, to, hasMore: from > 0, head }
}

/** What the headers of an export promise. `to` is one more than `head`. Throws AnswerError as `readPageHeaders` does. */
export function readLogHeaders(header: Header): { epoch: string; head: number; to: number } {
  const epoch = readEpoch(header)
  const head = readInteger(header, HEADER_HEAD, -1)
  const to = readInteger(header, HEADER_TO, 0)
  if (to !== head + 1) throw AnswerError.malformed(`the answer says ${HEADER_HEAD}: ${head} and ${HEADER_TO}: ${to}`)
  return { epoch, head, to }
}

/** What a caller needs of a description in order to append. */
export interface SessionHead {
  readonly id: string
  readonly epoch: string
  /** -1 for an empty session */
  readonly head: number
}

export function readSessionHead(value: unknown): SessionHead {
  const { id, epoch, head } = readObject(value)
  if (typeof id !== 'string' || typeof epoch !== 'string' || !isInteger(head, -1)) throw unexpected()
  return { id, epoch, head }
}

export function readSessionDescription(value: unknown): SessionDescription {
  const { messages, bytes, createdAt, updatedAt, header } = readObject(value)
  const { type, version, id } = readObject(header)
  const known = type === 'session' && version === 0 && typeof id === 'string'
  const counted = isInteger(messages, 0) && isInteger(bytes, 0)
  const dated = isInteger(createdAt, Number.MIN_SAFE_INTEGER) && isInteger(updatedAt, Number.MIN_SAFE_INTEGER)
  if (!known || !counted || !dated) throw unexpected()
  return {
    ...readSessionHead(value),
    messages,
    bytes,
    createdAt,
    updatedAt,
    header: header as SessionDescription['header'],
  }
}

export function readSessionList(value: unknown): SessionList {
  const { sessions, nextCursor } = readObject(value)
  if (!Array.isArray(sessions)) throw unexpected()
  const described = sessions.map(readSessionDescription)
  if (nextCursor === undefined) return { sessions: described }
  if (typeof nextCursor !== 'string' || nextCursor === '') throw unexpected()
  return { sessions: described, nextCursor }
}

export function readAppendResult(value: unknown): AppendResult {
  const { head, appended, duplicates, epoch } = readObject(value)
  if (!isInteger(head, -1) || !isInteger(appended, 0) || !isInteger(duplicates, 0) || typeof epoch !== 'string') {
    throw unexpected()
  }
  return { head, appended, duplicates, epoch }
}

export function readImportResult(value: unknown): ImportResult {
  const { id, epoch, head } = readSessionHead(value)
  return { id, epoch, head }
}

function readEpoch(header: Header): string {
  const epoch = header(HEADER_EPOCH)
  if (!epoch) throw AnswerError.malformed(`the answer has no ${HEADER_EPOCH}; is this the service?`)
  return epoch
}

function readInteger(header: Header, name: string, minimum: number): number {
  const text = header(name)
  const value = text !== undefined && /^(0|-?[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN
  if (isInteger(value, minimum)) return value
  throw AnswerError.malformed(`the answer says ${name}: ${text}, which should be an integer of at least ${minimum}`)
}

function readObject(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw unexpected()
  return value as Record<string, unknown>
}

function isInteger(value: unknown, minimum: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= minimum
}

function unexpected(): AnswerError {
  return AnswerError.malformed('the answer lacks what the service gives here')
}
