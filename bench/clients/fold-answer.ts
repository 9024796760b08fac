// A client that asks for one page over a connection that is open already, and ends: it only reads the bytes, or it
// folds them as they arrive, by hand or through the SDK's own page.

import { Agent, request } from 'undici'
import type { ChunksMode } from '../../codec/index.ts'
import { HistoryClient } from '../../src/client/index.ts'
import { answerTask } from '../measuring/child-task.ts'
import type { Folded } from '../measuring/page-fold.ts'
import { PageFold } from '../measuring/page-fold.ts'

export interface FoldAnswerTask {
  readonly port: number
  /**
   * - `transfer`: undici reads the body to its end and nothing else is done
   * - `stream`: the same, and what has arrived is parsed, validated, retained and folded at once
   * - `sdk`: `client.session(id).page()` of the service, folded as it arrives
   */
  readonly what: 'transfer' | 'stream' | 'sdk'
  /** For `sdk`. */
  readonly session?: { readonly id: string; readonly chunks: ChunksMode }
}

export interface FoldAnswerResult {
  /** Milliseconds from the request to the last byte of the body. */
  readonly lastByte: number
  /** Milliseconds from the request to the views, read to their last character. */
  readonly ready: number
  readonly bytes: number
  readonly folded: Folded | undefined
}

/** Any answer without a page; it opens the connection. */
const NOTHING = '/livez'

await answerTask((task: FoldAnswerTask) => (task.what === 'sdk' ? throughSdk(task) : throughUndici(task)))

async function throughUndici({ port, what }: FoldAnswerTask): Promise<FoldAnswerResult> {
  const dispatcher = new Agent({ connections: 1 })
  const get = (path: string) => request(`http://127.0.0.1:${port}${path}`, { dispatcher })
  await (await get(NOTHING)).body.dump()
  const fold = what === 'stream' ? new PageFold() : undefined
  let bytes = 0
  const started = performance.now()
  const { body } = await get('/')
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    bytes += piece.length
    fold?.takeAndFold(piece)
  }
  const lastByte = performance.now() - started
  fold?.fold(fold.end())
  fold?.read()
  const ready = performance.now() - started
  await dispatcher.destroy()
  return { lastByte, ready, bytes, folded: fold?.folded() }
}

async function throughSdk({ port, session: asked }: FoldAnswerTask): Promise<FoldAnswerResult> {
  if (!asked) throw new TypeError('no session to ask for')
  const client = new HistoryClient({ baseUrl: `http://127.0.0.1:${port}` })
  const session = client.session(asked.id)
  await session.describe()
  const fold = new PageFold()
  const started = performance.now()
  const page = await session.page({ chunks: asked.chunks })
  let bytes = 0
  for await (const lines of page.lines()) {
    const entries = lines.map(({ record }) => record)
    for (const { text } of lines) bytes += text.length + 1
    fold.keep(entries)
    fold.fold(entries)
  }
  const lastByte = performance.now() - started
  fold.read()
  const ready = performance.now() - started
  await client.close()
  return { lastByte, ready, bytes, folded: fold.folded() }
}
