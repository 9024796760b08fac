// The one place where an error becomes an HTTP answer.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { ParameterWords, ProblemCode } from '../../codec/index.ts'
import { MEDIA_PROBLEM, Problem, problemDocument } from '../../codec/index.ts'
import { BrokenAnswer } from '../../routes/index.ts'

/** Answer with a problem document; an answer that has begun is broken off instead. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  // An answer may break off before its first byte has left.
  const broken = error instanceof BrokenAnswer
  const problem = problemOf(broken ? error.cause : error, request)
  if (problem.status >= 500 && !broken) logFailure(error, problem, request)
  if (reply.raw.headersSent) {
    reply.raw.destroy()
    return
  }
  // None of the headers of the answer that failed, such as its ETag, are true of this one.
  for (const name of Object.keys(reply.getHeaders())) {
    reply.removeHeader(name)
    reply.raw.removeHeader(name)
  }
  reply.code(problem.status).header('Content-Type', MEDIA_PROBLEM).header('Cache-Control', 'no-store')
  const { retryAfter, allow } = problem.facts
  if (retryAfter !== undefined) reply.header('Retry-After', `${Math.ceil(retryAfter)}`)
  if (allow !== undefined) reply.header('Allow', allow.join(', '))
  if (CLOSING.has(problem.code)) reply.header('Connection', 'close')
  reply.send(Buffer.from(JSON.stringify(problemDocument(problem))))
}

/** After these the client's next request belongs on another connection. */
const CLOSING: ReadonlySet<ProblemCode> = new Set(['server/draining', 'request/timeout'])

/** The last request of each connection. */
export const answering = new WeakMap<Duplex, { readonly request: IncomingMessage; readonly answer: ServerResponse }>()

/** For what is not HTTP, or did not arrive whole: there is no request and no reply, only the socket. */
export function handleClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  // What is broken came behind a good request, whose answer must not be mixed with another.
  const { request, answer } = answering.get(socket) ?? {}
  if (request?.complete && answer && !answer.writableFinished) {
    if (answer.destroyed) socket.destroy()
    else answer.once('close', () => socket.destroy())
    return
  }
  const problem = clientProblem(error)
  const body = JSON.stringify(problemDocument(problem))
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    `Content-Type: ${MEDIA_PROBLEM}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

function clientProblem({ code, message }: NodeJS.ErrnoException): Problem {
  if (code === 'HPE_HEADER_OVERFLOW') return new Problem('request/headers-too-large', 'the headers are too large')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Problem('request/timeout', 'the headers took too long to arrive')
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW')
    return new Problem('request/too-large', 'the chunk extensions are too large')
  return new Problem('request/invalid', `this is not HTTP: ${message}`)
}

function problemOf(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error
  if (!(error instanceof Error)) return internal(error)
  const { code = '', statusCode = 500, validation } = error as FastifyError
  if (validation) return invalidPart(error as FastifyError, request)
  if (code === 'FST_ERR_BAD_URL')
    return new Problem('request/invalid', 'the path is not well percent-encoded', { path: 'path' })
  if (code.startsWith('FST_') && statusCode >= 400 && statusCode < 500) {
    return new Problem(FRAMEWORK_CODES[statusCode] ?? 'request/invalid', error.message, {}, { cause: error })
  }
  return internal(error)
}

/** For statuses that the framework gives on its own. */
const FRAMEWORK_CODES: Record<number, ProblemCode> = {
  404: 'route/not-found',
  405: 'request/method',
  406: 'request/not-acceptable',
  408: 'request/timeout',
  413: 'request/too-large',
  415: 'request/unsupported-media-type',
  431: 'request/headers-too-large',
}

function internal(cause: unknown): Problem {
  return new Problem('internal', 'something went wrong on the server', {}, { cause })
}

/** A parameter that its schema refuses, named, with what was expected and what came. */
function invalidPart({ validation, validationContext }: FastifyError, request: FastifyRequest): Problem {
  const [found] = validation ?? []
  if (!found) return new Problem('request/invalid', 'the request is not valid')
  const { additionalProperty, missingProperty } = found.params as Record<string, string | undefined>
  const path = additionalProperty ?? missingProperty ?? found.instancePath.replace(/^\//, '')
  const { parentSchema } = found as RefusedBy
  if (additionalProperty !== undefined) {
    const offered = Object.keys(parentSchema?.properties ?? {})
    const others = offered.length === 0 ? '' : `; there is ${offered.join(', ')}`
    return new Problem('request/invalid', `there is no parameter ${path} here${others}`, { path, offered })
  }
  const part = (validationContext === 'params' ? request.params : request.query) as Record<string, unknown>
  const came = clipped(JSON.stringify(part[path]))
  if (Array.isArray(part[path]))
    return new Problem('request/invalid', `${path} is given more than once: ${came}`, { path })
  const { expected, limit } = parentSchema?.['x-parameter'] ?? {}
  const must = expected === undefined ? found.message : `must be ${expected}`
  const facts = limit === undefined ? { path } : { path, limit }
  return new Problem('request/invalid', `${path} ${must}, got ${came}`, facts)
}

/** The validator is told to name the schema, which says in words what it takes, or has the parameters that there are. */
interface RefusedBy {
  readonly parentSchema?: { readonly 'x-parameter'?: ParameterWords; readonly properties?: object }
}

function clipped(text: string | undefined): string {
  return text === undefined ? 'nothing' : text.length > 100 ? `${text.slice(0, 100)}…` : text
}

/** A busy or draining server is no failure; anything else of this kind is worth one line. */
function logFailure(error: unknown, { code }: Problem, request: FastifyRequest): void {
  if (code === 'server/busy' || code === 'server/draining') return
  request.log.error({ err: error, method: request.method, url: request.url }, 'a request failed')
}
