// A body that is produced while it is sent. Its first piece is read before anything is answered, so that a failure there
// is an ordinary error; after that a failure breaks the connection, and no body ends cleanly that is not whole.

import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { MEDIA_NDJSON, Problem } from '../codec/index.ts'
import type { Allocate } from '../src/history/index.ts'
import { contentCoding } from './content-coding.ts'
import { SentBuffers } from './sent-buffers.ts'

/** A failure that is logged already. What hears of it further on takes it for a client that left, and is quiet. */
export class BrokenAnswer extends Error {
  readonly code = 'ERR_STREAM_PREMATURE_CLOSE'

  constructor(cause: unknown) {
    super('an answer broke off', { cause })
  }
}

const READ_AHEAD_BYTES = 64 * 1024

export type StreamRequest = Pick<FastifyRequest, 'accepts' | 'headers' | 'log' | 'method' | 'raw' | 'url'>

/**
 * Answer with these headers and, unless the request is HEAD, these bytes.
 * @param headers values that are undefined are left out
 */
export async function sendStream(
  request: StreamRequest,
  reply: FastifyReply,
  headers: Record<string, string | undefined>,
  bytes: (allocate?: Allocate) => AsyncGenerator<Uint8Array>,
): Promise<FastifyReply> {
  const all = { 'Content-Type': MEDIA_NDJSON, Vary: 'Accept, Accept-Encoding', 'X-Accel-Buffering': 'no', ...headers }
  const coding = contentCoding(request.headers)
  if (request.method === 'HEAD') {
    return setHeaders(reply, { ...all, 'Content-Encoding': coding === 'identity' ? undefined : coding }).send()
  }
  // An encoder keeps a piece for as long as it likes.
  const buffers = coding === 'identity' ? new SentBuffers(reply.raw) : undefined
  const pieces = bytes(buffers?.allocate)
  const first = await pieces.next()
  // As bytes it holds one piece ahead for a slow reader; as objects it would hold sixteen.
  const body = Readable.from(whole(request, reply, first, pieces), {
    objectMode: false,
    highWaterMark: READ_AHEAD_BYTES,
  })
  return setHeaders(reply, all).send(buffers?.through(body) ?? body)
}

export function setHeaders(reply: FastifyReply, headers: Record<string, string | undefined>): FastifyReply {
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) reply.header(name, value)
  return reply
}

/** All the pieces. Leaves the source when the reader leaves. */
async function* whole(
  request: StreamRequest,
  reply: FastifyReply,
  first: IteratorResult<Uint8Array>,
  rest: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    for (let next = first; !next.done; next = await rest.next().catch((error) => breakOff(request, reply, error))) {
      yield next.value
    }
  } finally {
    await rest.return(undefined)
  }
}

/** The failure is logged here, once. */
function breakOff(request: StreamRequest, reply: FastifyReply, error: unknown): never {
  const level = error instanceof Problem && error.status < 500 ? 'info' : 'error'
  request.log[level]({ err: error }, 'an answer broke off')
  // A plain end of the connection is how a body of HTTP/1.0 ends that is whole.
  const { socket, httpVersion } = request.raw
  if (reply.raw.headersSent && httpVersion === '1.0' && !socket.writableEnded) socket.resetAndDestroy()
  throw new BrokenAnswer(error)
}
