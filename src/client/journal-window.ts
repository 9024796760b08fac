// Owns the window of a journal: a contiguous range of one log, and the changes that it goes through. It knows no
// transport and no time. The window is at each moment what the changes given so far make of it.

import type { Range, SessionHistoryRecord } from '../../codec/index.ts'
import { recordRange } from '../../codec/index.ts'
import { AnswerError, JournalError } from './errors.ts'
import type { ClosedRun } from './live-run.ts'
import { LiveRun } from './live-run.ts'
import { lowerBound } from './lower-bound.ts'

/**
 * - `connecting`: there was no connection yet
 * - `live`: everything up to the head was read, and what is appended comes as it is appended
 * - `reconnecting`: the connection was lost, or what was missed is being read; the window stays readable
 * - `ended`: the session was deleted
 * - `failed`: it cannot be followed, and nothing more is tried
 */
export type JournalStatus = 'connecting' | 'live' | 'reconnecting' | 'ended' | 'failed'

/**
 * Why a window was replaced:
 * - `opened`: it is the first one
 * - `resumed`: so much was missed that the newest page was sent instead; there is a gap to the window before
 * - `reset`: the log is another one, or shorter than the window was
 */
export type ReplaceReason = 'opened' | 'resumed' | 'reset'

/** One step of a window. `entries` are records as they came, in the order of the log. */
export type JournalChange =
  | {
      readonly type: 'replace'
      readonly entries: readonly SessionHistoryRecord[]
      /** first seq of the window */
      readonly from: number
      /** whether the log has events before it */
      readonly hasMore: boolean
      readonly reason: ReplaceReason
    }
  | {
      readonly type: 'prepend'
      readonly entries: readonly SessionHistoryRecord[]
      readonly from: number
      readonly hasMore: boolean
    }
  | { readonly type: 'append'; readonly entries: readonly SessionHistoryRecord[] }
  | {
      /** The entries that cover exactly `[from, to)` have become these, which hold the same events. */
      readonly type: 'compact'
      readonly from: number
      readonly to: number
      readonly entries: readonly SessionHistoryRecord[]
    }
  | { readonly type: 'status'; readonly status: JournalStatus; readonly error?: Error }

/** Makes its change when it is called, so that a window never runs ahead of what its reader was told. */
export type PendingChange = () => JournalChange

export class JournalWindow {
  #epoch: string | undefined
  #from = 0
  #to = 0
  #hasMore = false
  #entries: SessionHistoryRecord[] = []
  #status: JournalStatus = 'connecting'
  #error: Error | undefined
  readonly #compacting: boolean
  #run = new LiveRun()

  constructor(options: { compacting: boolean }) {
    this.#compacting = options.compacting
  }

  /** of the log; undefined until the window is opened */
  get epoch(): string | undefined {
    return this.#epoch
  }

  get from(): number {
    return this.#from
  }

  /** exclusive */
  get to(): number {
    return this.#to
  }

  get hasMore(): boolean {
    return this.#hasMore
  }

  get entries(): readonly SessionHistoryRecord[] {
    return this.#entries
  }

  get status(): JournalStatus {
    return this.#status
  }

  get error(): Error | undefined {
    return this.#error
  }

  /** `records` are contiguous from `from` on. */
  replace(epoch: string, from: number, records: readonly SessionHistoryRecord[], reason: ReplaceReason): JournalChange {
    this.#epoch = epoch
    this.#from = from
    this.#to = endOf(records, from)
    this.#hasMore = from > 0
    this.#entries = [...records]
    this.#run = new LiveRun()
    for (const record of records) this.#run.add(record)
    return { type: 'replace', entries: records, from, hasMore: this.#hasMore, reason }
  }

  /**
   * `records` join the end, one after the other. Gives the append, then the runs that it closed. All of it must be made
   * before another append is asked for: which runs are closed is found here, ahead of the window.
   */
  append(records: readonly SessionHistoryRecord[]): PendingChange[] {
    const closed: ClosedRun[] = []
    const add = (): JournalChange => {
      this.#to = endOf(records, this.#to)
      // One by one; a call with as many arguments as came together may break the stack.
      for (const record of records) this.#entries.push(record)
      return { type: 'append', entries: records }
    }
    if (this.#compacting) {
      for (const record of records) {
        const run = this.#run.add(record)
        if (run) closed.push(run)
      }
    }
    return [add, ...closed.map((run) => () => this.#compact(run))]
  }

  #compact({ from, to, row }: ClosedRun): JournalChange {
    const at = indexAt(this.#entries, from)
    this.#entries.splice(at, to - from, row)
    return { type: 'compact', from, to, entries: [row] }
  }

  /**
   * Adds an older page, which must join at `from` and go further back. Throws JournalError `journal/moved` when the
   * window is not the one any more that the page was asked for, AnswerError for a page that does not join; the window
   * stands either way.
   */
  prepend(
    asked: { epoch: string; from: number },
    page: Range,
    records: readonly SessionHistoryRecord[],
  ): JournalChange {
    if (this.#epoch !== asked.epoch || this.#from !== asked.from) {
      throw new JournalError('journal/moved', 'the window was replaced while an older page was read')
    }
    if (page.to !== this.#from || page.from >= this.#from || endOf(records, page.from) !== this.#from) {
      throw AnswerError.malformed(`a page of seqs ${page.from} to ${page.to - 1} does not join at ${this.#from}`)
    }
    this.#from = page.from
    this.#hasMore = page.from > 0
    // One copy; `unshift` with as many arguments as a page has records may break the stack.
    this.#entries = records.concat(this.#entries)
    return { type: 'prepend', entries: records, from: this.#from, hasMore: this.#hasMore }
  }

  tell(status: JournalStatus, error?: Error): JournalChange {
    this.#status = status
    this.#error = error
    return error === undefined ? { type: 'status', status } : { type: 'status', status, error }
  }
}

/** The seq after the last record. */
function endOf(records: readonly SessionHistoryRecord[], from: number): number {
  const last = records.at(-1)
  return last === undefined ? from : recordRange(last).to
}

/** The index of the entry that begins at a seq, which there is. */
function indexAt(entries: readonly SessionHistoryRecord[], seq: number): number {
  return lowerBound(entries.length, (place) => (entries[place] as SessionHistoryRecord).event.seq < seq)
}
