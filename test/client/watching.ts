// Owns watching a journal: a mirror that its changes alone are applied to, held against the window and the log at each
// step; and what a process must be free of when everything is closed.

import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { SessionEvent, SessionHistoryRecord } from '../../codec/index.ts'
import { recordRange } from '../../codec/index.ts'
import type { Journal, JournalChange, JournalStatus } from '../../src/client/index.ts'
import { assertCovers, eventsOf } from '../support/logs.ts'

export interface WatchOptions {
  /** the log as it is now; each change is held against it */
  readonly log: () => readonly SessionEvent[]
  /** told of each change after it was checked; what it gives is waited for */
  readonly onChange?: (change: JournalChange) => unknown
}

export class Watch {
  readonly changes: JournalChange[] = []
  /** resolved when the journal has ended */
  readonly done: Promise<void>
  readonly journal: Journal
  #entries: SessionHistoryRecord[] = []
  #from = 0
  #hasMore = false
  #ended = false
  readonly #waiting = new Set<() => void>()

  constructor(journal: Journal, options: WatchOptions) {
    this.journal = journal
    this.done = this.#run(options).finally(() => {
      this.#ended = true
      this.#wake()
    })
    this.done.catch(() => {})
  }

  get statuses(): JournalStatus[] {
    return this.changes.flatMap((change) => (change.type === 'status' ? [change.status] : []))
  }

  of<Type extends JournalChange['type']>(type: Type): Extract<JournalChange, { type: Type }>[] {
    return this.changes.filter((change) => change.type === type) as Extract<JournalChange, { type: Type }>[]
  }

  /** Waits until something is so, which is looked at after each change and now and then; or the journal has ended. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#ended) {
        await this.done
        throw new Error(`the journal ended: ${this.statuses.join(', ')} ${this.journal.error}`)
      }
      const stop = new AbortController()
      const { promise: changed, resolve } = Promise.withResolvers<void>()
      this.#waiting.add(resolve)
      await Promise.race([changed, delay(5, undefined, { signal: stop.signal }).catch(() => {})])
      stop.abort()
      this.#waiting.delete(resolve)
    }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
  }

  async #run({ log, onChange = () => {} }: WatchOptions): Promise<void> {
    for await (const change of this.journal) {
      this.changes.push(change)
      this.#apply(change)
      await this.#check(log())
      await onChange(change)
      this.#wake()
    }
  }

  #apply(change: JournalChange): void {
    switch (change.type) {
      case 'replace':
        this.#entries = [...change.entries]
        this.#from = change.from
        this.#hasMore = change.hasMore
        break
      case 'prepend':
        assertCovers(change.entries, change.from, this.#from)
        this.#entries.unshift(...change.entries)
        this.#from = change.from
        this.#hasMore = change.hasMore
        break
      case 'append':
        this.#entries.push(...change.entries)
        break
      case 'compact': {
        assertCovers(change.entries, change.from, change.to)
        const inside = (record: SessionHistoryRecord) => {
          const { from, to } = recordRange(record)
          return from >= change.from && to <= change.to
        }
        const at = this.#entries.findIndex(inside)
        const count = this.#entries.filter(inside).length
        assertCovers(this.#entries.slice(at, at + count), change.from, change.to)
        this.#entries.splice(at, count, ...change.entries)
        break
      }
      case 'status':
        assert.equal(this.journal.status, change.status)
    }
  }

  /** The window is what the changes made of it, and a contiguous part of the log. */
  async #check(log: readonly SessionEvent[]): Promise<void> {
    const { journal } = this
    assert.deepEqual(journal.entries, this.#entries)
    assert.equal(journal.from, this.#from)
    assert.equal(journal.hasMore, this.#hasMore)
    assertCovers(journal.entries, journal.from, journal.to)
    assert.deepEqual(await eventsOf(journal.entries), log.slice(journal.from, journal.to))
  }
}

/** Timers and sockets of this process. */
export function activeResources(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((name) => /Timeout|TCPSocket/.test(name))
    .sort()
}
