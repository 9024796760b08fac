// Owns the wire: media types, header names, limits and the shape of everything that travels as one JSON value. The routes
// and the client both take their types from these schemas, and the description of the service is made from them.
//
// Query parameters are strings with patterns: the server converts nothing on its own, so `1e400`, ` 7` or `0x10` cannot
// turn into some number on the way. `queryInteger` reads one that matched.

import type { Static, TSchema } from 'typebox'
import Type from 'typebox'
import { PROBLEM_STATUS, Problem } from './problem.ts'

// ---------------------------------------------------------------------------------------------------------------
// Media types
// ---------------------------------------------------------------------------------------------------------------

/** What streams of records are sent as. */
export const MEDIA_NDJSON = 'application/x-ndjson; charset=utf-8'
/** Names of NDJSON that are taken in `Accept` and `Content-Type`, without parameters. */
export const MEDIA_NDJSON_NAMES = ['application/x-ndjson', 'application/ndjson', 'application/jsonl'] as const
export const MEDIA_JSON = 'application/json'
export const MEDIA_PROBLEM = 'application/problem+json'
export const MEDIA_EVENT_STREAM = 'text/event-stream'
/** A session log as a concatenation of independent Zstandard frames. */
export const MEDIA_ZSTD = 'application/zstd'

// ---------------------------------------------------------------------------------------------------------------
// Headers
// ---------------------------------------------------------------------------------------------------------------

export const HEADER_EPOCH = 'History-Epoch'
/** first seq of the range, included */
export const HEADER_FROM = 'History-From'
/** end of the range, not included */
export const HEADER_TO = 'History-To'
/** `true` when there are events before the range */
export const HEADER_MORE = 'History-More'
/** last committed seq when the answer began, on ranges whose end was not given */
export const HEADER_HEAD = 'History-Head'

// ---------------------------------------------------------------------------------------------------------------
// Limits
// ---------------------------------------------------------------------------------------------------------------

/** Messages on a page. */
export const PAGE_MESSAGES = { default: 50, minimum: 1, maximum: 500 } as const
/** Sessions in one answer of the list. */
export const LIST_SESSIONS = { default: 50, minimum: 1, maximum: 500 } as const
export const EPOCH_LENGTH = 200
export const CURSOR_LENGTH = 1024

/** How token events are sent: as rows, each on its own line, or left out where a message of the page settles them. */
export const CHUNKS_MODES = ['packed', 'expanded', 'omit'] as const
export type ChunksMode = (typeof CHUNKS_MODES)[number]

/** How a session log is written: runs as rows, or one event a line. */
export const EXPORT_LAYOUTS = ['packed', 'events'] as const
export type ExportLayout = (typeof EXPORT_LAYOUTS)[number]

/** Why a followed stream ends; `closed` is reserved. */
export const END_REASONS = ['deleted', 'draining', 'expired', 'closed'] as const
export type EndReason = (typeof END_REASONS)[number]

// ---------------------------------------------------------------------------------------------------------------
// Parameters
// ---------------------------------------------------------------------------------------------------------------

// Neither `.` nor `..`, which a URL would take for a path of its own.
const SESSION_ID_PATTERN = '^(?!\\.{1,2}$)[A-Za-z0-9._~:@-]{1,128}$'
const SEQ_PATTERN = '^(0|[1-9][0-9]{0,15})$'
const INCLUSIVE_PATTERN = '^(-1|0|[1-9][0-9]{0,15})$'
const COUNT_PATTERN = '^([1-9][0-9]?|[1-4][0-9]{2}|500)$'

/**
 * What a schema of a parameter says about it in words, as its member `x-parameter`. The default stands here, and not as
 * the schema's own, which a validator would write into the query.
 */
export interface ParameterWords {
  /** what is taken, such as `an integer from 1 to 500` */
  readonly expected: string
  /** the most of it, in its own unit */
  readonly limit?: number
  readonly default?: string
}

function words(said: ParameterWords) {
  return { 'x-parameter': said }
}

/** How an integer between two bounds, both included, is asked for. */
function integerFrom(minimum: number, maximum: number): string {
  return `an integer from ${minimum} to ${maximum}`
}

/** How the id of a session is asked for. */
export const SESSION_ID_WORDS = 'a session id: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, not . or ..'

