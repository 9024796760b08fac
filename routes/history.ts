// History: one page of a session.

import type { FastifyReply } from 'fastify'
import { HistoryQuery, SessionPath } from '../codec/index.ts'
import type { History } from '../src/history/index.ts'
import type { TargetRequest } from './page-reply.ts'
import { previousPage, sendPage } from './page-reply.ts'
import { pageQuery } from './query.ts'
import type { RoutePlugin } from './schema.ts'
import { pageResponse } from './schema.ts'

export const historyRoutes: RoutePlugin = async (app, { history }) => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/sessions/:id/history',
    schema: { ...historySchema, operationId: 'readHistory', params: SessionPath },
    handler: readHistory(history),
  })
}

/** Of a page, but for its path. */
export const historySchema = {
  tags: ['history'],
  summary: 'Read a page',
  description: [
    'The newest page, or the one before `beforeSeq`: so many messages, from the start of the first one. The headers tell',
    'its range, and `Link` leads to the page before it. NDJSON or, when asked for, one JSON document.',
  ].join(' '),
  querystring: HistoryQuery,
  response: pageResponse,
} as const

export function readHistory(history: History) {
  return async (request: TargetRequest<HistoryQuery>, reply: FastifyReply) => {
    const page = await history.page(request.params, pageQuery(request.query))
    return sendPage(request, reply, page, previousPage(page, request.query))
  }
}
