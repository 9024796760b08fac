// Reads fields out of data of any shape: what is not there, or not of the kind that is asked for, is undefined. A key
// given by the data is one of its own, `__proto__` too.

import type { JsonValue } from '../../../codec/index.ts'
import type { EntryEvent } from './definition.ts'

export function field(value: JsonValue | undefined, key: string): JsonValue | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  return Object.hasOwn(value, key) ? value[key] : undefined
}

export function textField(value: JsonValue | undefined, key: string): string | undefined {
  const found = field(value, key)
  return typeof found === 'string' ? found : undefined
}

export function integerField(value: JsonValue | undefined, key: string): number | undefined {
  const found = field(value, key)
  return Number.isSafeInteger(found) ? (found as number) : undefined
}

/** The arguments of a tool call as text; some providers give them as a value. */
export function argumentsField(value: JsonValue | undefined): string | undefined {
  const given = field(value, 'arguments')
  return given === undefined || typeof given === 'string' ? given : JSON.stringify(given)
}

/** The data of an event or a row, to be read field by field. */
export function dataOf(event: EntryEvent): JsonValue {
  return event.data as JsonValue
}

/** `turn:step` of an event that belongs to a step. */
export function stepId(event: EntryEvent): string | undefined {
  const data = dataOf(event)
  const turn = integerField(data, 'turn')
  const step = integerField(data, 'step')
  return turn === undefined || step === undefined ? undefined : `${turn}:${step}`
}

/** `turn` of an event that belongs to a turn. */
export function turnId(event: EntryEvent): string | undefined {
  const turn = integerField(dataOf(event), 'turn')
  return turn === undefined ? undefined : `${turn}`
}
