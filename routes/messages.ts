// Messages: the model-visible surface of a session.

import type { FastifyReply } from 'fastify'
import { MEDIA_NDJSON_NAMES, MessageLine, MessagesQuery, SessionPath } from '../codec/index.ts'
import type { History } from '../src/history/index.ts'
import type { TargetRequest } from './page-reply.ts'
import { sendLog } from './page-reply.ts'
import type { RoutePlugin } from './schema.ts'
import { logHeaders, problems } from './schema.ts'

export const messageRoutes: RoutePlugin = async (app, { history }) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/sessions/:id/messages',
    schema: { ...messagesSchema, operationId: 'readMessages', params: SessionPath },
    handler: readMessages(history),
  })
}

/** Of the surface, but for its path. */
export const messagesSchema = {
  tags: ['history'],
  summary: 'Read the messages that the model sees',
  description: 'Append and replace operations folded in order, a line for each message.',
  querystring: MessagesQuery,
  response: {
    200: {
      description: 'One message a line.',
      headers: logHeaders,
      content: { [MEDIA_NDJSON_NAMES[0]]: { schema: MessageLine } },
    },
    ...problems('session/not-found', 'session/replaced', 'request/not-acceptable'),
  },
} as const

export function readMessages(history: History) {
  return async (request: TargetRequest<MessagesQuery>, reply: FastifyReply) =>
    sendLog(request, reply, await history.messages(request.params, request.query))
}