// An optional parameter has no example: pages that let a reader try a request fill it in, and cursors fit one log only.
function sessionId(description: string, { examples = ['demo'] }: { examples?: string[] } = {}) {
  const said = words({ expected: SESSION_ID_WORDS, limit: 128 })
  return Type.String({ pattern: SESSION_ID_PATTERN, description, ...(examples.length > 0 && { examples }), ...said })
}

function exclusiveSeq(description: string, byDefault?: string) {
  const expected = integerFrom(0, Number.MAX_SAFE_INTEGER)
  const said = words(byDefault === undefined ? { expected } : { expected, default: byDefault })
  return Type.Optional(Type.String({ pattern: SEQ_PATTERN, description, ...said }))
}

function inclusiveSeq(description: string) {
  const said = words({ expected: integerFrom(-1, Number.MAX_SAFE_INTEGER) })
  return Type.Optional(Type.String({ pattern: INCLUSIVE_PATTERN, description, ...said }))
}

function amount(of: typeof PAGE_MESSAGES | typeof LIST_SESSIONS, description: string, { hasDefault = true } = {}) {
  const said = { expected: integerFrom(of.minimum, of.maximum), limit: of.maximum }
  const all = words(hasDefault ? { ...said, default: `${of.default}` } : said)
  return Type.Optional(Type.String({ pattern: COUNT_PATTERN, description, ...all }))
}

function opaque(maximum: number, expected: string, description: string) {
  const said = words({ expected, limit: maximum })
  return Type.Optional(Type.String({ minLength: 1, maxLength: maximum, description, ...said }))
}

function oneOf<const Words extends readonly string[]>(choices: Words, description: string, byDefault: Words[number]) {
  const said = words({ expected: `one of ${choices.join(', ')}`, default: byDefault })
  return Type.Optional(Type.Unsafe<Words[number]>({ type: 'string', enum: [...choices], description, ...said }))
}

const epochParameter = opaque(
  EPOCH_LENGTH,
  `an epoch, as History-Epoch names it, of 1 to ${EPOCH_LENGTH} characters`,
  'The epoch that the cursors were made for, as `History-Epoch` names it. Another one is answered with `session/replaced`.',
)
const PAGE_WORDS = `Messages on a page, ${PAGE_MESSAGES.minimum} to ${PAGE_MESSAGES.maximum}.`
const maxMessagesParameter = amount(PAGE_MESSAGES, PAGE_WORDS)
const chunksParameter = oneOf(
  CHUNKS_MODES,
  'Token events: `packed` into rows (the default), `expanded` one a line, or `omit`: left out where a message of the range settles them, with an `omitted` record in their place.',
  'packed',
)

// A name that is not known is a mistake of the caller, and passing over it would answer another question than was asked.
const STRICT = { additionalProperties: false } as const

export const SessionPath = Type.Object({ id: sessionId('The session.') }, STRICT)
export type SessionPath = Static<typeof SessionPath>

export const ParentPath = Type.Object({ parent: sessionId('The parent session, which need not be stored.') }, STRICT)
export type ParentPath = Static<typeof ParentPath>

export const ChildPath = Type.Object(
  { parent: sessionId('The direct parent of the child.'), child: sessionId('The child session.') },
  STRICT,
)
export type ChildPath = Static<typeof ChildPath>

/** Of a page. */
export const HistoryQuery = Type.Object(
  {
    beforeSeq: exclusiveSeq('The page ends before this seq, usually the `History-From` of the page after it.'),
    throughSeq: inclusiveSeq('The last seq of the log that the reader knows; the page goes no further.'),
    maxMessages: maxMessagesParameter,
    chunks: chunksParameter,
    epoch: epochParameter,
  },
  STRICT,
)
export type HistoryQuery = Static<typeof HistoryQuery>

/** Of a range of the log. */
export const EventsQuery = Type.Object(
  {
    fromSeq: exclusiveSeq('First seq of the range.', '0'),
    toSeq: exclusiveSeq('End of the range, not included. Default: after the last event.'),
    chunks: chunksParameter,
    epoch: epochParameter,
  },
  STRICT,
)
export type EventsQuery = Static<typeof EventsQuery>

