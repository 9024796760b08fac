// Query parameters as the domain takes them. The schemas have checked their form; here they become numbers.

import type {
  AppendQuery,
  EventsQuery,
  FollowQuery as FollowParameters,
  HistoryQuery,
  ImportQuery,
  SubagentListQuery,
} from '../codec/index.ts'
import { LIST_SESSIONS, PAGE_MESSAGES, queryInteger } from '../codec/index.ts'
import type { AppendOptions, FollowQuery, ImportOptions, PageQuery, RangeQuery } from '../src/history/index.ts'

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

export function followQuery(query: FollowParameters): FollowQuery {
  return {
    afterSeq: queryInteger('afterSeq', query.afterSeq, -1),
    maxMessages: queryInteger('maxMessages', query.maxMessages),
    chunks: query.chunks ?? 'packed',
    epoch: query.epoch,
  }
}

/** A browser's `Last-Event-ID` is the newer cursor; one that cannot be read names no place, so the reader starts over. */
export function lastEventQuery(query: FollowQuery, id: string): FollowQuery {
  const [, seq, epoch] = LAST_EVENT_ID.exec(id) ?? []
  const afterSeq = seq === undefined ? undefined : Number(seq)
  return { ...query, afterSeq, epoch: epoch ?? (afterSeq === undefined ? undefined : query.epoch) }
}

const LAST_EVENT_ID = /^(-1|\d{1,15})(?:\.(.+))?$/

export function appendOptions(query: AppendQuery): AppendOptions {
  return { expectedSeq: queryInteger('expectedSeq', query.expectedSeq), epoch: query.epoch }
}

export function importOptions(query: ImportQuery): ImportOptions {
  return { expectedHead: queryInteger('expectedHead', query.expectedHead, -1) }
}

export function listQuery<Query extends SubagentListQuery>(query: Query): Omit<Query, 'limit'> & { limit: number } {
  return { ...query, limit: queryInteger('limit', query.limit) ?? LIST_SESSIONS.default }
}
