// Content codings: which are offered for answers and taken for bodies, and which one an answer gets. An ETag has to name
// the coding before the answer is compressed, so the choice is made here by the rules of @fastify/compress.

import type { IncomingHttpHeaders } from 'node:http'
import negotiate from '@fastify/accept-negotiator'

/** Of answers, the preferred first. */
export const RESPONSE_CODINGS = ['zstd', 'br', 'gzip', 'identity'] as const
export type ContentCoding = (typeof RESPONSE_CODINGS)[number]

/** Of bodies. Not zstd: node's decoder ends silently after the first frame, so it could lose events. */
export const REQUEST_CODINGS = ['gzip', 'deflate', 'br', 'identity'] as const

/** The coding that a compressible answer to this request is sent in. */
export function contentCoding(headers: IncomingHttpHeaders): ContentCoding {
  const accepted = headers['accept-encoding']
  if (accepted === undefined || headers['x-no-compression'] !== undefined) return 'identity'
  // Both are names of gzip to @fastify/compress.
  const names = [accepted]
    .flat()
    .join(', ')
    .toLowerCase()
    .replace(/\*|x-gzip/g, 'gzip')
  return (negotiate(names, [...RESPONSE_CODINGS]) as ContentCoding | null) ?? 'identity'
}
