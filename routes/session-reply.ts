// Sessions as JSON. The header is spliced in as text: parsing and writing it again could change a number.

import type { FastifyReply } from 'fastify'
import { MEDIA_JSON } from '../codec/index.ts'
import type { SessionPage, SessionState } from '../src/history/index.ts'

export function sendSession(reply: FastifyReply, session: SessionState): FastifyReply {
  return sendJson(reply, sessionText(session))
}

export function sendSessions(reply: FastifyReply, { sessions, nextCursor }: SessionPage): FastifyReply {
  const next = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`
  return sendJson(reply, `{"sessions":[${sessions.map(sessionText).join(',')}]${next}}`)
}

function sendJson(reply: FastifyReply, text: string): FastifyReply {
  return reply.header('Cache-Control', 'no-cache').type(`${MEDIA_JSON}; charset=utf-8`).send(text)
}

function sessionText(session: SessionState): string {
  const { id, epoch, head, messages, bytes, createdAt, updatedAt, header } = session
  const fields = JSON.stringify({ id, epoch, head, messages, bytes, createdAt, updatedAt })
  return `${fields.slice(0, -1)},"header":${header}}`
}
