// The end of a turn: how it closed, with which answer, and how fast the answers in it came.

import type { JsonValue } from '../../../codec/index.ts'
import type { Definition, EntryEvent } from './definition.ts'
import { dataOf, field, integerField, textField, turnId } from './event-fields.ts'
import { isReplacement } from './matches.ts'
import type { Moment, TokenRun } from './token-run.ts'
import { deltaRun, firstToken, isRow, lastMoment, rowRun } from './token-run.ts'

/** Figures of the tokens are absent when there were none, and when some of them were left out of the window. */
export interface TurnTailView {
  readonly kind: 'turn-tail'
  /** The same as long as there is the item. Only a log that starts one turn twice has it twice. */
  readonly id: string
  readonly turn: number
  /** not before any item of the turn so far, so that it stands behind them all */
  readonly seq: number
  /** whether the window holds its start */
  readonly isComplete: boolean
  readonly status: 'open' | 'closed'
  /** how it closed */
  readonly reason?: JsonValue
  /** epoch ms */
  readonly startedAt?: number
  /** epoch ms */
  readonly endedAt?: number
  /** its last answer that was settled by a message */
  readonly closing?: { readonly step?: number; readonly seq: number; readonly messageId?: string }
  /** ms from its start to its first token that carried anything */
  readonly timeToFirstToken?: number
  /** output tokens a second, each step from its first to its last token, over the steps that are whole and have a usage */
  readonly tokensPerSecond?: number
}

/** What is known of the step that is going on. */
interface StepRate {
  /** whether its start was seen: otherwise its first token may have come before */
  readonly isWhole: boolean
  firstTime: number | undefined
  lastTime: number
  outputTokens: number | undefined
}

export class TurnTail {
  turn = 0
  /** of the tokens that the last event is one of */
  step: number | undefined
  seq = 0
  startedAt: number | undefined
  ended: { readonly time: number; readonly reason: JsonValue | undefined } | undefined
  closing: TurnTailView['closing']
  firstToken: Moment | undefined
  /** over the steps that are through */
  outputTokens = 0
  milliseconds = 0
  #rate: StepRate = newRate(false)

  /** Returns whether it looks different. */
  update(event: EntryEvent): boolean {
    const { seq, firstToken } = this
    this.#place(event)
    this.#take(event)
    // A token that is not the first leaves it as it is.
    return !isToken(event) || this.seq !== seq || this.firstToken !== firstToken
  }

  #take(event: EntryEvent): void {
    if (isRow(event)) {
      this.#takeRun(rowRun(event))
      return
    }
    const data = dataOf(event)
    switch (event.type) {
      case 'assistant/chunk':
        this.#takeChunk(field(data, 'chunk'), event)
        break
      case 'step/start':
        this.#settleRate()
        this.#rate = newRate(true)
        break
      case 'llm/retry':
        // What came before it belongs to another request, and so does its usage.
        this.#rate = newRate(this.#rate.isWhole)
        break
      case 'assistant/message':
        this.#takeMessage(data, event.seq)
        break
      case 'step/end':
        this.#settleRate()
        break
      case 'turn/end':
        this.#settleRate()
        this.ended = { time: event.time, reason: field(data, 'reason') }
        break
    }
  }

  #takeRun(run: TokenRun): void {
    const rate = this.#rate
    rate.firstTime ??= run.time
    rate.lastTime = lastMoment(run).time
    this.firstToken ??= firstToken(run)
  }

  #takeChunk(chunk: JsonValue | undefined, { seq, time }: EntryEvent): void {
    const run = deltaRun(chunk, seq, time)
    if (run) this.#takeRun(run)
    else if (field(chunk, 'type') === 'usage') this.#rate.outputTokens = outputTokens(field(chunk, 'usage'))
  }

  #takeMessage(data: JsonValue, seq: number): void {
    const step = integerField(data, 'step')
    const messageId = textField(field(data, 'message'), 'id')
    this.closing = { ...(step !== undefined && { step }), seq, ...(messageId !== undefined && { messageId }) }
    this.#rate.outputTokens = outputTokens(field(data, 'usage')) ?? this.#rate.outputTokens
    this.#settleRate()
  }

  #settleRate(): void {
    const { isWhole, firstTime, lastTime, outputTokens } = this.#rate
    this.#rate = newRate(false)
    if (!isWhole || firstTime === undefined || outputTokens === undefined || lastTime <= firstTime) return
    this.outputTokens += outputTokens
    this.milliseconds += lastTime - firstTime
  }

  #place(event: EntryEvent): void {
    const data = dataOf(event)
    this.turn = integerField(data, 'turn') ?? this.turn
    const step = isToken(event) ? integerField(data, 'step') : undefined
    // The tokens of a step belong to one item, which stands where the first of them is or before.
    if (step === undefined || step !== this.step) this.seq = event.seq
    this.step = step
  }
}

function isToken(event: EntryEvent): boolean {
  return isRow(event) || event.type === 'assistant/chunk'
}

export const turnTail: Definition<TurnTail, TurnTailView> = {
  name: 'turn-tail',

  initial: () => new TurnTail(),

  match(event) {
    const id = turnId(event)
    if (id === undefined || isReplacement(event)) return null
    return { id, role: event.type === 'turn/start' ? 'start' : 'update' }
  },

  start({ state }, { event }) {
    state.update(event)
    state.startedAt = event.time
  },

  update({ state }, { event }) {
    return state.update(event)
  },

  view({ id, state, isComplete, hasOmitted }) {
    const { turn, seq, startedAt, ended, closing, firstToken, outputTokens, milliseconds } = state
    const wait = firstToken && startedAt !== undefined ? firstToken.time - startedAt : undefined
    return {
      ...{ kind: 'turn-tail', id, turn, seq, isComplete, status: ended ? 'closed' : 'open' },
      ...(ended?.reason !== undefined && { reason: ended.reason }),
      ...(startedAt !== undefined && { startedAt }),
      ...(ended && { endedAt: ended.time }),
      ...(closing && { closing }),
      // A clock that was set back tells nothing.
      ...(!hasOmitted && wait !== undefined && wait >= 0 && { timeToFirstToken: wait }),
      ...(!hasOmitted && milliseconds > 0 && { tokensPerSecond: outputTokens / (milliseconds / 1000) }),
    }
  },
}

function newRate(isWhole: boolean): StepRate {
  return { isWhole, firstTime: undefined, lastTime: 0, outputTokens: undefined }
}

function outputTokens(usage: JsonValue | undefined): number | undefined {
  const count = field(usage, 'outputTokens')
  return typeof count === 'number' && Number.isFinite(count) ? count : undefined
}
