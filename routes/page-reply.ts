// A page as an HTTP answer: its headers, its link to the page before it, its validator, and its body as NDJSON or as one
// document.

import type { FastifyReply } from 'fastify'
import type { EventsQuery, FollowQuery, HistoryQuery } from '../codec/index.ts'
import {
  HEADER_EPOCH,
  HEADER_FROM,
  HEADER_HEAD,
  HEADER_MORE,
  HEADER_TO,
  MEDIA_EVENT_STREAM,
  MEDIA_JSON,
  MEDIA_NDJSON,
} from '../codec/index.ts'
import type { LogStream, Page, SessionTarget } from '../src/history/index.ts'
import type { ContentCoding } from './content-coding.ts'
import { contentCoding } from './content-coding.ts'
import { checkAcceptsLines, pageMedia } from './media.ts'
import type { StreamRequest } from './stream-reply.ts'
import { sendStream, setHeaders } from './stream-reply.ts'

/** A request for something of a session, by its own path or by its parent's. */
export type TargetRequest<Query> = StreamRequest & { readonly params: SessionTarget; readonly query: Query }

const IMMUTABLE = 'private, max-age=31536000, immutable'
const REVALIDATE = 'no-cache'

/** @param previous query of the page before this one */
export async function sendPage(
  request: StreamRequest & { readonly query: { readonly epoch?: string } },
  reply: FastifyReply,
  page: Page,
  previous: URLSearchParams,
): Promise<FastifyReply> {
  const media = pageMedia(request)
  const etag = `"${page.tag(media)}.${contentCoding(request.headers)}"`
  const headers = {
    'Content-Type': media === 'ndjson' ? MEDIA_NDJSON : `${MEDIA_JSON}; charset=utf-8`,
    'Cache-Control': page.fixed && request.query.epoch !== undefined ? IMMUTABLE : REVALIDATE,
    ETag: etag,
    Vary: 'Accept, Accept-Encoding',
    ...rangeHeaders(page),
    Link: page.hasMore ? linkTo(pathOf(request.url), previous) : undefined,
  }
  if (matches(request.headers['if-none-match'], etag)) {
    return setHeaders(reply.code(304), { ...headers, 'Content-Type': undefined }).send()
  }
  return sendStream(request, reply, headers, (allocate) => page.bytes(media, allocate))
}

/** Of a page that stays open, which is written to the response itself. */
export function liveHeaders(
  request: StreamRequest & { readonly query: FollowQuery },
  page: Page,
  media: 'ndjson' | 'events',
  coding: ContentCoding,
): Record<string, string> {
  const headers: Record<string, string | undefined> = {
    'Content-Type': media === 'ndjson' ? MEDIA_NDJSON : MEDIA_EVENT_STREAM,
    // A proxy that stored or recoded the stream would hold its lines back.
    'Cache-Control': 'no-cache, no-transform',
    'X-Accel-Buffering': 'no',
    'Content-Encoding': coding === 'identity' ? undefined : coding,
    Vary: 'Accept, Accept-Encoding',
    ...rangeHeaders(page),
    Link: page.hasMore
      ? linkTo(pathOf(request.url).replace(/\/follow$/, '/history'), previousPage(page, request.query))
      : undefined,
  }
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

function rangeHeaders(page: Page): Record<string, string | undefined> {
  return {
    [HEADER_EPOCH]: page.epoch,
    [HEADER_FROM]: `${page.from}`,
    [HEADER_TO]: `${page.to}`,
    [HEADER_MORE]: `${page.hasMore}`,
    [HEADER_HEAD]: page.head === undefined ? undefined : `${page.head}`,
  }
}

function linkTo(path: string, query: URLSearchParams): string {
  return `<${path}?${query}>; rel="prev"`
}

/** Lines that are neither a page nor cached: the surface, or a whole log. */
export async function sendLog(request: StreamRequest, reply: FastifyReply, log: LogStream): Promise<FastifyReply> {
  checkAcceptsLines(request)
  const headers = {
    'Cache-Control': REVALIDATE,
    [HEADER_EPOCH]: log.epoch,
    [HEADER_TO]: `${log.to}`,
    [HEADER_HEAD]: `${log.head}`,
  }
  return sendStream(request, reply, headers, () => log.bytes())
}

/** The page before a page: as many messages, to its start. */
export function previousPage(page: Page, query: Pick<HistoryQuery, 'maxMessages' | 'chunks'>): URLSearchParams {
  return given({ beforeSeq: `${page.from}`, maxMessages: query.maxMessages, chunks: query.chunks, epoch: page.epoch })
}

/** The range before a range: of its size; of an empty one, all that is before it. */
export function previousRange(page: Page, query: EventsQuery): URLSearchParams {
  const size = page.to - page.from || page.from
  const fromSeq = `${Math.max(0, page.from - size)}`
  return given({ fromSeq, toSeq: `${page.from}`, chunks: query.chunks, epoch: page.epoch })
}

function given(parameters: Record<string, string | undefined>): URLSearchParams {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, value)
  return query
}

/** A client may name the whole address; the link repeats only what is ours. */
function pathOf(target: string): string {
  const url = target.startsWith('/') ? target : new URL(target).pathname
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

/** Weakly, as `If-None-Match` compares (RFC 9110, 13.1.2). */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return header.match(ENTITY_TAGS)?.includes(etag) ?? false
}

// The opaque part may hold commas, so the list is not split at them.
const ENTITY_TAGS = /"[\x21\x23-\x7e\x80-\xff]*"/g
