// Owns which live tokens can become one row: single events that came one after the other and make up a run.

import type { SessionHistoryRecord } from '../../codec/index.ts'
import { deltaOf, Run } from '../../codec/index.ts'

/** Fewer stay what they are. */
const LEAST_MEMBERS = 3

/** A run that goes no further, as the one row that it packs into. */
export interface ClosedRun {
  readonly from: number
  /** exclusive */
  readonly to: number
  readonly row: SessionHistoryRecord
}

/** Watches the records that join a window's end. The run that is still open is never given: its row would grow. */
export class LiveRun {
  #run: Run | undefined

  /** Takes the next record. Gives the run that it closed, if that is long enough for a row. */
  add(record: SessionHistoryRecord): ClosedRun | undefined {
    const delta = record.type === 'event' ? deltaOf(record.event) : undefined
    const { seq, time } = record.event
    if (delta && this.#run?.accepts(delta, seq, time)) {
      this.#run.add(delta, seq, time)
      return undefined
    }
    const closed = this.#run
    this.#run = delta && Run.fits(delta, seq, time) ? new Run(delta, seq, time) : undefined
    if (closed === undefined || closed.length < LEAST_MEMBERS) return undefined
    return { from: closed.firstSeq, to: closed.nextSeq, row: closed.records()[0] as SessionHistoryRecord }
  }
}