export const FollowQuery = Type.Object(
  {
    // With `afterSeq` there is no default, so none is declared.
    maxMessages: amount(
      PAGE_MESSAGES,
      `${PAGE_WORDS} Default: ${PAGE_MESSAGES.default}, or with \`afterSeq\` all that come after it.`,
      { hasDefault: false },
    ),
    afterSeq: inclusiveSeq('Go on after this seq, the last one that the reader has; -1 from the start.'),
    chunks: chunksParameter,
    epoch: epochParameter,
  },
  STRICT,
)
export type FollowQuery = Static<typeof FollowQuery>

export const AppendQuery = Type.Object(
  {
    expectedSeq: exclusiveSeq('Number the events, which carry no seq, from here on. Makes the request safe to repeat.'),
    epoch: epochParameter,
  },
  STRICT,
)
export type AppendQuery = Static<typeof AppendQuery>

export const MessagesQuery = Type.Object({ epoch: epochParameter }, STRICT)
export type MessagesQuery = Static<typeof MessagesQuery>

export const ExportQuery = Type.Object(
  {
    layout: oneOf(EXPORT_LAYOUTS, '`packed` writes runs as rows (the default), `events` one event a line.', 'packed'),
    epoch: epochParameter,
  },
  STRICT,
)
export type ExportQuery = Static<typeof ExportQuery>

export const ImportQuery = Type.Object(
  { expectedHead: inclusiveSeq('The last seq that the log must have, so that one cut at a line edge is refused.') },
  STRICT,
)
export type ImportQuery = Static<typeof ImportQuery>

export const SessionListQuery = Type.Object(
  {
    limit: amount(LIST_SESSIONS, `Sessions in the answer, ${LIST_SESSIONS.minimum} to ${LIST_SESSIONS.maximum}.`),
    cursor: opaque(
      CURSOR_LENGTH,
      `the nextCursor of the answer before, of 1 to ${CURSOR_LENGTH} characters`,
      'The `nextCursor` of the answer before.',
    ),
    parent: Type.Optional(sessionId('Only the direct children and forks of this session.', { examples: [] })),
  },
  STRICT,
)
export type SessionListQuery = Static<typeof SessionListQuery>

/** The list of one parent's children, whose parent is in the path. */
export const SubagentListQuery = Type.Omit(SessionListQuery, ['parent'], STRICT)
export type SubagentListQuery = Static<typeof SubagentListQuery>

/**
 * The integer of a query parameter, or undefined when it was not given. Throws `request/invalid` with the name as `path`
 * for what is not a plain decimal integer between `minimum` and the largest safe one.
 */
export function queryInteger(name: string, text: string | undefined, minimum = 0): number | undefined {
  if (text === undefined) return undefined
  const value = /^(0|-?[1-9][0-9]*)$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value) && value >= minimum) return value
  const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text
  throw new Problem(
    'request/invalid',
    `${name} must be ${integerFrom(minimum, Number.MAX_SAFE_INTEGER)}, got ${JSON.stringify(shown)}`,
    { path: name },
  )
}

// ---------------------------------------------------------------------------------------------------------------
// Answers
// ---------------------------------------------------------------------------------------------------------------

const MAX_SAFE = Number.MAX_SAFE_INTEGER

function seq(description: string) {
  return Type.Integer({ minimum: 0, maximum: MAX_SAFE, description, examples: [1200] })
}

function head(description = 'Last committed seq; -1 for an empty session.') {
  return Type.Integer({ minimum: -1, maximum: MAX_SAFE, description, examples: [1199, -1] })
}

function count(description: string) {
  return Type.Integer({ minimum: 0, maximum: MAX_SAFE, description, examples: [42] })
}

function time(description: string) {
  return Type.Integer({ minimum: -MAX_SAFE, maximum: MAX_SAFE, description, examples: [1785004180013] })
}

const epoch = Type.String({ description: 'Names this life of the session; opaque.', examples: ['k3v9q2-1'] })

