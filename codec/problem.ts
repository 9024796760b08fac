/** Owns the closed list of error codes, the status of each, and the RFC 9457 document that carries one over the wire. */
import type { JsonValue } from './json-text.ts'

/** Every error code and the HTTP status it is sent with. Clients treat a code they do not know by its status. */
export const PROBLEM_STATUS = {
  'request/invalid': 400,
  'auth/missing': 401,
  'auth/forbidden': 403,
  'session/not-found': 404,
  'subagent/not-found': 404,
  'route/not-found': 404,
  'request/method': 405,
  'request/not-acceptable': 406,
  'request/timeout': 408,
  'session/exists': 409,
  'session/replaced': 409,
  'append/gap': 409,
  'append/conflict': 409,
  'history/ahead': 409,
  'request/too-large': 413,
  'request/unsupported-media-type': 415,
  'event/invalid': 422,
  'record/malformed': 422,
  'log/invalid': 422,
  'rate/limited': 429,
  'request/headers-too-large': 431,
  internal: 500,
  'server/draining': 503,
  'server/busy': 503,
  'store/unavailable': 503,
  'store/full': 507,
} as const satisfies Record<string, number>

export type ProblemCode = keyof typeof PROBLEM_STATUS

/** The title never changes with the occurrence; what happened this time is the detail's business (RFC 9457, 3.1.4). */
const TITLES: Record<ProblemCode, string> = {
  'request/invalid': 'The request is not valid.',
  'auth/missing': 'A valid token is needed.',
  'auth/forbidden': 'The token does not allow this.',
  'session/not-found': 'There is no such session.',
  'subagent/not-found': 'There is no such child of this session.',
  'route/not-found': 'There is nothing at this path.',
  'request/method': 'The path does not take this method.',
  'request/not-acceptable': 'None of the accepted media types can be sent.',
  'request/timeout': 'The request did not arrive in time.',
  'session/exists': 'A different session has this id.',
  'session/replaced': 'The session is not the one the cursor was made for.',
  'append/gap': 'The append would leave a hole in the log.',
  'append/conflict': 'The log holds a different event at this place.',
  'history/ahead': 'The cursor is beyond the end of the log.',
  'request/too-large': 'The request or one of its lines is too large.',
  'request/unsupported-media-type': 'The media type or content coding of the body is not supported.',
  'event/invalid': 'An event is not valid.',
  'record/malformed': 'A record is malformed.',
  'log/invalid': 'The session log is not valid.',
  'rate/limited': 'There were too many requests.',
  'request/headers-too-large': 'The request headers are too large.',
  internal: 'Something went wrong on the server.',
  'server/draining': 'The server is shutting down.',
  'server/busy': 'The server is busy.',
  'store/unavailable': 'The store cannot be reached.',
  'store/full': 'The store is full.',
}

/** What the caller needs next. Facts that are `undefined` are not sent. */
export interface ProblemFacts {
  /** last committed seq, -1 for an empty session */
  head?: number
  /** the seq that the next append must begin with */
  expectedSeq?: number
  /** 1-based line of the body, or 1-based element of an array */
  line?: number
  /** JSON pointer into the event or document, such as `/seq`; `''` is the whole of it */
  path?: string
  /** the limit that was exceeded, in its own unit */
  limit?: number
  epoch?: string
  /** seconds */
  retryAfter?: number
  /** methods that the path takes */
  allow?: string[]
  [extra: string]: JsonValue | undefined
}

/** The one error of the codec and the domain: a code of the list, a sentence for people, and facts for programs. */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly facts: ProblemFacts

  constructor(code: ProblemCode, detail: string, facts: ProblemFacts = {}, options?: { cause?: unknown }) {
    super(detail, options)
    this.name = 'Problem'
    this.code = code
    this.facts = facts
  }

  get status(): number {
    return PROBLEM_STATUS[this.code]
  }

  /** The same problem with more facts, for a caller who knows the line; facts already there are replaced. */
  withFacts(facts: ProblemFacts): Problem {
    const options = this.cause === undefined ? undefined : { cause: this.cause }
    return new Problem(this.code, this.message, { ...this.facts, ...facts }, options)
  }
}

/** The body of an `application/problem+json` answer. The facts stand beside the five members. */
export interface ProblemDocument {
  type: string
  title: string
  status: number
  detail: string
  code: string
  [fact: string]: JsonValue
}

export function problemDocument(problem: Problem): ProblemDocument {
  const { code } = problem
  const document: ProblemDocument = {
    type: `urn:scrollback:problem:${code}`,
    title: TITLES[code],
    status: problem.status,
    detail: problem.message,
    code,
  }
  for (const [name, fact] of Object.entries(problem.facts)) {
    // A fact must not shadow a member of the document itself, and defineProperty keeps a fact named `__proto__` a fact.
    if (fact === undefined || Object.hasOwn(document, name)) continue
    Object.defineProperty(document, name, { value: fact, enumerable: true, configurable: true, writable: true })
  }
  return document
}

/** Whether a parsed body is a problem document; its code may be one that this version does not know. */
export function isProblemDocument(value: unknown): value is ProblemDocument {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const document = value as Record<string, unknown>
  return (
    typeof document.type === 'string' &&
    typeof document.title === 'string' &&
    typeof document.status === 'number' &&
    typeof document.detail === 'string' &&
    typeof document.code === 'string'
  )
}
