// A page from its bytes to views, in the SDK's own steps, each with the time that it took: NDJSON parsed, records
// validated, entries retained, entries folded by two definitions, views read.

import type { NumberedLine, SessionHistoryRecord } from '../../codec/index.ts'
import { LineDecoder, validateRecord } from '../../codec/index.ts'
import type { JournalChange } from '../../src/client/index.ts'
import { ConversationAssembler, chatAssistant, turnTail } from '../../src/client/index.ts'
import type { ReadViews } from './view-reading.ts'
import { readViews } from './view-reading.ts'

/** The steps of a client, in order. */
export const STAGES = ['parse', 'validate', 'retain', 'fold', 'view'] as const

/** Milliseconds by step. */
export type StageTimes = Record<(typeof STAGES)[number], number>

/** What was folded, to be compared: the same events must come out the same, however they were sent. */
export interface Folded extends ReadViews {
  readonly records: number
  /** Entries that the assembler took: one a record. */
  readonly inputs: number
}

export function twoDefinitions() {
  return new ConversationAssembler({ chat: [chatAssistant, turnTail] })
}

/** One client that opens one page. It holds what a client holds: the entries of the window and the views. */
export class PageFold {
  readonly times: StageTimes = { parse: 0, validate: 0, retain: 0, fold: 0, view: 0 }
  readonly #lines = new LineDecoder()
  readonly #assembler = twoDefinitions()
  readonly #entries: SessionHistoryRecord[] = []
  #opened = false

  /** Takes bytes up to the entries; nothing is folded. */
  take(bytes: Uint8Array): SessionHistoryRecord[] {
    return this.#read(() => this.#lines.feed(bytes))
  }

  /** Takes bytes up to the folded state, as they come. */
  takeAndFold(bytes: Uint8Array): void {
    this.fold(this.take(bytes))
  }

  /** After the last byte. */
  end(): SessionHistoryRecord[] {
    return this.#read(() => this.#lines.end())
  }

  /** Folds entries that join at the end; without an argument all that were taken. */
  fold(entries: readonly SessionHistoryRecord[] = this.#entries): void {
    const started = performance.now()
    this.#assembler.apply(this.#change(entries))
    this.times.fold += performance.now() - started
  }

  /** Every character of the views. */
  read(): void {
    const started = performance.now()
    readViews(this.#assembler.view('chat'))
    this.times.view += performance.now() - started
  }

  /** Not timed: what came out. */
  folded(): Folded {
    const read = readViews(this.#assembler.view('chat'), { hashed: true })
    return { ...read, records: this.#entries.length, inputs: this.#assembler.inputs }
  }

  /** Entries for those who decode them elsewhere. */
  keep(entries: readonly SessionHistoryRecord[]): void {
    for (const entry of entries) this.#entries.push(entry)
  }

  #read(lines: () => NumberedLine[]): SessionHistoryRecord[] {
    const started = performance.now()
    const values = lines().map(({ text }): unknown => JSON.parse(text))
    const parsed = performance.now()
    const records = values.map(validateRecord)
    const validated = performance.now()
    this.keep(records)
    const kept = performance.now()
    this.times.parse += parsed - started
    this.times.validate += validated - parsed
    this.times.retain += kept - validated
    return records
  }

  #change(entries: readonly SessionHistoryRecord[]): JournalChange {
    if (this.#opened) return { type: 'append', entries }
    this.#opened = true
    return { type: 'replace', entries, from: entries[0]?.event.seq ?? 0, hasMore: false, reason: 'opened' }
  }
}
