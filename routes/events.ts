// Events: append them, and read a range of the log.

import type { FastifyReply } from 'fastify'
import {
  AppendLineSchema,
  AppendQuery,
  AppendResult,
  EventsQuery,
  MEDIA_JSON,
  MEDIA_NDJSON_NAMES,
  SessionPath,
} from '../codec/index.ts'
import type { History } from '../src/history/index.ts'
import { AppendBodies } from './body.ts'
import { appendFormat } from './media.ts'
import type { TargetRequest } from './page-reply.ts'
import { previousRange, sendPage } from './page-reply.ts'
import { appendOptions, rangeQuery } from './query.ts'
import type { RoutePlugin } from './schema.ts'
import { json, pageResponse, problems } from './schema.ts'

const tags = ['history']
const EXAMPLE = { type: 'user/message', data: { role: 'user', content: 'hello' }, surfaceOp: 'append' }

export const eventRoutes: RoutePlugin = async (app, { history, limits }) => {
  const bodies = new AppendBodies(limits)

  app.route({
    method: 'POST',
    url: '/sessions/:id/events',
    schema: {
      operationId: 'appendEvents',
      tags,
      summary: 'Append events',
      description: [
        'One event, `event` record or `chunks` record a line; as JSON one of them, or an array. All of a request is',
        'durable when it is answered, or nothing of it is stored. With `seq` on every line, or with `expectedSeq`, a',
        'request may be repeated safely.',
      ].join(' '),
      params: SessionPath,
      querystring: AppendQuery,
      requestBody: {
        required: true,
        content: {
          [MEDIA_NDJSON_NAMES[0]]: {
            schema: { allOf: [AppendLineSchema], examples: [`${JSON.stringify(EXAMPLE)}\n`] },
          },
          [MEDIA_JSON]: {
            schema: { anyOf: [AppendLineSchema, { type: 'array', items: AppendLineSchema }], examples: [EXAMPLE] },
          },
        },
      },
      response: {
        200: json('What is durable now.', AppendResult),
        ...problems(
          'session/not-found',
          'session/replaced',
          'append/gap',
          'append/conflict',
          'request/too-large',
          'request/unsupported-media-type',
          'event/invalid',
          'record/malformed',
          'server/busy',
          'store/full',
        ),
      },
    },
    handler: (request) => {
      const format = appendFormat(request)
      const { params, query } = request
      return bodies.hold(request, (bytes) => history.append(params.id, { format, bytes }, appendOptions(query)))
    },
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/sessions/:id/events',
    schema: { ...eventsSchema, operationId: 'readEvents', params: SessionPath },
    handler: readEvents(history),
  })
}

/** Of a range, but for its path. */
export const eventsSchema = {
  tags,
  summary: 'Read a range of the log',
  description: 'The canonical records of `[fromSeq, toSeq)`, as NDJSON or, when asked for, as one JSON document.',
  querystring: EventsQuery,
  response: pageResponse,
} as const

export function readEvents(history: History) {
  return async (request: TargetRequest<EventsQuery>, reply: FastifyReply) => {
    const page = await history.range(request.params, rangeQuery(request.query))
    return sendPage(request, reply, page, previousRange(page, request.query))
  }
}
