// The application: wires a store, the domain, the routes and the rules that hold for every request. It does not listen.

import accepts from '@fastify/accepts'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify'
import fastify, { LogController } from 'fastify'
import { Problem } from '../../codec/index.ts'
import { operationRoutes, routes } from '../../routes/index.ts'
import type { HistoryStore } from '../history/index.ts'
import { History } from '../history/index.ts'
import { registerCompression } from './compression.ts'
import type { Config } from './config.ts'
import { Drain } from './drain.ts'
import { answering, handleClientError, handleError } from './error-handler.ts'
import { KnownRoutes } from './known-routes.ts'
import { Metrics } from './metrics.ts'
import { registerOpenapi } from './openapi.ts'

export interface AppOptions {
  /** Stays the caller's to close. */
  readonly store: HistoryStore
  readonly config: Config
  readonly logger?: FastifyServerOptions['logger']
}

declare module 'fastify' {
  interface FastifyInstance {
    readonly drain: Drain
  }
}

/** Longer than any id that a request's headers have room for, so that the id itself is what is refused. */
const MAX_PARAM_LENGTH = 64 * 1024

/** How long a request that was answered early may go on sending its body, ms: closing at once could lose the answer. */
const LINGER_MS = 5_000

export async function buildApp({ store, config, logger }: AppOptions): Promise<FastifyInstance> {
  const app = fastify({
    logger: logger ?? { level: config.logLevel },
    logController: new QuietLog(),
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, verbose: true, keywords: ['x-parameter'] },
    },
    exposeHeadRoutes: false,
    // Bodies have a limit of their own, which is not a limit of their whole time.
    requestTimeout: 0,
    // After a drain nothing is left that deserves to be waited for.
    forceCloseConnections: true,
    return503OnClosing: false,
    http: { requireHostHeader: false },
    clientErrorHandler: handleClientError,
    frameworkErrors: handleError,
  })
  const drain = new Drain()
  const metrics = new Metrics()
  const known = new KnownRoutes()
  app.decorate('drain', drain)
  app.addHook('onRoute', (route) => known.add(route))
  // Hooks with callbacks: one that is async makes a promise for each request, and every append passes here.
  app.addHook('onRequest', (request, reply, done) => {
    drain.track(reply.raw)
    answering.set(request.raw.socket, { request: request.raw, answer: reply.raw })
    closeWhenStalled(reply, config.stallMs)
    if (!request.routeOptions.config.whileDraining) drain.refuse()
    checkRequest(request)
    if (request.is404) throw known.problem(request.method, request.url)
    done()
  })
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (drain.started) reply.header('Connection', 'close')
    done()
  })
  app.addHook('onResponse', (request, _reply, done) => {
    linger(request)
    done()
  })
  metrics.watch(app)
  app.setErrorHandler(handleError)
  app.setNotFoundHandler((request) => {
    throw known.problem(request.method, request.url)
  })
  // Bodies are streams; the routes that read them check their types.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, body, done) => done(null, body))
  app.setSerializerCompiler(() => (value) => JSON.stringify(value))

  await app.register(accepts)
  await registerCompression(app)
  await registerOpenapi(app)
  const history = new History(store, { followers: config.followers })
  metrics.gauge('scrollback_followers', 'Followed streams that are open.', () => history.following)
  drain.onStart(() => history.drain())
  const options = { history, limits: config, isDraining: () => drain.started }
  await app.register(operationRoutes, { ...options, metrics })
  await app.register(routes, { ...options, prefix: '/v1' })
  await app.ready()
  return app
}

/** A line for each request is for those who ask for it; failures are logged where they are handled. */
class QuietLog extends LogController {
  override incomingRequest(): void {}

  override requestCompleted(_error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const { method, url } = request
    request.log.debug({ method, url, status: reply.statusCode, ms: reply.elapsedTime }, 'request completed')
  }

  override streamError(error: Error, request: FastifyRequest): void {
    const left = 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE'
    request.log[left ? 'debug' : 'error']({ err: error }, 'an answer broke off')
  }
}

/** What the router and the parser of the query let pass. */
function checkRequest({ raw }: FastifyRequest): void {
  if (raw.httpVersion === '1.1' && raw.headers.host === undefined) {
    throw new Problem('request/invalid', 'a request names its host', { path: 'Host' })
  }
  // Of several the parser keeps the first, and whoever stands before this server may have kept another.
  if (hosts(raw.rawHeaders) > 1) {
    throw new Problem('request/invalid', 'a request names its host once', { path: 'Host' })
  }
  if ((raw.headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    throw new Problem('request/invalid', 'the one transfer coding known is chunked', { path: 'Transfer-Encoding' })
  }
  const { url = '' } = raw
  const at = url.indexOf('?')
  if (at === -1 || !url.includes('%', at)) return
  try {
    decodeURIComponent(url.slice(at))
  } catch {
    throw new Problem('request/invalid', 'the query is not well percent-encoded', { path: 'query' })
  }
}

function hosts(rawHeaders: readonly string[]): number {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count++
  }
  return count
}

/** A client that stopped reading holds memory; a store that is slow is no fault of the client's. */
function closeWhenStalled({ raw }: FastifyReply, stallMs: number): void {
  raw.setTimeout(stallMs, () => {
    if (raw.writableLength > 0) raw.destroy()
    else raw.setTimeout(stallMs)
  })
}

function linger({ raw }: FastifyRequest): void {
  if (raw.complete || raw.destroyed) return
  const timer = setTimeout(() => raw.destroy(), LINGER_MS).unref()
  raw.once('close', () => clearTimeout(timer)).resume()
}
