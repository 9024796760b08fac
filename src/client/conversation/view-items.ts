// The items of one view in their order. What readers were given stays as it is: a change makes a new list, in which only
// the items that changed are others.

import { lowerBound } from '../lower-bound.ts'
import type { AnyDefinition, ItemView } from './definition.ts'
import type { Instance } from './instance.ts'

/** So many changes at once are merged into the list: putting each in its place would cost more. */
const MANY_CHANGES = 32

interface Item {
  readonly owner: Instance
  readonly view: ItemView
}

export class ViewItems {
  /** of two items at one place that of the lower rank comes first */
  readonly #ranks: ReadonlyMap<AnyDefinition, number>
  readonly #changed = new Set<Instance>()
  #items: readonly ItemView[] = []
  /** whose items they are, place by place */
  #owners: Instance[] = []
  readonly #shown = new Map<Instance, ItemView>()

  constructor(definitions: readonly AnyDefinition[]) {
    this.#ranks = new Map(definitions.map((definition, rank) => [definition, rank]))
  }

  /** An instance is new, or may look different. */
  changed(instance: Instance): void {
    this.#changed.add(instance)
  }

  /** Throws what a definition throws; then nothing has changed, and what did is looked at again the next time. */
  items(): readonly ItemView[] {
    if (this.#changed.size === 0) return this.#items
    const views: [Instance, ItemView | undefined][] = []
    for (const instance of this.#changed) {
      const view = instance.view()
      if (view !== this.#shown.get(instance)) views.push([instance, view])
    }
    this.#changed.clear()
    if (views.length > MANY_CHANGES) this.#merge(views)
    else if (views.length > 0) this.#patch(views)
    return this.#items
  }

  #merge(views: readonly [Instance, ItemView | undefined][]): void {
    const changed = new Set(views.map(([instance]) => instance))
    const fresh: Item[] = []
    for (const [owner, view] of views) {
      this.#show(owner, view)
      if (view) fresh.push({ owner, view })
    }
    fresh.sort((one, other) => this.#compare(one.view, one.owner, other.view, other.owner))
    const items: ItemView[] = []
    const owners: Instance[] = []
    const take = ({ owner, view }: Item) => {
      items.push(view)
      owners.push(owner)
    }
    let next = 0
    for (const [place, owner] of this.#owners.entries()) {
      if (changed.has(owner)) continue
      const view = this.#items[place] as ItemView
      for (; next < fresh.length; next++) {
        const item = fresh[next] as Item
        if (this.#compare(item.view, item.owner, view, owner) > 0) break
        take(item)
      }
      take({ owner, view })
    }
    for (const item of fresh.slice(next)) take(item)
    this.#items = items
    this.#owners = owners
  }

  #patch(views: readonly [Instance, ItemView | undefined][]): void {
    const items = this.#items.slice()
    for (const [instance, view] of views) {
      const before = this.#shown.get(instance)
      const at = before && this.#placeOf(items, before, instance)
      this.#show(instance, view)
      if (view && at !== undefined && view.seq === before?.seq) {
        items[at] = view
        continue
      }
      if (at !== undefined) {
        items.splice(at, 1)
        this.#owners.splice(at, 1)
      }
      if (!view) continue
      const place = this.#placeOf(items, view, instance)
      items.splice(place, 0, view)
      this.#owners.splice(place, 0, instance)
    }
    this.#items = items
  }

  #show(instance: Instance, view: ItemView | undefined): void {
    if (view) this.#shown.set(instance, view)
    else this.#shown.delete(instance)
  }

  /** Where an item stands, or is to stand. */
  #placeOf(items: readonly ItemView[], view: ItemView, owner: Instance): number {
    return lowerBound(items.length, (place) => {
      return this.#compare(items[place] as ItemView, this.#owners[place] as Instance, view, owner) < 0
    })
  }

  #compare(view: ItemView, owner: Instance, otherView: ItemView, other: Instance): number {
    return view.seq - otherView.seq || this.#rankOf(owner) - this.#rankOf(other) || owner.firstSeq - other.firstSeq
  }

  #rankOf({ definition }: Instance): number {
    return this.#ranks.get(definition) as number
  }
}