/** The fields of a create request; all may be left out. */
export const CreateSession = Type.Object(
  {
    type: Type.Optional(Type.Literal('session')),
    version: Type.Optional(Type.Literal(0)),
    id: Type.Optional(sessionId('Must be the id of the path when given.')),
    createdAt: Type.Optional(time('Epoch milliseconds. Default: the time of the request.')),
    cwd: Type.Optional(Type.String({ description: 'Working folder of the agent.', examples: ['/workspace'] })),
    parentSession: Type.Optional(sessionId('The session that this one is a child or fork of.', { examples: [] })),
    seedLength: Type.Optional(count('How many events at the start were copied from the parent.')),
    origin: Type.Optional(
      Type.String({
        description: '`subagent` makes it a child, which is read through its parent only.',
        examples: ['subagent'],
      }),
    ),
    delegationDepth: Type.Optional(count('How many parents are above this session.')),
    agentPreset: Type.Optional(Type.Unknown({ description: 'Any JSON value, kept as it is.' })),
  },
  {
    additionalProperties: true,
    description: 'Header fields. Others than those named are kept as they are.',
    examples: [{ cwd: '/workspace' }],
  },
)
export type CreateSession = Static<typeof CreateSession>

export const SessionDescription = Type.Object(
  {
    id: sessionId('The session.'),
    epoch,
    head: head(),
    messages: count('Messages in the log: user and assistant messages that were appended.'),
    bytes: count('UTF-8 bytes of the JSON texts of all events.'),
    createdAt: time('Epoch milliseconds, from the header.'),
    updatedAt: time('Epoch milliseconds, by the clock of the server, of the last append, or of the creation.'),
    header: Type.Object(
      {
        type: Type.Literal('session'),
        version: Type.Literal(0),
        id: Type.String(),
        createdAt: Type.Integer(),
      },
      { additionalProperties: true, description: 'The header as it was given.' },
    ),
  },
  { description: 'One session.' },
)
export type SessionDescription = Static<typeof SessionDescription>

export const SessionList = Type.Object(
  {
    sessions: Type.Array(SessionDescription, { description: 'Newest created first.' }),
    nextCursor: Type.Optional(Type.String({ description: 'Asks for the sessions after these; absent at the end.' })),
  },
  { description: 'Sessions.' },
)
export type SessionList = Static<typeof SessionList>

export const AppendResult = Type.Object(
  {
    head: head(),
    appended: count('Events that this request added.'),
    duplicates: count('Events that were in the log already and were skipped.'),
    epoch,
  },
  { description: 'What is durable now.' },
)
export type AppendResult = Static<typeof AppendResult>

export const ImportResult = Type.Object(
  { id: sessionId('The session of the log.'), epoch, head: head() },
  { description: 'The session that was imported, or was there already and equals the file.' },
)
export type ImportResult = Static<typeof ImportResult>

