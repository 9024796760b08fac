// Owns what can go wrong for a caller of the service: the error classes, their stable codes, the one way from an HTTP
// answer to an error, and the one from a failed connection.

import type { ProblemFacts } from '../../codec/index.ts'
import { isProblemDocument, type Problem } from '../../codec/index.ts'

/**
 * The codes that the client gives itself; an answer of the service carries one of the service's own.
 * - `network/unreachable`: no connection came about, so nothing was sent
 * - `network/lost`: the connection broke; what was sent may have been done
 * - `network/timeout`: the service was silent for too long; likewise
 * - `answer/incomplete`: the body ended before it was whole
 * - `answer/malformed`: headers or body are not what the service sends
 * - `token/unavailable`: the token provider failed, so nothing was sent
 * - `event/invalid`, `record/malformed`, `request/too-large`: what was to be appended cannot be; nothing was sent
 * - `append/behind`: an append before this one has failed; nothing of this one was sent
 * - `stream/ended`: the service ended a followed stream, and asks to connect again
 * - `journal/moved`: the window is another one than the older page was read for
 * - `journal/closed`: the journal was closed
 * - `conversation/packed-start`: a definition takes a row for a start
 * - `conversation/bad-match`: a definition gives what is no match
 * - `conversation/gap`: a change does not join the window that the changes before it made
 * - `client/closed`: the client was closed
 */
export type ClientCode =
  | 'network/unreachable'
  | 'network/lost'
  | 'network/timeout'
  | 'answer/incomplete'
  | 'answer/malformed'
  | 'token/unavailable'
  | 'event/invalid'
  | 'record/malformed'
  | 'request/too-large'
  | 'append/behind'
  | 'stream/ended'
  | 'journal/moved'
  | 'journal/closed'
  | 'conversation/packed-start'
  | 'conversation/bad-match'
  | 'conversation/gap'
  | 'client/closed'

/** The one base. `code` is stable and meant for programs, the message for people. */
export class ClientError extends Error {
  /** of the client, of the service, or `http/<status>` for an answer that has none */
  readonly code: string

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** The service, or something before it, answered with an error. Treat a code that you do not know by `status`. */
export class ServiceError extends ClientError {
  readonly status: number
  /** what the service says the caller needs next, such as `head`, `expectedSeq` or `line` */
  readonly facts: ProblemFacts
  /** seconds after which another try makes sense */
  readonly retryAfter: number | undefined

  constructor(status: number, code: string, detail: string, facts: ProblemFacts, retryAfter: number | undefined) {
    super(code, detail)
    this.status = status
    this.facts = facts
    this.retryAfter = retryAfter
  }
}

/** There is no answer, or its body broke off with an error. */
export class NetworkError extends ClientError {
  declare readonly code: 'network/unreachable' | 'network/lost' | 'network/timeout'
}

/** There is an answer, and it is not to be believed. */
export class AnswerError extends ClientError {
  declare readonly code: 'answer/incomplete' | 'answer/malformed'

  static incomplete(message: string): AnswerError {
    return new AnswerError('answer/incomplete', message)
  }

  static malformed(message: string, cause?: unknown): AnswerError {
    return new AnswerError('answer/malformed', message, cause === undefined ? undefined : { cause })
  }

  /** What the codec says of a line of the body. */
  static of(problem: Problem): AnswerError {
    const line = problem.facts.line
    const place = line === undefined || problem.message.startsWith('line ') ? '' : `line ${line} `
    return AnswerError.malformed(`the answer cannot be read: ${place}${problem.message}`, problem)
  }
}

/** The token provider threw, and this is what it was asked for. `cause` is what it threw. */
export class TokenError extends ClientError {
  declare readonly code: 'token/unavailable'

  static of(cause: unknown): TokenError {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return new TokenError('token/unavailable', `the token provider failed: ${reason}`, { cause })
  }
}

/** An event that cannot be appended, found before anything was sent. `facts.line` counts the events from 1. */
export class InputError extends ClientError {
  declare readonly code: 'event/invalid' | 'record/malformed' | 'request/too-large'
  readonly facts: ProblemFacts

