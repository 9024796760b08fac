// How a followed stream is written: as NDJSON, or as server-sent events for browsers, which see no headers.
//
//   NDJSON   {record}\n            heartbeat \n          end {"type":"end","reason":…}\n
//   SSE      data: {record}\n      heartbeat :\n\n       event: end\ndata: {"type":"end","reason":…}\n\n
//            id: <last seq covered>.<epoch>\n\n          first  event: page\ndata: { epoch, from, to, hasMore }\n\n

import type { EndReason } from '../codec/index.ts'
import { recordRange } from '../codec/index.ts'
import type { Page, PagePiece } from '../src/history/index.ts'

export interface LiveFormat {
  /** What comes before the first record. */
  opening(page: Page): Uint8Array | undefined
  piece(piece: PagePiece): Uint8Array
  readonly heartbeat: Uint8Array
  end(reason: EndReason): Uint8Array
}

function endLine(reason: EndReason): string {
  return JSON.stringify({ type: 'end', reason })
}

export const ndjsonFormat: LiveFormat = {
  opening: () => undefined,
  piece: ({ bytes }) => bytes,
  heartbeat: Buffer.from('\n'),
  end: (reason) => Buffer.from(`${endLine(reason)}\n`),
}

export class EventStreamFormat implements LiveFormat {
  readonly heartbeat = Buffer.from(':\n\n')
  readonly #epoch: string

  constructor(epoch: string) {
    this.#epoch = epoch
  }

  opening({ epoch, from, to, hasMore }: Page): Uint8Array {
    return Buffer.from(`event: page\ndata: ${JSON.stringify({ epoch, from, to, hasMore })}\n\n`)
  }

  /** A live piece goes to many followers of one log, which share its epoch: it is written once. */
  piece(piece: PagePiece): Uint8Array {
    const known = written.get(piece)
    if (known) return known
    const parts: Uint8Array[] = []
    const { bytes } = piece
    let seq = piece.from
    for (let start = 0; start < bytes.length; ) {
      const end = bytes.indexOf(LINE_FEED, start)
      const line = bytes.subarray(start, end)
      seq = rangeEnd(line, seq)
      parts.push(DATA, line, Buffer.from(`\nid: ${seq - 1}.${this.#epoch}\n\n`))
      start = end + 1
    }
    const all = Buffer.concat(parts)
    written.set(piece, all)
    return all
  }

  end(reason: EndReason): Uint8Array {
    return Buffer.from(`event: end\ndata: ${endLine(reason)}\n\n`)
  }
}

const written = new WeakMap<PagePiece, Uint8Array>()
const LINE_FEED = 0x0a
const DATA = Buffer.from('data: ')
const EVENT_LINE = Buffer.from('{"type":"event"')

/** Where a record that begins at `seq` ends. An event may be large and covers itself; the others are small enough to parse. */
function rangeEnd(line: Uint8Array, seq: number): number {
  if (EVENT_LINE.equals(line.subarray(0, EVENT_LINE.length))) return seq + 1
  return recordRange(JSON.parse(Buffer.from(line).toString())).to
}
