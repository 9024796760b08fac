// Owns checking what a caller gives: names and values of options, with a message that says what was expected and what
// came. A wrong option is a mistake in a program, so it is a TypeError, and nothing is sent.

import { CHUNKS_MODES, EPOCH_LENGTH, isSessionId, PAGE_MESSAGES } from '../../codec/index.ts'

/** Says what was expected, for a value that is not it. */
export type Check = (value: unknown) => string | undefined

/** The checks of each option by its name; one that is undefined was not given. */
export type Checks<Options> = { readonly [Name in keyof Required<Options>]: Check }

/** Throws TypeError for a value that its check refuses, and for a name that no option has. */
export function checkOptions<Options extends object>(where: string, given: Options, checks: Checks<Options>): Options {
  if (typeof given !== 'object' || given === null) {
    throw new TypeError(`${where} takes an object of options, got ${shown(given)}`)
  }
  for (const [name, value] of Object.entries(given)) {
    const check = Object.hasOwn(checks, name) ? (checks as Record<string, Check>)[name] : undefined
    if (check === undefined) {
      throw new TypeError(`${where} has no option "${name}"; it has ${Object.keys(checks).join(', ')}`)
    }
    const expected = value === undefined ? undefined : check(value)
    // A token is a secret, and messages end in logs.
    const got = name === 'token' ? 'something else' : shown(value)
    if (expected !== undefined) throw new TypeError(`${where}: ${name} must be ${expected}, got ${got}`)
  }
  return given
}

/** Throws TypeError for text that cannot name a session. */
export function checkSessionId(id: unknown): string {
  if (typeof id === 'string' && isSessionId(id)) return id
  throw new TypeError(`a session id is 1 to 128 of A-Z a-z 0-9 . _ ~ : @ -, and not . or .., got ${shown(id)}`)
}

export function integerOf(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER): Check {
  const bounds = maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`
  return (value) => {
    const good = Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum
    return good ? undefined : `an integer ${bounds}`
  }
}

/** Milliseconds or seconds; fractions are welcome. */
export const duration: Check = (value) => {
  return Number.isFinite(value) && (value as number) >= 0 ? undefined : 'a number of at least 0'
}

export function oneOf(words: readonly string[]): Check {
  return (value) => (words.includes(value as string) ? undefined : `one of ${words.join(', ')}`)
}

export const aFunction: Check = (value) => (typeof value === 'function' ? undefined : 'a function')
export const anObject: Check = (value) => (typeof value === 'object' && value !== null ? undefined : 'an object')
export const aBoolean: Check = (value) => (typeof value === 'boolean' ? undefined : 'true or false')
export const aSignal: Check = (value) => (value instanceof AbortSignal ? undefined : 'an AbortSignal')
export const exclusiveSeq: Check = integerOf(0)
export const inclusiveSeq: Check = integerOf(-1)
export const chunksMode: Check = oneOf(CHUNKS_MODES)
export const messageCount: Check = integerOf(PAGE_MESSAGES.minimum, PAGE_MESSAGES.maximum)

export function textOf(maximum: number): Check {
  return (value) => {
    const good = typeof value === 'string' && value.length > 0 && value.length <= maximum
    return good ? undefined : `a text of 1 to ${maximum} characters`
  }
}

export const anEpoch: Check = textOf(EPOCH_LENGTH)

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
  if (typeof value === 'function') return 'a function'
  if (typeof value !== 'object' || value === null) return String(value)
  return Array.isArray(value) ? 'an array' : 'an object'
}