  constructor(problem: Problem, line: number) {
    super(problem.code, `event ${line} of the append: ${problem.message}`, { cause: problem })
    this.facts = { ...problem.facts, line }
  }
}

/** It waited behind an append that failed, with `cause`, and was not sent: append both again, that one first. */
export class AppendError extends ClientError {
  declare readonly code: 'append/behind'

  static behind(cause: unknown): AppendError {
    const reason = cause instanceof Error ? cause.message : String(cause)
    return new AppendError('append/behind', `not sent, since an append before it has failed: ${reason}`, { cause })
  }
}

/** A followed stream came to an end that the service announced, and that asks for another connection. */
export class StreamEndedError extends ClientError {
  declare readonly code: 'stream/ended'
  /** `draining`, `expired`, or a word of a later version */
  readonly reason: string

  constructor(reason: string) {
    super('stream/ended', `the service ended the stream: ${reason}`)
    this.reason = reason
  }
}

/** What was asked of a journal does not go with its state any more. */
export class JournalError extends ClientError {
  declare readonly code: 'journal/moved' | 'journal/closed'
}

/** A definition or a change does not do what it has to, so the views cannot be told any more. */
export class ConversationError extends ClientError {
  declare readonly code: 'conversation/packed-start' | 'conversation/bad-match' | 'conversation/gap'
}

/** The error of an answer whose status is not a success. `body` is its text, or the beginning of it. */
export function errorOfAnswer(
  status: number,
  header: (name: string) => string | undefined,
  body: string,
  now: number,
): ServiceError {
  const document = parsed(body)
  if (!isProblemDocument(document)) {
    return new ServiceError(
      status,
      `http/${status}`,
      `the answer has the status ${status} and is not the service's own`,
      {},
      readRetryAfter(header('retry-after'), now),
    )
  }
  const { type: _type, title: _title, status: _status, detail, code, ...facts } = document
  const said = typeof facts.retryAfter === 'number' && facts.retryAfter >= 0 ? facts.retryAfter : undefined
  // The header wins: a proxy on the way may have set it, and knows more than the service.
  return new ServiceError(status, code, detail, facts, readRetryAfter(header('retry-after'), now) ?? said)
}

/** Seconds: the header counts them, or names a date. */
function readRetryAfter(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text)
  // Date.parse alone would find a date in almost anything.
  const date = /^[A-Z][a-z]{2}, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Codes of Node.js and undici that say that no connection came about. */
const UNREACHABLE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name of the host cannot be looked up now',
  EHOSTUNREACH: 'no way to the host',
  ENETUNREACH: 'no way to the network',
  UND_ERR_CONNECT_TIMEOUT: 'the host does not answer',
}

const TIMEOUTS: Readonly<Record<string, string>> = {
  UND_ERR_HEADERS_TIMEOUT: 'no answer came in time',
  UND_ERR_BODY_TIMEOUT: 'the answer stopped in the middle and did not go on',
  ETIMEDOUT: 'the connection timed out',
}

/** The error of a request, or of a body, that failed below HTTP. `origin` is where the request went. */
export function errorOfConnection(cause: unknown, origin: string): NetworkError {
  // Several addresses of one name fail together; the first speaks for all.
  const first = cause instanceof AggregateError && cause.errors.length > 0 ? cause.errors[0] : cause
  const { code, message } = first as { code?: unknown; message?: unknown }
  if (typeof code === 'string') {
    const unreachable = UNREACHABLE[code]
    if (unreachable) return new NetworkError('network/unreachable', `cannot reach ${origin}: ${unreachable}`, { cause })
    const timeout = TIMEOUTS[code]
    if (timeout) return new NetworkError('network/timeout', `${origin}: ${timeout}`, { cause })
    if (/^(CERT_|ERR_TLS_|ERR_SSL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code)) {
      return new NetworkError('network/unreachable', `cannot reach ${origin} securely: ${message}`, { cause })
    }
  }
  return new NetworkError('network/lost', `the connection to ${origin} broke: ${message || code}`, { cause })
}
