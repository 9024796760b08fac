// Sessions: create, list, describe, delete.

import {
  CreateSession,
  MEDIA_JSON,
  SessionDescription,
  SessionList,
  SessionListQuery,
  SessionPath,
} from '../codec/index.ts'
import { bodyText, CREATE_BYTES } from './body.ts'
import { checkJsonBody } from './media.ts'
import { listQuery } from './query.ts'
import type { RoutePlugin } from './schema.ts'
import { json, NoQuery, problems } from './schema.ts'
import { sendSession, sendSessions } from './session-reply.ts'

const tags = ['sessions']

export const sessionRoutes: RoutePlugin = async (app, { history, limits }) => {
  app.route({
    method: 'PUT',
    url: '/sessions/:id',
    schema: {
      operationId: 'createSession',
      tags,
      summary: 'Create a session',
      description:
        'The body is the header of the session; every field may be left out. Asking again with equal fields changes nothing.',
      params: SessionPath,
      querystring: NoQuery,
      requestBody: { required: false, content: { [MEDIA_JSON]: { schema: CreateSession } } },
      response: {
        200: json('It was there already, with these fields.', SessionDescription),
        201: json('Created.', SessionDescription),
        ...problems('session/exists', 'request/too-large', 'request/unsupported-media-type', 'store/full'),
      },
    },
    handler: async (request, reply) => {
      const fields = await bodyText(request, CREATE_BYTES, limits.idleMs)
      if (fields !== undefined) checkJsonBody(request)
      const { created, session } = await history.create(request.params.id, fields)
      return sendSession(reply.code(created ? 201 : 200), session)
    },
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/sessions',
    schema: {
      operationId: 'listSessions',
      tags,
      summary: 'List sessions',
      description: 'Newest created first. Reads no events.',
      querystring: SessionListQuery,
      response: { 200: json('Sessions.', SessionList), ...problems() },
    },
    handler: async (request, reply) => sendSessions(reply, await history.list(listQuery(request.query))),
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/sessions/:id',
    schema: {
      operationId: 'describeSession',
      tags,
      summary: 'Describe a session',
      params: SessionPath,
      querystring: NoQuery,
      response: { 200: json('The session.', SessionDescription), ...problems('session/not-found') },
    },
    handler: async (request, reply) => sendSession(reply, await history.describe(request.params.id)),
  })

  app.route({
    method: 'DELETE',
    url: '/sessions/:id',
    schema: {
      operationId: 'deleteSession',
      tags,
      summary: 'Delete a session',
      description: 'At once for every reader. The id is free; a session created under it again has another epoch.',
      params: SessionPath,
      querystring: NoQuery,
      response: { 204: { type: 'null', description: 'Deleted.' }, ...problems('session/not-found') },
    },
    handler: async (request, reply) => {
      await history.remove(request.params.id)
      return reply.code(204).send(null)
    },
  })
}
