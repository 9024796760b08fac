// Session logs: whole sessions out and in.

import { ExportQuery, ImportQuery, ImportResult, MEDIA_NDJSON_NAMES, MEDIA_ZSTD, SessionPath } from '../codec/index.ts'
import { ZstdFrames } from '../src/history/index.ts'
import { bodyBytes, limited } from './body.ts'
import { importFormat } from './media.ts'
import { sendLog } from './page-reply.ts'
import { Places } from './places.ts'
import { importOptions } from './query.ts'
import type { RoutePlugin } from './schema.ts'
import { json, LogLine, logHeaders, problems } from './schema.ts'

const tags = ['transfer']
const EXAMPLE = [
  '{"type":"session","version":0,"id":"imported","createdAt":1785004180013}\n',
  '{"type":"user/message","seq":0,"time":1785004180013,"data":{"role":"user","content":"hello"},"surfaceOp":"append"}\n',
].join('')

export const transferRoutes: RoutePlugin = async (app, { history, limits }) => {
  const imports = new Places(limits.imports, 'imports')
  app.route({
    method: ['GET', 'HEAD'],
    url: '/sessions/:id/export',
    schema: {
      operationId: 'exportSession',
      tags,
      summary: 'Export a session log',
      description:
        'The header line, then storage records. The file is whole when its last seq is the one before `History-To`.',
      params: SessionPath,
      querystring: ExportQuery,
      response: {
        200: {
          description: 'A session log.',
          headers: logHeaders,
          content: { [MEDIA_NDJSON_NAMES[0]]: { schema: LogLine } },
        },
        ...problems('session/not-found', 'session/replaced', 'request/not-acceptable'),
      },
    },
    handler: async (request, reply) => {
      const { layout = 'packed', epoch } = request.query
      return sendLog(request, reply, await history.exportLog(request.params.id, { layout, epoch }))
    },
  })

  app.route({
    method: 'POST',
    url: '/sessions/import',
    schema: {
      operationId: 'importSession',
      tags,
      summary: 'Import a session log',
      description:
        'All of it or nothing. A file that is cut at a line edge is a shorter log: check `head`, or give `expectedHead`.',
      querystring: ImportQuery,
      requestBody: {
        required: true,
        content: {
          [MEDIA_NDJSON_NAMES[0]]: { schema: { ...LogLine, examples: [EXAMPLE] } },
          [MEDIA_ZSTD]: { schema: { type: 'string', contentMediaType: MEDIA_ZSTD } },
        },
      },
      response: {
        200: json('The session was there already and equals the file.', ImportResult),
        201: json('Imported.', ImportResult),
        ...problems(
          'session/exists',
          'request/too-large',
          'request/unsupported-media-type',
          'event/invalid',
          'record/malformed',
          'log/invalid',
          'store/full',
          'server/busy',
        ),
      },
    },
    handler: async (request, reply) => {
      const format = importFormat(request)
      const options = importOptions(request.query)
      const { created, ...imported } = await imports.take(() => {
        const body = limited(bodyBytes(request, limits.idleMs), limits.importBytes)
        return history.importLog(format === 'zstd' ? limited(new ZstdFrames(body), limits.importBytes) : body, options)
      })
      return reply.code(created ? 201 : 200).send(imported)
    },
  })
}
