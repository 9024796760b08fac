// The routes' door: every resource, and what the server needs to wire them.

import { eventRoutes } from './events.ts'
import { followRoutes } from './follow.ts'
import { historyRoutes } from './history.ts'
import { messageRoutes } from './messages.ts'
import type { RoutePlugin } from './schema.ts'
import { sessionRoutes } from './sessions.ts'
import { subagentRoutes } from './subagents.ts'
import { transferRoutes } from './transfer.ts'

/** Everything under `/v1`. */
export const routes: RoutePlugin = async (app, { history, limits, isDraining }) => {
  // Without the prefix that this plugin itself was registered with.
  const options = { history, limits, isDraining }
  await app.register(sessionRoutes, options)
  await app.register(eventRoutes, options)
  await app.register(historyRoutes, options)
  await app.register(followRoutes, options)
  await app.register(messageRoutes, options)
  await app.register(transferRoutes, options)
  await app.register(subagentRoutes, options)
}

// Of bodies and codings

export type { BodyLimits } from './body.ts'
export { codingProblem } from './body.ts'
export type { ContentCoding } from './content-coding.ts'
export { contentCoding, REQUEST_CODINGS, RESPONSE_CODINGS } from './content-coding.ts'
export { operationRoutes } from './operations.ts'

// Of answers

export type { LiveLimits } from './live-reply.ts'
export { BrokenAnswer } from './stream-reply.ts'
