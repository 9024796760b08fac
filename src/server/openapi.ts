// The description of the service, made from the routes' schemas, and its pages for people.

import { createRequire } from 'node:module'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance, FastifySchema } from 'fastify'
import type { ParameterWords } from '../../codec/index.ts'
import {
  AppendLineSchema,
  AppendResult,
  CreateSession,
  EventRecordSchema,
  EventSchema,
  ImportResult,
  MessageLine,
  NewEventSchema,
  OmittedRecordSchema,
  PageDocument,
  ProblemSchema,
  RecordSchema,
  RowRecordSchema,
  RowSchema,
  SessionDescription,
  SessionList,
} from '../../codec/index.ts'

// By the package's own name: the compiled files lie a folder deeper than their sources.
const manifest = createRequire(import.meta.url)('scrollback/package.json') as { version: string; description: string }
const { version, description } = manifest

/** Described once and referred to by name wherever they are used. */
const NAMED = {
  Problem: ProblemSchema,
  Event: EventSchema,
  NewEvent: NewEventSchema,
  Row: RowSchema,
  EventRecord: EventRecordSchema,
  RowRecord: RowRecordSchema,
  OmittedRecord: OmittedRecordSchema,
  Record: RecordSchema,
  AppendLine: AppendLineSchema,
  Page: PageDocument,
  Message: MessageLine,
  Session: SessionDescription,
  SessionList,
  CreateSession,
  AppendResult,
  ImportResult,
}

/** Only data, as scripts of its own: nothing is loaded from elsewhere. */
const CONTENT_POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "style-src 'self' 'unsafe-inline'",
  "object-src 'none'",
  "base-uri 'self'",
  "frame-ancestors 'self'",
].join('; ')

/** Lines of a log, for the tab. */
const MARK =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M2 4h12M2 8h9M2 12h6" stroke="#49a" stroke-width="2"/></svg>'
/** The name, for the head of the page. */
const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" width="160" height="40"><text y="27" font-family="sans-serif" font-size="24" fill="#fff">scrollback</text></svg>'

/** Must be registered before the routes. */
export async function registerOpenapi(app: FastifyInstance): Promise<void> {
  const names = new Map(Object.entries(NAMED).map(([name, schema]) => [JSON.stringify(schema), name]))
  for (const [name, schema] of Object.entries(NAMED)) app.addSchema({ $id: name, ...withNames(schema, names, true) })
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'scrollback',
        version,
        description: `${description}. Every GET below \`/v1\` but \`follow\` has its HEAD, which gives the headers alone.`,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: [
        { name: 'sessions', description: 'Create, find and delete sessions.' },
        { name: 'history', description: 'Append events and read them, in pages or by range.' },
        { name: 'subagents', description: 'Children, read through their direct parent.' },
        { name: 'transfer', description: 'Whole session logs, in and out.' },
        { name: 'operations', description: 'For those who run the service.' },
      ],
    },
    convertConstToEnum: false,
    refResolver: { buildLocalReference: (schema, _base, _fragment, index) => `${schema.$id ?? `schema-${index}`}` },
    transform: ({ schema, url }) => ({ schema: describedSchema(schema, names), url }),
    transformObject: (document) => {
      const object = 'openapiObject' in document ? document.openapiObject : document.swaggerObject
      for (const path of Object.values(object.paths ?? {})) settle(path as Record<string, Operation>)
      // Written out in full: parts that are shared in memory would become anchors, which many readers do not know.
      return JSON.parse(JSON.stringify(object))
    },
  })
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: CONTENT_POLICY,
    uiConfig: { validatorUrl: null },
    theme: {
      title: 'scrollback',
      favicon: [{ filename: 'mark.svg', rel: 'icon', sizes: 'any', type: 'image/svg+xml', content: MARK }],
    },
    logo: { type: 'image/svg+xml', content: LOGO },
  })
}

/** Bodies are described but not validated, since they are read as streams. */
function describedSchema(schema: FastifySchema | undefined, names: ReadonlyMap<string, string>): FastifySchema {
  const { requestBody, response, ...rest } = schema ?? {}
  const described: FastifySchema = withNames(rest, names)
  if (requestBody) described.body = withNames({ content: requestBody.content }, names)
  if (response) described.response = withNames(response, names)
  return described
}

/**
 * The same schema with a reference in place of every named one inside it. Of what a parameter says in words, the default
 * belongs to the description; the rest stands there in another form.
 */
function withNames<T>(schema: T, names: ReadonlyMap<string, string>, inside = false): T {
  if (typeof schema !== 'object' || schema === null) return schema
  const name = inside ? undefined : names.get(JSON.stringify(schema))
  if (name !== undefined) return { $ref: `${name}#` } as T
  if (Array.isArray(schema)) return schema.map((item) => withNames(item, names)) as T
  const members = Object.entries(schema).flatMap(([key, value]) => {
    if (key !== 'x-parameter') return [[key, withNames(value, names)]]
    const { default: byDefault } = value as ParameterWords
    return byDefault === undefined ? [] : [['default', byDefault]]
  })
  return Object.fromEntries(members) as T
}

interface Operation {
  requestBody?: { required: boolean }
}

/** A HEAD says nothing that its GET does not say. The body of a PUT may be left out. */
function settle(path: Record<string, Operation>): void {
  delete path.head
  if (path.put?.requestBody) path.put.requestBody.required = false
}
