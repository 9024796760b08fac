// Operations: whether the process lives, whether it can serve, the description of the service, and the way to its pages.

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import Type from 'typebox'
import { Problem } from '../codec/index.ts'
import type { OperationOptions } from './schema.ts'
import { json, NoQuery, problems } from './schema.ts'

const tags = ['operations']
const Status = Type.Object({ status: Type.Literal('ok') }, { additionalProperties: false })

export const operationRoutes: FastifyPluginAsyncTypebox<OperationOptions> = async (app, options) => {
  const { history, isDraining, metrics } = options
  app.route({
    method: ['GET', 'HEAD'],
    url: '/',
    schema: { hide: true, querystring: NoQuery },
    handler: async (_request, reply) => reply.redirect('/docs', 302),
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/livez',
    config: { whileDraining: true },
    schema: {
      operationId: 'live',
      tags,
      summary: 'Whether the process lives',
      querystring: NoQuery,
      response: { 200: json('It does.', Status) },
    },
    handler: async () => ({ status: 'ok' as const }),
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/readyz',
    config: { whileDraining: true },
    schema: {
      operationId: 'ready',
      tags,
      summary: 'Whether requests can be served',
      description: 'Not while the process shuts down, nor when the store cannot be reached.',
      querystring: NoQuery,
      response: { 200: json('They can.', Status), ...problems('server/draining', 'store/unavailable') },
    },
    handler: async () => {
      if (isDraining()) throw new Problem('server/draining', 'the server is shutting down')
      await history.check()
      return { status: 'ok' as const }
    },
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/metrics',
    config: { whileDraining: true },
    schema: {
      operationId: 'measure',
      tags,
      summary: 'Figures of the service and its process',
      querystring: NoQuery,
      response: {
        200: {
          description: 'Text for Prometheus: requests by route, followers, processor, memory, event loop, collections.',
          content: { 'text/plain': { schema: { type: 'string' } } },
        },
      },
    },
    handler: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: '/openapi.yaml',
    schema: {
      operationId: 'describeService',
      tags,
      summary: 'This description',
      querystring: NoQuery,
      response: {
        200: { description: 'OpenAPI 3.1.', content: { 'application/yaml': { schema: { type: 'string' } } } },
      },
    },
    handler: async (_request, reply) =>
      reply
        .header('Cache-Control', 'no-cache')
        .type('application/yaml')
        .send(app.swagger({ yaml: true })),
  })
}
