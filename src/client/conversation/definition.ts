// The shape of a definition: how one kind of thing in a conversation is folded from the entries of a window.

import type { ChunkRowEvent, SessionEvent } from '../../../codec/index.ts'

/** What an entry holds: one event, or a row of the tokens of one run. */
export type EntryEvent = SessionEvent | ChunkRowEvent

/**
 * What an entry is to a definition. With an `id` it starts or goes on with the instance of that id; with a `group` alone
 * it is told to every instance of the group that there is by then.
 */
export type Match =
  | { readonly id: string; readonly role: 'start' | 'update'; readonly group?: string }
  | { readonly group: string; readonly role: 'update'; readonly id?: undefined }

/** A match of an event that begins an instance. */
export interface StartMatch {
  readonly id: string
  readonly event: SessionEvent
}

/** A match of what comes later, or of what comes while the start is not in the window. */
export interface UpdateMatch {
  /** undefined when the group was told */
  readonly id: string | undefined
  readonly event: EntryEvent
}

/** One instance, as its definition sees it. */
export interface Context<State> {
  readonly id: string
  /** made by `initial`, and the definition's own to change */
  readonly state: State
  /** seq of the first event of the instance that is in the window */
  readonly firstSeq: number
  /** whether the window holds its start */
  readonly isComplete: boolean
  /** whether events between its first and its last one were left out of the window, so that figures of them are not known */
  readonly hasOmitted: boolean
}

/** One item of a view. */
export interface ItemView {
  /** its place among the other items */
  readonly seq: number
}

/**
 * Folds entries into views. A row is one entry and is told once; whatever way the same events are split into single ones
 * and rows, the views must come out equal.
 *
 * `State` is kept for each instance and changed in place; `View` is what readers see, made anew when the state changed.
 */
export interface Definition<State, View extends ItemView> {
  readonly name: string
  /** The state of an instance of which nothing was told yet. */
  initial(): State
  /** What an entry is to this definition; null when it is nothing. Looks at the event alone. */
  match(event: EntryEvent): Match | null
  /** Takes the event that begins an instance; a row never does. */
  start(context: Context<State>, match: StartMatch): void
  /** Takes an event or a row that comes later. Returns whether the view may differ now. */
  update(context: Context<State>, match: UpdateMatch): boolean
  /** Whether nothing that its group is told can change it any more. Without it each is told for ever. */
  isOver?(context: Context<State>): boolean
  /** What to show; undefined for nothing. */
  view(context: Context<State>): View | undefined
}

// biome-ignore lint/suspicious/noExplicitAny: what a list of definitions holds, whatever their states are
export type AnyDefinition = Definition<any, ItemView>

/** What the items of a list of definitions look like. */
export type ItemOf<Definitions extends readonly AnyDefinition[]> =
  Definitions[number] extends Definition<infer _State, infer View> ? View : never
