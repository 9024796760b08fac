// One call of a tool, and what came of it.

import type { JsonValue } from '../../../codec/index.ts'
import type { Context, Definition, EntryEvent, Match } from './definition.ts'
import { argumentsField, dataOf, field, textField, turnId } from './event-fields.ts'
import { isReplacement, matchTurnEnd, takePlace } from './matches.ts'

export interface ToolCallView {
  readonly kind: 'tool-call'
  /** The same as long as there is the item. Only a log that makes one call twice has it twice. */
  readonly id: string
  readonly callId: string
  /** of the call; while that is not in the window, of its result */
  readonly seq: number
  /** whether the window holds the call; otherwise its name and arguments are not known */
  readonly isComplete: boolean
  /** `unanswered`: the turn ended without a result */
  readonly status: 'running' | 'done' | 'failed' | 'unanswered'
  readonly turn?: number
  readonly step?: number
  readonly name?: string
  /** JSON text, unless the model wrote something else */
  readonly argsRaw?: string
  /** epoch ms */
  readonly startedAt?: number
  /** epoch ms */
  readonly endedAt?: number
  /** the message with the result, or the content that stands in its place, as it was appended */
  readonly result?: JsonValue
  readonly error?: JsonValue
  readonly meta?: JsonValue
}

export class ToolCall {
  turn: number | undefined
  step: number | undefined
  callId = ''
  name: string | undefined
  argsRaw: string | undefined
  startedAt: number | undefined
  endedAt: number | undefined
  status: ToolCallView['status'] = 'running'
  result: JsonValue | undefined
  error: JsonValue | undefined
  meta: JsonValue | undefined
}

export const toolCall: Definition<ToolCall, ToolCallView> = {
  name: 'tool-call',

  initial: () => new ToolCall(),

  match(event): Match | null {
    if (event.type === 'turn/end') return matchTurnEnd(event)
    if (event.type === 'tool/call') return matchCall(event, 'start', textField(dataOf(event), 'callId'))
    if (event.type !== 'tool/result' || isReplacement(event)) return null
    return matchCall(event, 'update', resultCallId(dataOf(event)))
  },

  start({ state }, { event }) {
    const data = dataOf(event)
    takePlace(state, data)
    state.callId = textField(data, 'callId') ?? ''
    state.name = textField(data, 'name')
    state.argsRaw = argumentsField(data)
    state.startedAt = event.time
  },

  update(context, { event }) {
    return event.type === 'turn/end' ? abandon(context) : takeResult(context, event)
  },

  isOver({ state }) {
    return state.status !== 'running'
  },

  view({ id, state, firstSeq, isComplete }) {
    const { callId, status, turn, step, name, argsRaw, startedAt, endedAt, result, error, meta } = state
    return {
      ...{ kind: 'tool-call', id, callId, seq: firstSeq, isComplete, status },
      ...(turn !== undefined && { turn }),
      ...(step !== undefined && { step }),
      ...(name !== undefined && { name }),
      ...(argsRaw !== undefined && { argsRaw }),
      ...(startedAt !== undefined && { startedAt }),
      ...(endedAt !== undefined && { endedAt }),
      ...(result !== undefined && { result }),
      ...(error !== undefined && { error }),
      ...(meta !== undefined && { meta }),
    }
  },
}

function matchCall(event: EntryEvent, role: 'start' | 'update', callId: string | undefined): Match | null {
  const group = turnId(event)
  if (callId === undefined) return null
  // Providers number their calls anew in each turn.
  return { id: `${group ?? ''}:${callId}`, role, ...(group !== undefined && { group }) }
}

function abandon({ state }: Context<ToolCall>): boolean {
  if (state.status !== 'running') return false
  state.status = 'unanswered'
  return true
}

function takeResult({ state }: Context<ToolCall>, event: EntryEvent): boolean {
  const data = dataOf(event)
  takePlace(state, data)
  state.callId = resultCallId(data) ?? state.callId
  state.result = field(data, 'message') ?? field(data, 'content')
  state.error = field(data, 'error')
  state.meta = field(data, 'meta')
  state.status = state.error === undefined && !saysError(data) && !saysError(state.result) ? 'done' : 'failed'
  state.endedAt = event.time
  return true
}

/** A result names its call itself, in its source, or in its content. */
function resultCallId(data: JsonValue): string | undefined {
  const message = field(data, 'message')
  return (
    textField(data, 'callId') ??
    textField(field(message, 'source'), 'callId') ??
    contentOf(message)
      .map((part) => textField(part, 'toolCallId'))
      .find((id) => id !== undefined)
  )
}

function saysError(value: JsonValue | undefined): boolean {
  return field(value, 'isError') === true || contentOf(value).some((part) => field(part, 'isError') === true)
}

function contentOf(message: JsonValue | undefined): readonly JsonValue[] {
  const content = field(message, 'content')
  return Array.isArray(content) ? content : []
}
