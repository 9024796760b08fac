// A session in the session log format: its header, then every record in storage form, or one event a line.

import { storageLineBytes } from '../../codec/index.ts'
import { Page } from './page.ts'
import type { HistoryStore, SessionState } from './store.ts'

/** `packed`: rows stay rows. `events`: one event a line. */
export type ExportLayout = 'packed' | 'events'

export async function* exportLines(
  store: HistoryStore,
  session: SessionState,
  layout: ExportLayout,
): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${session.header}\n`)
  const chunks = layout === 'events' ? 'expanded' : 'packed'
  const log = new Page(store, session, { from: 0, to: session.head + 1, fixed: true, chunks })
  for await (const lines of log.bytes('ndjson')) {
    const parts: Uint8Array[] = []
    for (let start = 0; start < lines.length; ) {
      const end = lines.indexOf(NEWLINE, start)
      parts.push(storageLineBytes(lines.subarray(start, end)), NEWLINE_BYTES)
      start = end + 1
    }
    yield Buffer.concat(parts)
  }
}

const NEWLINE = 0x0a
const NEWLINE_BYTES = Buffer.from('\n')
