// The model-visible surface as NDJSON: a line `{"seq":…,"message":…}` for each entry, in order, messages as they were sent.

import type { HistoryStore, SessionState, SurfaceCursor } from './store.ts'

const BATCH_BYTES = 256 * 1024

export async function* messageLines(store: HistoryStore, session: SessionState): AsyncGenerator<Uint8Array> {
  let after: SurfaceCursor | undefined
  do {
    const { messages, next } = await store.readSurface(session.log, session.head, after, BATCH_BYTES)
    const parts = messages.flatMap(({ seq, message }) => [Buffer.from(`{"seq":${seq},"message":`), message, END])
    if (parts.length > 0) yield Buffer.concat(parts)
    after = next
  } while (after !== undefined)
}

const END = Buffer.from('}\n')
