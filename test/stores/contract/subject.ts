// The store under test, and the few things that every part of the contract does with it.

import fc from 'fast-check'
import type { ChunksMode, SessionEvent } from '../../../codec/index.ts'
import type { ExportLayout, HistoryStore, ImportResult } from '../../../src/history/index.ts'
import { History } from '../../../src/history/index.ts'
import { bodyOfEvents, bytesOf, collect } from '../../support/logs.ts'

/** Opens a store; the same name opens the same data, also beside one another. */
export type OpenStore = (name: string) => Promise<HistoryStore>

export const SEED = 20_260_701
/** A property's box of time, small because there are several. */
export const BOX: fc.Parameters<unknown> = {
  seed: SEED,
  numRuns: 150,
  interruptAfterTimeLimit: 1_500,
  markInterruptAsFailure: false,
}

export const MODES: readonly ChunksMode[] = ['packed', 'expanded', 'omit']
export const anyMode: fc.Arbitrary<ChunksMode> = fc.constantFrom(...MODES)

export interface Subject {
  open: OpenStore
  store: HistoryStore
  history: History
  /** Creates an empty session; gives its id. */
  created(): Promise<string>
  /** Creates a session of these events. */
  stored(events: readonly SessionEvent[]): Promise<string>
  rangeText(id: string, fromSeq: number, toSeq: number, chunks: ChunksMode): Promise<string>
  /** All events, one a line. */
  wholeText(id: string): Promise<string>
  /** Imports a text that comes in pieces of `size` bytes. */
  importText(text: string, options?: { expectedHead?: number; size?: number }): Promise<ImportResult>
  exportText(id: string, layout: ExportLayout): Promise<string>
}

export async function openSubject(open: OpenStore): Promise<Subject> {
  const store = await open('contract')
  const history = new History(store)
  let ids = 0
  const created = async (): Promise<string> => {
    const id = `s${ids++}`
    await history.create(id, undefined)
    return id
  }
  return {
    open,
    store,
    history,
    created,
    async stored(events) {
      const id = await created()
      if (events.length > 0) await history.append(id, bodyOfEvents(events), {})
      return id
    },
    async rangeText(id, fromSeq, toSeq, chunks) {
      return collect((await history.range({ id }, { fromSeq, toSeq, chunks })).bytes('ndjson'))
    },
    async wholeText(id) {
      return collect((await history.range({ id }, { chunks: 'expanded' })).bytes('ndjson'))
    },
    importText(text, options = {}) {
      return history.importLog(pieces(bytesOf(text), options.size ?? 64), options)
    },
    async exportText(id, layout) {
      return collect((await history.exportLog(id, { layout })).bytes())
    },
  }
}

export function* pieceArray(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

export async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  yield* pieceArray(bytes, size)
}
