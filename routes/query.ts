// Query parameters as the domain takes them. The schemas have checked their form; here they become numbers.

import type { AppendQuery, EventsQuery, HistoryQuery, ImportQuery, SubagentListQuery } from '../codec/index.ts'
import { LIST_SESSIONS, PAGE_MESSAGES, queryInteger } from '../codec/index.ts'
import type { AppendOptions, ImportOptions, PageQuery, RangeQuery } from '../src/history/index.ts'

export function pageQuery(query: HistoryQuery): PageQuery {
  return {
    beforeSeq: queryInteger('beforeSeq', query.beforeSeq),
    throughSeq: queryInteger('throughSeq', query.throughSeq, -1),
    maxMessages: queryInteger('maxMessages', query.maxMessages) ?? PAGE_MESSAGES.default,
    chunks: query.chunks ?? 'packed',
    epoch: query.epoch,
  }
}

export function rangeQuery(query: EventsQuery): RangeQuery {
  return {
    fromSeq: queryInteger('fromSeq', query.fromSeq),
    toSeq: queryInteger('toSeq', query.toSeq),
    chunks: query.chunks ?? 'packed',
    epoch: query.epoch,
  }
}

export function appendOptions(query: AppendQuery): AppendOptions {
  return { expectedSeq: queryInteger('expectedSeq', query.expectedSeq), epoch: query.epoch }
}

export function importOptions(query: ImportQuery): ImportOptions {
  return { expectedHead: queryInteger('expectedHead', query.expectedHead, -1) }
}

export function listQuery<Query extends SubagentListQuery>(query: Query): Omit<Query, 'limit'> & { limit: number } {
  return { ...query, limit: queryInteger('limit', query.limit) ?? LIST_SESSIONS.default }
}
