// One definition over one window: its instances, in the order in which they begin.
//
// An instance whose start is in the window is through with the past. One whose start is not keeps what it was told, so
// that an older part can be folded by itself and then go on with it; the result is that of folding everything at once.

import type { SessionHistoryRecord } from '../../../codec/index.ts'
import { ConversationError } from '../errors.ts'
import { lowerBound } from '../lower-bound.ts'
import type { AnyDefinition, EntryEvent } from './definition.ts'
import type { Told } from './instance.ts'
import { Instance } from './instance.ts'
import type { OmittedRanges } from './omitted-ranges.ts'

export class Fold {
  readonly definition: AnyDefinition
  readonly #omitted: OmittedRanges
  readonly #changed: (instance: Instance) => void
  #instances: Instance[] = []
  /** the first one of each id: an older part goes on with it when its start is not in the window */
  readonly #first = new Map<string, Instance>()
  /** the last one of each id: what comes next for the id is told to it */
  readonly #current = new Map<string, Instance>()
  /** the current ones of each group that it can still change */
  readonly #groups = new Map<string, Set<Instance>>()
  /** what groups were told: an instance that an older part brings has to be told too */
  readonly #groupEvents = new Map<string, EntryEvent[]>()
  /** those that keep what they were told */
  readonly #incomplete = new Set<Instance>()
  #isWhole = false

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
    if (!isMatch(match)) {
      const { name } = this.definition
      throw new ConversationError('conversation/bad-match', `${name} gives no match for the event at seq ${event.seq}`)
    }
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
    if (this.#incomplete.size === 0) return
    const id = this.definition.match(event as EntryEvent)?.id
    if (id === undefined) return
    const current = this.#current.get(id)
    const kept = current && current.firstSeq <= from ? [current] : this.#incomplete
    for (const { told } of kept) {
      if (!told) continue
      const first = placeOf(told, from)
      const after = placeOf(told, to)
      if (after > first) told.splice(first, after - first, { id: (told[first] as Told).id, event: event as EntryEvent })
    }
  }

  /** The window reaches back to the beginning of the log: nothing can come before, so nothing needs to be kept for it. */
  beWhole(): void {
    this.#isWhole = true
    for (const instance of this.#incomplete) instance.told = undefined
    this.#incomplete.clear()
  }

  /**
   * Puts an older part before, which was folded by itself and ends where this window begins. Costs what the older part
   * holds, and what the instances were told that it goes on with.
   */
  putBefore(older: Fold): void {
    for (const [id, instance] of older.#current) {
      const next = this.#first.get(id)
      const until = next?.firstSeq ?? Number.POSITIVE_INFINITY
      // The group was told before this window had an instance of the id.
      for (const event of this.#toldTo(instance)) {
        if (event.seq < until) this.#tell(instance, { id: undefined, event })
      }
      if (next && !next.isComplete) {
        for (const one of next.told ?? []) this.#tell(instance, one)
        next.remove()
        this.#changed(next)
        this.#instances.splice(this.#instances.indexOf(next), 1)
        this.#incomplete.delete(next)
        if (this.#current.get(id) === next) this.#replaceCurrent(id, instance)
      } else if (!next) {
        this.#replaceCurrent(id, instance)
      }
    }
    for (const [id, instance] of older.#first) this.#first.set(id, instance)
    for (const instance of older.#incomplete) this.#incomplete.add(instance)
    for (const [group, events] of older.#groupEvents) {
      this.#groupEvents.set(group, events.concat(this.#groupEvents.get(group) ?? []))
    }
    for (const instance of older.#instances) this.#changed(instance)
    this.#instances = older.#instances.concat(this.#instances)
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
    if (this.definition.isOver?.(instance)) this.#leaveGroup(instance)
  }

  #begin(match: { id: string; group: string | undefined }, firstSeq: number, isComplete: boolean): Instance {
    const { id, group } = match
    const isKept = !isComplete && !this.#isWhole
    const instance = new Instance(
      this.definition,
      { id, ...(group !== undefined && { group }) },
      { firstSeq, isComplete, isKept },
    )
    this.#instances.push(instance)
    if (isKept) this.#incomplete.add(instance)
    if (!this.#first.has(id)) this.#first.set(id, instance)
    this.#replaceCurrent(id, instance)
    this.#changed(instance)
    return instance
  }

  #replaceCurrent(id: string, instance: Instance): void {
    const before = this.#current.get(id)
    if (before) this.#leaveGroup(before)
    this.#current.set(id, instance)
    if (instance.group === undefined || this.definition.isOver?.(instance)) return
    const group = this.#groups.get(instance.group)
    if (group) group.add(instance)
    else this.#groups.set(instance.group, new Set([instance]))
  }

  #leaveGroup(instance: Instance): void {
    if (instance.group === undefined) return
    const group = this.#groups.get(instance.group)
    if (group?.delete(instance) && group.size === 0) this.#groups.delete(instance.group)
  }

  /** What its group was told in this window, unless that cannot change it. */
  #toldTo(instance: Instance): readonly EntryEvent[] {
    if (instance.group === undefined || this.definition.isOver?.(instance)) return []
    return this.#groupEvents.get(instance.group) ?? []
  }
}

/** Where the first one stands that was told at a seq or later. */
function placeOf(told: readonly Told[], seq: number): number {
  return lowerBound(told.length, (place) => (told[place] as Told).event.seq < seq)
}

/** Definitions of others may be written without types. */
function isMatch({
  id,
  role,
  group,
}: {
  readonly id?: unknown
  readonly role: unknown
  readonly group?: unknown
}): boolean {
  if (typeof id === 'string') return role === 'start' || role === 'update'
  return id === undefined && typeof group === 'string' && role === 'update'
}
