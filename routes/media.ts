// Media types: what a request accepts, and what its body is.

import type { FastifyRequest } from 'fastify'
import { MEDIA_EVENT_STREAM, MEDIA_JSON, MEDIA_NDJSON_NAMES, MEDIA_ZSTD, Problem } from '../codec/index.ts'

type Accepting = Pick<FastifyRequest, 'accepts' | 'headers'>
type WithHeaders = Pick<FastifyRequest, 'headers'>

// Each also with the parameter that answers carry, for a caller who asks for exactly what it got. `*/*` takes the first.
const LINES = MEDIA_NDJSON_NAMES.flatMap((name) => [name, `${name}; charset=utf-8`])
const DOCUMENT = [MEDIA_JSON, `${MEDIA_JSON}; charset=utf-8`]
const PAGE_TYPES = [...LINES.slice(0, 2), ...DOCUMENT, ...LINES.slice(2)]

/** How a page is sent. @throws Problem `request/not-acceptable` */
export function pageMedia(request: Accepting): 'ndjson' | 'json' {
  return DOCUMENT.includes(accepted(request, PAGE_TYPES)) ? 'json' : 'ndjson'
}

/** How a followed session is sent. @throws Problem `request/not-acceptable` */
export function followMedia(request: Accepting): 'ndjson' | 'events' {
  return accepted(request, [...LINES, MEDIA_EVENT_STREAM]) === MEDIA_EVENT_STREAM ? 'events' : 'ndjson'
}

/** For what is sent as NDJSON only. @throws Problem `request/not-acceptable` */
export function checkAcceptsLines(request: Accepting): void {
  accepted(request, LINES)
}

function accepted(request: Accepting, types: string[]): string {
  const type = request.accepts().type(types)
  if (typeof type === 'string') return type
  const offered = types.filter((type) => !type.includes(';'))
  throw new Problem(
    'request/not-acceptable',
    `this is sent as ${offered.join(', ')}; got Accept: ${request.headers.accept}`,
    {
      offered,
    },
  )
}

const NDJSON_BODY = Object.fromEntries(MEDIA_NDJSON_NAMES.map((name) => [name, 'ndjson' as const]))
const APPEND_TYPES: Record<string, 'ndjson' | 'json'> = { ...NDJSON_BODY, [MEDIA_JSON]: 'json' }
const IMPORT_TYPES: Record<string, 'ndjson' | 'zstd'> = { ...NDJSON_BODY, [MEDIA_ZSTD]: 'zstd' }
const CREATE_TYPES = { [MEDIA_JSON]: 'json' }

/** @throws Problem `request/unsupported-media-type` */
export function appendFormat(request: WithHeaders): 'ndjson' | 'json' {
  return bodyFormat(request, APPEND_TYPES)
}

/** @throws Problem `request/unsupported-media-type` */
export function importFormat(request: WithHeaders): 'ndjson' | 'zstd' {
  return bodyFormat(request, IMPORT_TYPES)
}

/** Of a body that is there. @throws Problem `request/unsupported-media-type` */
export function checkJsonBody(request: WithHeaders): void {
  bodyFormat(request, CREATE_TYPES)
}

function bodyFormat<Format>(request: WithHeaders, formats: Record<string, Format>): Format {
  const given = request.headers['content-type']
  const [name = '', ...parameters] = (given ?? '').split(';').map((part) => part.trim().toLowerCase())
  const format = Object.hasOwn(formats, name) ? formats[name] : undefined
  const utf8 = parameters.every((parameter) => !parameter.startsWith('charset=') || UTF8.test(parameter))
  if (format !== undefined && utf8) return format
  const offered = Object.keys(formats)
  throw new Problem(
    'request/unsupported-media-type',
    `the body must be ${offered.join(', ')} in UTF-8; got ${given === undefined ? 'no Content-Type' : `Content-Type: ${given}`}`,
    { offered },
  )
}

const UTF8 = /^charset="?utf-?8"?$/
