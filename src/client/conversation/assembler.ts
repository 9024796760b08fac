// Views of a conversation, kept up to date by the changes of a window. Nothing is expanded: a row is one entry, and each
// definition is told it once.

import type { SessionHistoryRecord } from '../../../codec/index.ts'
import { recordRange } from '../../../codec/index.ts'
import { ConversationError } from '../errors.ts'
import type { JournalChange } from '../journal-window.ts'
import type { AnyDefinition, ItemOf } from './definition.ts'
import { Fold } from './fold.ts'
import type { Instance } from './instance.ts'
import { OmittedRanges } from './omitted-ranges.ts'
import { ViewItems } from './view-items.ts'

/** Each view's name with the definitions whose items it shows. One definition may serve several views. */
export type ViewDefinitions = Readonly<Record<string, readonly AnyDefinition[]>>

/**
 * Takes the changes of one journal, in order. A change costs what it brings, whatever the window holds; a view is made
 * when it is asked for, from what changed since.
 */
export class ConversationAssembler<Definitions extends ViewDefinitions> {
  readonly #definitions: Definitions
  #omitted = new OmittedRanges()
  #folds: readonly Fold[] = []
  #views = new Map<string, ViewItems>()
  #viewsOf = new Map<AnyDefinition, readonly ViewItems[]>()
  #from: number | undefined
  #to = 0
  #inputs = 0

  /**
   * @param definitions of each view, such as `{ chat: [userMessage, chatAssistant] }`
   * @throws TypeError for what is no definition
   */
  constructor(definitions: Definitions) {
    checkDefinitions(definitions)
    this.#definitions = definitions
    this.#clear()
  }

  /** How many entries were taken: each record once, whatever it stands for. */
  get inputs(): number {
    return this.#inputs
  }

  /**
   * Goes one step on. After an error the views are not to be used any more.
   * @throws ConversationError `conversation/gap` for a change of another window, `conversation/packed-start`
   */
  apply(change: JournalChange): void {
    switch (change.type) {
      case 'replace':
        this.#clear()
        this.#from = change.from
        this.#to = change.from
        if (change.from === 0) for (const fold of this.#folds) fold.beWhole()
        this.#append(change.entries)
        break
      case 'append':
        this.#append(change.entries)
        break
      case 'prepend':
        this.#prepend(change.entries, change.from)
        break
      case 'compact':
        this.#compact(change.from, change.to, change.entries)
        break
      case 'status':
        break
    }
  }

  /**
   * The items of a view in the order of their `seq`. As long as nothing changes it is the same array, and an item that
   * did not change is the same object.
   */
  view<Name extends keyof Definitions & string>(name: Name): readonly ItemOf<Definitions[Name]>[] {
    const view = this.#views.get(name)
    if (!view) throw new TypeError(`there is no view ${JSON.stringify(name)}; there are ${[...this.#views.keys()]}`)
    return view.items() as readonly ItemOf<Definitions[Name]>[]
  }

  #clear(): void {
    this.#omitted = new OmittedRanges()
    this.#views = new Map()
    this.#viewsOf = new Map()
    for (const [name, definitions] of Object.entries(this.#definitions)) {
      const view = new ViewItems(definitions)
      this.#views.set(name, view)
      for (const definition of new Set(definitions)) {
        this.#viewsOf.set(definition, [...this.#viewsIn(definition), view])
      }
    }
    this.#folds = [...this.#viewsOf.keys()].map((definition) => {
      return new Fold(definition, this.#omitted, (instance) => this.#changed(instance))
    })
  }

  #viewsIn(definition: AnyDefinition): readonly ViewItems[] {
    return this.#viewsOf.get(definition) ?? []
  }

  #changed(instance: Instance): void {
    for (const view of this.#viewsIn(instance.definition)) view.changed(instance)
  }

  #append(entries: readonly SessionHistoryRecord[]): void {
    const [first] = entries
    if (!first) return
    if (this.#from === undefined) {
      this.#from = first.event.seq
      this.#to = this.#from
    }
    this.#to = feed(this.#folds, this.#omitted, entries, this.#to)
    this.#inputs += entries.length
  }

  #prepend(entries: readonly SessionHistoryRecord[], from: number): void {
    const omitted = new OmittedRanges()
    const older = this.#folds.map(({ definition }) => new Fold(definition, omitted, () => {}))
    const to = feed(older, omitted, entries, from)
    if (to !== this.#from) {
      throw new ConversationError('conversation/gap', `entries up to seq ${to - 1} do not join at ${this.#from}`)
    }
    this.#omitted.putBefore(omitted)
    for (const [place, fold] of this.#folds.entries()) fold.putBefore(older[place] as Fold)
    if (from === 0) for (const fold of this.#folds) fold.beWhole()
    this.#from = from
    this.#inputs += entries.length
  }

  #compact(from: number, to: number, entries: readonly SessionHistoryRecord[]): void {
    for (const entry of entries) {
      const range = recordRange(entry)
      if (range.from < from || range.to > to) {
        throw new ConversationError(
          'conversation/gap',
          `the row at seq ${range.from} is not within ${from} to ${to - 1}`,
        )
      }
      for (const fold of this.#folds) fold.compact(range.from, range.to, entry)
    }
  }
}

const FUNCTIONS = ['initial', 'match', 'start', 'update', 'view'] as const

function checkDefinitions(views: ViewDefinitions): void {
  for (const [name, definitions] of Object.entries(views)) {
    if (!Array.isArray(definitions))
      throw new TypeError(`the view ${JSON.stringify(name)} must be a list of definitions`)
    for (const definition of definitions as readonly AnyDefinition[]) {
      const missing = FUNCTIONS.filter((part) => typeof definition?.[part] !== 'function')
      if (missing.length > 0)
        throw new TypeError(`a definition of ${JSON.stringify(name)} has no ${missing.join(', ')}`)
    }
  }
}

/** @returns the seq after the last entry */
function feed(
  folds: readonly Fold[],
  omitted: OmittedRanges,
  entries: readonly SessionHistoryRecord[],
  from: number,
): number {
  let next = from
  for (const entry of entries) {
    const { seq } = entry.event
    if (seq !== next) throw new ConversationError('conversation/gap', `the next seq is ${next}, got ${seq}`)
    next = entry.type === 'event' ? seq + 1 : recordRange(entry).to
    if (entry.type === 'omitted') omitted.add(seq)
    for (const fold of folds) fold.take(entry)
  }
  return next
}