/** The errors' body. The facts that the code calls for stand beside these members. */
export const ProblemSchema = Type.Object(
  {
    type: Type.String({ description: 'A URN made of the code.', examples: ['urn:scrollback:problem:append/gap'] }),
    title: Type.String({ description: 'One fixed sentence for each code.' }),
    status: Type.Integer({ minimum: 400, maximum: 599, examples: [409] }),
    detail: Type.String({ description: 'What happened this time.' }),
    code: Type.String({
      description: `Stable; treat one that you do not know by its status. One of ${Object.keys(PROBLEM_STATUS)
        .map((code) => `\`${code}\``)
        .join(', ')}.`,
      examples: ['append/gap'],
    }),
    head: Type.Optional(head('Last committed seq.')),
    expectedSeq: Type.Optional(seq('The seq that the next append must begin with.')),
    line: Type.Optional(count('Line of the body, from 1.')),
    path: Type.Optional(
      Type.String({
        description: 'JSON pointer into the line or document, or the name of a parameter.',
        examples: ['/seq'],
      }),
    ),
    limit: Type.Optional(count('The limit that was passed, in its own unit.')),
    epoch: Type.Optional(epoch),
    retryAfter: Type.Optional(Type.Number({ minimum: 0, description: 'Seconds.', examples: [1] })),
  },
  { additionalProperties: true, description: 'An error as of RFC 9457.' },
)
export type ProblemSchema = Static<typeof ProblemSchema>

// ---------------------------------------------------------------------------------------------------------------
// Lines: these describe; `validateRecord` checks, and faster
// ---------------------------------------------------------------------------------------------------------------

const surfaceOp = Type.Union([
  Type.Literal('append'),
  Type.Object(
    { op: Type.Literal('replace'), start: seq('First entry replaced.'), end: seq('Last entry replaced.') },
    STRICT,
  ),
])

function eventObject<Seq extends TSchema, Time extends TSchema>(seqSchema: Seq, timeSchema: Time, description: string) {
  return Type.Object(
    {
      type: Type.String({ minLength: 1, maxLength: 200, description: 'An open set.', examples: ['user/message'] }),
      seq: seqSchema,
      time: timeSchema,
      data: Type.Unknown({ description: 'Any JSON value.', examples: [{ content: 'hello' }] }),
      ignorable: Type.Optional(Type.Literal(true)),
      sourceEventSeqs: Type.Optional(Type.Array(seq('An earlier event that this one was made from.'))),
      surfaceOp: Type.Optional(surfaceOp),
    },
    { additionalProperties: true, description },
  )
}

export const EventSchema = eventObject(seq('Place in the log.'), time('Epoch milliseconds.'), 'One event of a log.')

/** An event as it may be appended. */
export const NewEventSchema = eventObject(
  Type.Optional(seq('Place in the log; on all lines of a request or on none.')),
  Type.Optional(time('Epoch milliseconds. Given with seq; an event without both is stamped by the service.')),
  'One event to append.',
)

const gaps = Type.Array(Type.Integer(), {
  description: 'Milliseconds from each member to the next: one fewer than there are members.',
  examples: [[12, 0]],
})
const block = { turn: Type.Integer(), step: Type.Integer(), index: Type.Integer() }

export const RowSchema = Type.Union(
  [
    Type.Object(
      {
        type: Type.Union([Type.Literal('chunkrow/text-chunks'), Type.Literal('chunkrow/reasoning-chunks')]),
        seq: seq('Of the first member.'),
        time: time('Of the first member.'),
        data: Type.Object({ ...block, dt: gaps, texts: Type.Array(Type.String(), { minItems: 1 }) }, STRICT),
      },
      STRICT,
    ),
    Type.Object(
      {
        type: Type.Literal('chunkrow/tool-call-chunks'),
        seq: seq('Of the first member.'),
        time: time('Of the first member.'),
        data: Type.Object(
          {
            ...block,
            id: Type.String(),
            name: Type.Optional(Type.String()),
            dt: gaps,
            args: Type.Array(Type.String(), { minItems: 1 }),
          },
          STRICT,
        ),
      },
      STRICT,
    ),
  ],
  { description: 'A run of token events packed into one value; member k has the seq of the first plus k.' },
)

export const EventRecordSchema = Type.Object({ type: Type.Literal('event'), event: EventSchema }, STRICT)
export const RowRecordSchema = Type.Object({ type: Type.Literal('chunks'), event: RowSchema }, STRICT)
export const OmittedRecordSchema = Type.Object(
  {
    type: Type.Literal('omitted'),
    event: Type.Object(
      {
        type: Type.Literal('chunkrow/omitted'),
        seq: seq('First seq left out.'),
        time: time('Of the first event left out.'),
        data: Type.Object({ count: Type.Integer({ minimum: 1, description: 'How many were left out.' }) }, STRICT),
      },
      STRICT,
    ),
  },
  STRICT,
)

export const RecordSchema = Type.Union([EventRecordSchema, RowRecordSchema, OmittedRecordSchema], {
  description: 'One line of history. The outer `type` alone tells what it is.',
})

/** What a followed stream ends with. Without it, the reader connects again. */
export const EndSchema = Type.Object(
  { type: Type.Literal('end'), reason: Type.Unsafe<EndReason>({ type: 'string', enum: [...END_REASONS] }) },
  { additionalProperties: false, description: 'The one control line; after it the body ends.' },
)

/** One line of an append body, or one element of its array. */
export const AppendLineSchema = Type.Union([
  NewEventSchema,
  Type.Object({ type: Type.Literal('event'), event: NewEventSchema }, STRICT),
  RowRecordSchema,
])

/** A page in one document, for `Accept: application/json`. */
export const PageDocument = Type.Object(
  {
    epoch,
    from: seq('First seq of the page.'),
    to: seq('End of the page, not included.'),
    hasMore: Type.Boolean({ description: 'Whether there are events before the page.' }),
    records: Type.Array(RecordSchema),
  },
  { description: 'A page.' },
)
export type PageDocument = Static<typeof PageDocument>

/** One line of the model-visible surface. */
export const MessageLine = Type.Object(
  { seq: seq('Of the event.'), message: Type.Unknown({ description: 'The message as it was appended.' }) },
  { description: 'One message that the model sees.' },
)
export type MessageLine = Static<typeof MessageLine>
