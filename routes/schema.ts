// What the route files share: the shape of a resource's plugin, and the parts of its description that repeat.

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { TSchema } from 'typebox'
import Type from 'typebox'
import type { ProblemCode } from '../codec/index.ts'
import {
  EndSchema,
  HEADER_EPOCH,
  HEADER_FROM,
  HEADER_HEAD,
  HEADER_MORE,
  HEADER_TO,
  MEDIA_EVENT_STREAM,
  MEDIA_JSON,
  MEDIA_NDJSON_NAMES,
  MEDIA_PROBLEM,
  PageDocument,
  PROBLEM_STATUS,
  ProblemSchema,
  RecordSchema,
} from '../codec/index.ts'
import type { History } from '../src/history/index.ts'
import type { BodyLimits } from './body.ts'
import type { LiveLimits } from './live-reply.ts'

export interface RouteOptions {
  readonly history: History
  readonly limits: BodyLimits & LiveLimits
  readonly isDraining: () => boolean
}

/** What the operations need. */
export interface OperationOptions extends RouteOptions {
  readonly metrics: {
    readonly contentType: string
    text(): Promise<string>
  }
}

/** One resource. */
export type RoutePlugin = FastifyPluginAsyncTypebox<RouteOptions>

declare module 'fastify' {
  interface FastifySchema {
    /** Describes a body that the handler reads itself, so it is not validated as a value. */
    requestBody?: { readonly required: boolean; readonly content: Record<string, { readonly schema: unknown }> }
  }
  interface FastifyContextConfig {
    /** Answered also while the server shuts down. */
    whileDraining?: boolean
    /** The answer ends when the client leaves, so its duration tells nothing. */
    staysOpen?: boolean
  }
}

/** A name that is not known is refused. */
export const NoQuery = Type.Object({}, { additionalProperties: false })

/** What any request may be answered with. */
const ALWAYS = ['request/invalid', 'internal', 'server/draining', 'store/unavailable'] as const satisfies ProblemCode[]

/** The error answers of a route, by status. */
export function problems(...codes: ProblemCode[]): Record<number, object> {
  const answers: Record<number, object> = {}
  for (const [status, of] of Map.groupBy(new Set([...ALWAYS, ...codes]), (code) => PROBLEM_STATUS[code])) {
    answers[status] = {
      description: of.map((code) => `\`${code}\``).join(', '),
      content: { [MEDIA_PROBLEM]: { schema: ProblemSchema } },
    }
  }
  return answers
}

/** An answer of one JSON value. */
export function json(description: string, schema: TSchema): object {
  return { description, content: { [MEDIA_JSON]: { schema } } }
}

const text = (description: string, example: string) => ({ type: 'string', description, example })

export const logHeaders = {
  [HEADER_EPOCH]: text('Names this life of the session; opaque.', 'k3v9q2-1'),
  [HEADER_TO]: text('End of what is sent, not included.', '1200'),
  [HEADER_HEAD]: text('Last committed seq when the answer began.', '1199'),
}

const rangeHeaders = {
  [HEADER_EPOCH]: text('Names this life of the session; opaque.', 'k3v9q2-1'),
  [HEADER_FROM]: text('First seq of the range, included.', '1024'),
  [HEADER_TO]: text('End of the range, not included.', '1200'),
  [HEADER_MORE]: text('`true` when there are events before the range.', 'true'),
  [HEADER_HEAD]: text('Last committed seq, when the end of the range was not given.', '1199'),
  Link: text(
    'The page before this one, when there is one.',
    '</v1/sessions/demo/history?beforeSeq=1024&epoch=k3v9q2-1>; rel="prev"',
  ),
}

const pageHeaders = {
  ...rangeHeaders,
  ETag: text('Names the bytes of this answer.', '"k3v9q2-1.1024.1200.packed.ndjson.gzip"'),
}

export const pageResponse = {
  200: {
    description: 'The records cover `[History-From, History-To)` exactly, one a line.',
    headers: pageHeaders,
    content: { [MEDIA_NDJSON_NAMES[0]]: { schema: RecordSchema }, [MEDIA_JSON]: { schema: PageDocument } },
  },
  304: { description: 'What `If-None-Match` names is still right.', type: 'null' },
  ...problems('session/not-found', 'subagent/not-found', 'session/replaced', 'history/ahead', 'request/not-acceptable'),
}

/** Browsers see no headers, so the stream says what they would. */
const EVENT_STREAM = [
  'First an event `page` with `epoch`, `from`, `to` and `hasMore`: the records up to `to` are the opening part. Then a',
  'message for each record; its `id` is the last seq that it covers and the epoch. An `EventSource` that lost the',
  'connection sends the `id` back, and gets another `page`: with the same epoch and with `from` where the last record',
  'ended it goes on, otherwise it starts over. Last an event `end` with its `reason`.',
].join(' ')

const EVENT_STREAM_EXAMPLE = [
  'event: page\ndata: {"epoch":"k3v9q2-1","from":1198,"to":1199,"hasMore":true}\n\n',
  'data: {"type":"event","event":{"type":"user/message","seq":1198,"time":1762000000000,"data":{}}}\n',
  'id: 1198.k3v9q2-1\n\n',
  'event: end\ndata: {"type":"end","reason":"draining"}\n\n',
].join('')

export const followResponse = {
  200: {
    description: 'The opening part covers `[History-From, History-To)`; what comes later goes on from there.',
    headers: rangeHeaders,
    content: {
      [MEDIA_NDJSON_NAMES[0]]: { schema: Type.Union([RecordSchema, EndSchema]) },
      [MEDIA_EVENT_STREAM]: { schema: { type: 'string', description: EVENT_STREAM, examples: [EVENT_STREAM_EXAMPLE] } },
    },
  },
  204: { description: 'To a browser that connects again: the session is gone.', type: 'null' },
  ...problems(
    'session/not-found',
    'subagent/not-found',
    'session/replaced',
    'history/ahead',
    'request/not-acceptable',
    'server/busy',
  ),
}

/** One line of a session log. */
export const LogLine = Type.Object(
  { type: Type.String({ description: '`session` on line 1; then an event, or a row in storage form.' }) },
  { additionalProperties: true, description: 'One line of a session log.' },
)
