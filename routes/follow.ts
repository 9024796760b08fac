// Follow: a page of a session that stays open.

import type { FastifyReply } from 'fastify'
import { FollowQuery, SessionPath } from '../codec/index.ts'
import type { Follower, History } from '../src/history/index.ts'
import { contentCoding } from './content-coding.ts'
import { EventStreamFormat, ndjsonFormat } from './live-format.ts'
import type { LiveLimits } from './live-reply.ts'
import { liveCoding, sendLive } from './live-reply.ts'
import { followMedia } from './media.ts'
import type { TargetRequest } from './page-reply.ts'
import { liveHeaders } from './page-reply.ts'
import { followQuery, lastEventQuery } from './query.ts'
import type { RoutePlugin } from './schema.ts'
import { followResponse } from './schema.ts'

export const followRoutes: RoutePlugin = async (app, { history, limits }) => {
  app.route({
    method: 'GET',
    url: '/sessions/:id/follow',
    config: { staysOpen: true },
    schema: { ...followSchema, operationId: 'followSession', params: SessionPath },
    handler: follow(history, limits),
  })
}

/** Of a followed session, but for its path. */
export const followSchema = {
  tags: ['history'],
  summary: 'Follow a session live',
  description: [
    'The newest page or, with `afterSeq`, what comes after that seq; then every event as soon as it is committed, one',
    '`event` record a line. A blank line is a heartbeat. `{"type":"end","reason":…}` is the last line; a body that ends',
    'without it means: connect again, with `afterSeq` and `epoch`. Browsers get server-sent events.',
  ].join(' '),
  querystring: FollowQuery,
  response: followResponse,
} as const

export function follow(history: History, limits: LiveLimits) {
  return async (request: TargetRequest<FollowQuery>, reply: FastifyReply) => {
    const media = followMedia(request)
    const query = followQuery(request.query)
    const follower =
      media === 'ndjson' ? await history.follow(request.params, query) : await browserFollower(history, request, query)
    if (!follower) return reply.code(204).send()
    const { page } = follower
    const coding = liveCoding(contentCoding(request.headers), limits)
    reply.hijack()
    reply.raw.writeHead(200, liveHeaders(request, page, media, coding))
    const format = media === 'events' ? new EventStreamFormat(page.epoch) : ndjsonFormat
    try {
      await sendLive(reply.raw, follower, format, coding, limits)
    } catch (error) {
      request.log.error({ err: error }, 'a followed stream broke off')
    }
  }
}

/**
 * A browser can only connect again, with the address that it has: it is never told that its cursor does not fit, and it
 * would connect for ever unless it is told that there is nothing left (undefined).
 */
async function browserFollower(
  history: History,
  { params, headers }: TargetRequest<FollowQuery>,
  query: ReturnType<typeof followQuery>,
): Promise<Follower | undefined> {
  const id = headers['last-event-id'] || undefined
  const follower = await history.resume(params, id === undefined ? query : lastEventQuery(query, `${id}`))
  return follower ?? (id === undefined ? history.follow(params, query) : undefined)
}
