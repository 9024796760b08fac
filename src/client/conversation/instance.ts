// One instance of a definition in a window, with what is needed to go on when earlier events are put before it.

import type { AnyDefinition, Context, EntryEvent, ItemView } from './definition.ts'
import { lastSeqOf } from './token-run.ts'

/** An event or a row that an instance was told; without an id when its group was. */
export interface Told {
  readonly id: string | undefined
  readonly event: EntryEvent
}

export class Instance implements Context<unknown> {
  readonly definition: AnyDefinition
  readonly id: string
  readonly group: string | undefined
  readonly firstSeq: number
  readonly state: unknown
  readonly isComplete: boolean
  hasOmitted = false
  #isRemoved = false
  /** of what it was told by its id */
  lastSeq: number
  /** What it was told: kept as long as its start may come, and with it what was before. */
  told: Told[] | undefined
  /** undefined once the state differs from what it shows */
  #shown: { readonly view: ItemView | undefined } | undefined

  constructor(
    definition: AnyDefinition,
    match: { readonly id: string; readonly group?: string },
    { firstSeq, isComplete, isKept }: { firstSeq: number; isComplete: boolean; isKept: boolean },
  ) {
    this.definition = definition
    this.id = match.id
    this.group = match.group
    this.firstSeq = firstSeq
    this.lastSeq = firstSeq
    this.isComplete = isComplete
    this.told = isKept ? [] : undefined
    this.state = definition.initial()
  }

  /** @returns whether its view may differ now */
  tell({ id, event }: Told): boolean {
    this.told?.push({ id, event })
    if (id !== undefined) this.lastSeq = lastSeqOf(event)
    const isChanged = this.definition.update(this, { id, event })
    if (isChanged) this.#shown = undefined
    return isChanged
  }

  markOmitted(): void {
    this.hasOmitted = true
    this.#shown = undefined
  }

  /** An older one has gone on with it, and shows it. */
  remove(): void {
    this.#isRemoved = true
  }

  view(): ItemView | undefined {
    if (this.#isRemoved) return undefined
    this.#shown ??= { view: this.definition.view(this) }
    return this.#shown.view
  }
}
