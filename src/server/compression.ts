// Content codings of answers and bodies, by @fastify/compress.
//
// Every write is flushed by the encoder, so that a line which was produced is not held back: the flush constants of the
// encoders differ, and the plugin passes one set of options to all of them, so each is made here. A decoder refuses what
// follows the end of its data instead of dropping it.

import * as zlib from 'node:zlib'
import compress from '@fastify/compress'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { codingProblem, REQUEST_CODINGS, RESPONSE_CODINGS } from '../../routes/index.ts'
import { BorrowedBody } from './borrowed-body.ts'

const {
  BROTLI_OPERATION_FLUSH,
  BROTLI_PARAM_LGWIN,
  BROTLI_PARAM_QUALITY,
  Z_SYNC_FLUSH,
  ZSTD_c_windowLog,
  ZSTD_e_flush,
} = zlib.constants

/** Higher qualities of brotli cost more time than the network saves. */
const BROTLI = { [BROTLI_PARAM_QUALITY]: 4, [BROTLI_PARAM_LGWIN]: 18 }
// Smaller windows than the encoders' own: two hundred readers that are slow hold an encoder each.
const ZSTD = { [ZSTD_c_windowLog]: 18 }

const CODERS = {
  createGzip: () => zlib.createGzip({ flush: Z_SYNC_FLUSH }),
  createBrotliCompress: () => zlib.createBrotliCompress({ flush: BROTLI_OPERATION_FLUSH, params: BROTLI }),
  createZstdCompress: () => zlib.createZstdCompress({ flush: ZSTD_e_flush, params: ZSTD }),
  gzipSync: (text: Buffer) => zlib.gzipSync(text),
  brotliCompressSync: (text: Buffer) => zlib.brotliCompressSync(text, { params: BROTLI }),
  zstdCompressSync: (text: Buffer) => zlib.zstdCompressSync(text),
  // Gzip itself allows several members and refuses anything else.
  createGunzip: () => zlib.createGunzip(),
  createInflate: () => zlib.createInflate({ rejectGarbageAfterEnd: true }),
  createBrotliDecompress: () => zlib.createBrotliDecompress({ rejectGarbageAfterEnd: true }),
}

const COMPRESSIBLE = /^(application\/(x-ndjson|json|problem\+json|yaml|javascript)|text\/(html|css|javascript))\b/

export async function registerCompression(app: FastifyInstance): Promise<void> {
  await app.register(compress, {
    encodings: [...RESPONSE_CODINGS],
    requestEncodings: [...REQUEST_CODINGS],
    customTypes: COMPRESSIBLE,
    zlib: CODERS,
    onUnsupportedRequestEncoding: codingProblem,
    // The body's reader makes the problem: it knows whether the data was bad or the client left.
    onInvalidRequestPayload: (_coding, _request, error) => error,
  })
  app.addHook('onRequest', lowerCaseCoding)
  app.addHook('preParsing', (request, _reply, body, done) => {
    done(null, isCoded(request) ? new BorrowedBody(request.raw) : body)
  })
  // After the plugin's own hook, which adds its value in lower case.
  app.addHook('onRoute', (route) => {
    route.onSend = [route.onSend ?? [], tidyVary].flat()
  })
}

function isCoded({ headers }: FastifyRequest): boolean {
  return (headers['content-encoding'] ?? 'identity') !== 'identity'
}

/** Names of codings are the same in any case; the plugin compares them as they are. */
function lowerCaseCoding({ headers }: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  if (headers['content-encoding'] !== undefined) {
    headers['content-encoding'] = headers['content-encoding'].trim().toLowerCase()
  }
  done()
}

function tidyVary(request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: () => void): void {
  const given = reply.getHeader('vary')
  if (given !== undefined || request.method === 'GET' || request.method === 'HEAD') {
    const names = `${given ?? ''}`.split(',').flatMap((name) => name.trim() || [])
    const others = names.filter((name) => name.toLowerCase() !== 'accept-encoding')
    reply.header('Vary', [...others, 'Accept-Encoding'].join(', '))
  }
  done()
}
