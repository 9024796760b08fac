// The items of one view in their order. What readers were given stays as it is: a change makes a new list, in which only
// the items that changed are others.

import type { AnyDefinition, ItemView } from './definition.ts'
import type { Instance } from './instance.ts'

/** With so many changes at once everything is sorted anew: putting each in its place would cost more. */
const MANY_CHANGES = 32

export class ViewItems {
  /** of two items at one place that of the lower rank comes first */
  readonly #ranks: ReadonlyMap<AnyDefinition, number>
  readonly #changed = new Set<Instance>()
  #items: readonly ItemView[] = []
  /** whose items they are, place by place */
  #owners: Instance[] = []
  #shown = new Map<Instance, ItemView>()

  constructor(definitions: readonly AnyDefinition[]) {
    this.#ranks = new Map(definitions.map((definition, rank) => [definition, rank]))
  }

  /** Begin anew with these. */
  fill(instances: readonly Instance[]): void {
    this.#shown = new Map()
    for (const instance of instances) this.#show(instance)
    this.#changed.clear()
    this.#sort()
  }

  /** An instance is new, or may look different. */
  changed(instance: Instance): void {
    this.#changed.add(instance)
  }

  items(): readonly ItemView[] {
    if (this.#changed.size > MANY_CHANGES) {
      for (const instance of this.#changed) this.#show(instance)
      this.#sort()
    } else if (this.#changed.size > 0) {
      this.#patch()
    }
    this.#changed.clear()
    return this.#items
  }

  #show(instance: Instance): void {
    const view = instance.view()
    if (view) this.#shown.set(instance, view)
    else this.#shown.delete(instance)
  }

  #sort(): void {
    const entries = [...this.#shown]
    entries.sort(([one, oneView], [other, otherView]) => this.#compare(oneView, one, otherView, other))
    this.#owners = entries.map(([instance]) => instance)
    this.#items = entries.map(([, view]) => view)
  }

  #patch(): void {
    let items: ItemView[] | undefined
    for (const instance of this.#changed) {
      const before = this.#shown.get(instance)
      this.#show(instance)
      const view = this.#shown.get(instance)
      if (view === before) continue
      items ??= this.#items.slice()
      const at = before && this.#placeOf(items, before, instance)
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
    if (items) this.#items = items
  }

  /** Where an item stands, or is to stand. */
  #placeOf(items: readonly ItemView[], view: ItemView, owner: Instance): number {
    let low = 0
    let high = items.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#compare(items[middle] as ItemView, this.#owners[middle] as Instance, view, owner) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  #compare(view: ItemView, owner: Instance, otherView: ItemView, other: Instance): number {
    return view.seq - otherView.seq || this.#rankOf(owner) - this.#rankOf(other) || owner.firstSeq - other.firstSeq
  }

  #rankOf({ definition }: Instance): number {
    return this.#ranks.get(definition) as number
  }
}
