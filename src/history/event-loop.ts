// Fairness on the serving thread. Work that is done before its promise is awaited never leaves the turn of the event
// loop by itself, however often it is awaited; so whoever does much of it in small steps asks here between two of them.

import { setImmediate as nextTurn } from 'node:timers/promises'

/** Steps that follow after this long in one turn wait for the next. */
const TURN_MS = 5

let began: number | undefined

/** Nothing to wait for in a young turn; resolved in a later turn otherwise. */
export function nextTurnIfLong(): Promise<void> | undefined {
  if (began !== undefined && performance.now() - began > TURN_MS) return nextYoungTurn()
  if (began === undefined) {
    began = performance.now()
    setImmediate(grownOld)
  }
  return undefined
}

/** Others may have waited for the same turn, and filled it. */
async function nextYoungTurn(): Promise<void> {
  await nextTurn()
  await nextTurnIfLong()
}

function grownOld(): void {
  began = undefined
}
