// One definition over one window: its instances, in the order in which they begin.
//
// An instance whose start is in the window is through with the past. One whose start is not keeps what it was told, so
// that an older part can be folded by itself and then go on with it; the result is that of folding everything at once.

import type { SessionHistoryRecord } from '../../../codec/index.ts'
import { ConversationError } from '../errors.ts'
import type { AnyDefinition, EntryEvent } from './definition.ts'
import type { Told } from './instance.ts'
import { Instance } from './instance.ts'
import type { OmittedRanges } from './omitted-ranges.ts'

export class Fold {
  readonly definition: AnyDefinition
  readonly #omitted: OmittedRanges
  readonly #changed: (instance: Instance) => void
  #instances: Instance[] = []
  /** the last one of each id: what comes next for the id is told to it */
  #current = new Map<string, Instance>()
  /** the current ones of each group */
  #groups = new Map<string, Set<Instance>>()
  /** what groups were told: an instance that an older part brings has to be told too */
  #groupEvents = new Map<string, EntryEvent[]>()
  /** those whose start is not in the window */
  #incomplete = new Set<Instance>()

  /** @param changed is told each instance that may look different now */
  constructor(definition: AnyDefinition, omitted: OmittedRanges, changed: (instance: Instance) => void) {
    this.definition = definition
    this.#omitted = omitted
    this.#changed = changed
  }

  get instances(): readonly Instance[] {
    return this.#instances
  }

  /** The next entry of the window. @throws ConversationError `conversation/packed-start` */
  take(entry: SessionHistoryRecord): void {
    if (entry.type === 'omitted') return
    const { event } = entry
    const match = this.definition.match(event)
    if (!match) return
    const { id, role, group } = match
    if (id === undefined) {
      this.#tellGroup(group as string, event)
      return
    }
    if (role === 'update') {
      const instance = this.#current.get(id) ?? this.#begin({ id, group }, event.seq, false)
      this.#tell(instance, { id, event })
      return
    }
    if (entry.type === 'chunks') {
      const { name } = this.definition
      throw new ConversationError('conversation/packed-start', `${name} takes the row at seq ${event.seq} for a start`)
    }
    this.definition.start(this.#begin({ id, group }, event.seq, true), { id, event: entry.event })
  }

  /** A row has come in place of the single events of its range. They make the same state, so nothing looks different. */
  compact(from: number, to: number, { event }: SessionHistoryRecord): void {
    for (const { told } of this.#incomplete) {
      if (!told) continue
      const first = placeOf(told, from)
      const after = placeOf(told, to)
      if (after > first) told.splice(first, after - first, { id: (told[first] as Told).id, event: event as EntryEvent })
    }
  }

  /** This fold is of an older part that ends where the window of the other one begins: go on with that one. */
  goOnWith(newer: Fold): void {
    const joined = new Map<Instance, Instance>()
    const firsts = firstOfEachId(newer.#instances)
    for (const [id, instance] of this.#current) {
      const next = firsts.get(id)
      const until = next?.firstSeq ?? Number.POSITIVE_INFINITY
      // The group was told before the newer part had an instance of this id.
      for (const event of newer.#toldTo(instance.group)) {
        if (event.seq < until) this.#tell(instance, { id: undefined, event })
      }
      if (!next || next.isComplete) continue
      for (const one of next.told ?? []) this.#tell(instance, one)
      joined.set(next, instance)
    }
    for (const instance of newer.#instances) {
      if (!joined.has(instance)) this.#instances.push(instance)
    }
    for (const [id, instance] of newer.#current) this.#replaceCurrent(id, joined.get(instance) ?? instance)
    for (const instance of newer.#incomplete) if (!joined.has(instance)) this.#incomplete.add(instance)
    for (const [group, events] of newer.#groupEvents) {
      const told = this.#groupEvents.get(group)
      this.#groupEvents.set(group, told ? [...told, ...events] : events)
    }
  }

  #tellGroup(group: string, event: EntryEvent): void {
    const events = this.#groupEvents.get(group)
    if (events) events.push(event)
    else this.#groupEvents.set(group, [event])
    for (const instance of this.#groups.get(group) ?? []) this.#tell(instance, { id: undefined, event })
  }

  #tell(instance: Instance, told: Told): void {
    const isOmitted =
      told.id !== undefined && !instance.hasOmitted && this.#omitted.isBetween(instance.lastSeq, told.event.seq)
    if (isOmitted) instance.markOmitted()
    if (instance.tell(told) || isOmitted) this.#changed(instance)
  }

  #begin(match: { id: string; group: string | undefined }, firstSeq: number, isComplete: boolean): Instance {
    const { id, group } = match
    const instance = new Instance(
      this.definition,
      { id, ...(group !== undefined && { group }) },
      { firstSeq, isComplete },
    )
    this.#instances.push(instance)
    if (!isComplete) this.#incomplete.add(instance)
    this.#replaceCurrent(id, instance)
    this.#changed(instance)
    return instance
  }

  #replaceCurrent(id: string, instance: Instance): void {
    const before = this.#current.get(id)
    if (before === instance) return
    this.#current.set(id, instance)
    if (before?.group !== undefined) this.#groups.get(before.group)?.delete(before)
    if (instance.group === undefined) return
    const group = this.#groups.get(instance.group)
    if (group) group.add(instance)
    else this.#groups.set(instance.group, new Set([instance]))
  }

  #toldTo(group: string | undefined): readonly EntryEvent[] {
    return (group === undefined ? undefined : this.#groupEvents.get(group)) ?? []
  }
}

function firstOfEachId(instances: readonly Instance[]): Map<string, Instance> {
  const firsts = new Map<string, Instance>()
  for (const instance of instances) {
    if (!firsts.has(instance.id)) firsts.set(instance.id, instance)
  }
  return firsts
}

/** Where the first one stands that was told at a seq or later. */
function placeOf(told: readonly Told[], seq: number): number {
  let low = 0
  let high = told.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((told[middle] as Told).event.seq < seq) low = middle + 1
    else high = middle
  }
  return low
}
