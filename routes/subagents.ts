// Subagents: the children of a session, and what is read of a child through its direct parent.

import { ChildPath, ParentPath, SessionList, SubagentListQuery } from '../codec/index.ts'
import { eventsSchema, readEvents } from './events.ts'
import { follow, followSchema } from './follow.ts'
import { historySchema, readHistory } from './history.ts'
import { messagesSchema, readMessages } from './messages.ts'
import { listQuery } from './query.ts'
import type { RoutePlugin } from './schema.ts'
import { json, problems } from './schema.ts'
import { sendSessions } from './session-reply.ts'

const CHILD = '/sessions/:parent/subagents/:child'
const method = ['GET', 'HEAD']
const tags = ['subagents']

export const subagentRoutes: RoutePlugin = async (app, { history, limits }) => {
  app.route({
    method,
    url: '/sessions/:parent/subagents',
    schema: {
      operationId: 'listSubagents',
      tags,
      summary: 'List the direct children of a session',
      description: 'Newest created first. The parent need not be stored; without children the list is empty.',
      params: ParentPath,
      querystring: SubagentListQuery,
      response: { 200: json('Children.', SessionList), ...problems() },
    },
    handler: async (request, reply) =>
      sendSessions(reply, await history.subagents(request.params.parent, listQuery(request.query))),
  })

  app.route({
    method,
    url: `${CHILD}/history`,
    schema: { ...historySchema, tags, operationId: 'readSubagentHistory', params: ChildPath },
    handler: readHistory(history),
  })

  app.route({
    method,
    url: `${CHILD}/events`,
    schema: { ...eventsSchema, tags, operationId: 'readSubagentEvents', params: ChildPath },
    handler: readEvents(history),
  })

  app.route({
    method: 'GET',
    url: `${CHILD}/follow`,
    config: { staysOpen: true },
    schema: { ...followSchema, tags, operationId: 'followSubagent', params: ChildPath },
    handler: follow(history, limits),
  })

  app.route({
    method,
    url: `${CHILD}/messages`,
    schema: { ...messagesSchema, tags, operationId: 'readSubagentMessages', params: ChildPath },
    handler: readMessages(history),
  })
}
