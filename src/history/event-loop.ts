// Fairness on the serving thread. Work that is done before its promise is awaited never leaves the turn of the event
// loop by itself, however often it is awaited; so whoever does much of it in small steps asks here between two of them.

import { setImmediate as nextTurn } from 'node:timers/promises'

/** Steps that follow after this long in one turn wait for the next. */
const TURN_MS = 5

let began: number | undefined

/** Resolved at once in a young turn, in the next turn otherwise. */
export async function nextTurnIfLong(): Promise<void> {
  while (began !== undefined && performance.now() - began > TURN_MS) await nextTurn()
  if (began !== undefined) return
  began = performance.now()
  setImmediate(() => {
    began = undefined
  })
}
