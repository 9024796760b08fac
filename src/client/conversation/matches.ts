// What the definitions that come with the client have in common: the steps and turns that events name, and what is told
// to whom.

import type { JsonValue } from '../../../codec/index.ts'
import type { EntryEvent, Match } from './definition.ts'
import { integerField, stepId, turnId } from './event-fields.ts'
import { isRow } from './token-run.ts'

/** What an event is to the step that it names. */
export function matchStep(event: EntryEvent, role: 'start' | 'update'): Match | null {
  const id = stepId(event)
  const group = turnId(event)
  return id === undefined || group === undefined ? null : { id, role, group }
}

/** The end of a turn is told to all that is still going on in it. */
export function matchTurnEnd(event: EntryEvent): Match | null {
  const group = turnId(event)
  return group === undefined ? null : { group, role: 'update' }
}

/** A replacement is what the model is shown from now on, not what was said or done. */
export function isReplacement(event: EntryEvent): boolean {
  return !isRow(event) && typeof event.surfaceOp === 'object'
}

/** Notes the turn and the step that data names. */
export function takePlace(state: { turn: number | undefined; step: number | undefined }, data: JsonValue): void {
  state.turn = integerField(data, 'turn') ?? state.turn
  state.step = integerField(data, 'step') ?? state.step
}
