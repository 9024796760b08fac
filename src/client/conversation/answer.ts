// The life of one model answer, from the start of its step to the message that settles it. What the definitions of a
// step show is read from it.

import type { JsonValue } from '../../../codec/index.ts'
import { Blocks } from './blocks.ts'
import type { Context, EntryEvent, Match, StartMatch, UpdateMatch } from './definition.ts'
import { dataOf, field, integerField, textField } from './event-fields.ts'
import { isReplacement, matchStep, matchTurnEnd, takePlace } from './matches.ts'
import { TokenClock } from './token-clock.ts'
import type { Moment, TokenRun } from './token-run.ts'
import { deltaRun, firstMoment, isRow, isVisible, rowRun } from './token-run.ts'

/** A request that failed and was sent again. */
export interface Retry extends Moment {
  readonly retry?: number
  readonly maxRetries?: number
  readonly delayMs?: number
  readonly failure?: JsonValue
}

/** `settled` by a message; `closed` without one, by the end of the step or of the turn */
export type AnswerStatus = 'running' | 'settled' | 'closed'

export class Answer {
  turn: number | undefined
  step: number | undefined
  /** seq of the first thing that came of it, a token or the message */
  firstSign: number | undefined
  /** of the start, when the window holds it */
  started: Moment | undefined
  status: AnswerStatus = 'running'
  /** It closed without a message though something had come, or its message says so itself. */
  isInterrupted = false
  readonly blocks = new Blocks()
  readonly clock = new TokenClock()
  firstVisible: Moment | undefined
  readonly retries: Retry[] = []
  usage: JsonValue | undefined
  /** as the `finish` chunk has it */
  finish: JsonValue | undefined
  /** of the message, or of what closed it */
  ended: Moment | undefined
  messageId: string | undefined
  /** as the end of the turn has it, when that is what closed it */
  turnReason: JsonValue | undefined
  #hasEvidence = false

  start(event: EntryEvent): void {
    // A message of no step is the whole of its answer.
    if (event.type === 'assistant/message') {
      this.#settle(event)
      return
    }
    this.#place(event)
    this.started = momentOf(event)
  }

  /** Takes what comes after the start. Returns whether anything may look different. */
  update(event: EntryEvent): boolean {
    if (isRow(event)) return this.#takeRun(event, rowRun(event))
    switch (event.type) {
      case 'assistant/chunk':
        return this.#takeChunk(event, field(dataOf(event), 'chunk'))
      case 'llm/retry':
        return this.#takeRetry(event)
      case 'assistant/message':
        return this.#settle(event)
      default:
        return this.#close(event)
    }
  }

  #takeRun(event: EntryEvent, run: TokenRun): boolean {
    if (this.status !== 'running') return false
    this.#place(event)
    this.#hasEvidence = true
    this.firstSign ??= event.seq
    this.blocks.add(run)
    this.clock.add(run)
    if (run.kind !== 'tool-call') this.firstVisible ??= firstMoment(run, isVisible)
    return true
  }

  #takeChunk(event: EntryEvent, chunk: JsonValue | undefined): boolean {
    if (this.status !== 'running' || chunk === undefined) return false
    const run = deltaRun(chunk, event.seq, event.time)
    if (run) return this.#takeRun(event, run)
    this.#place(event)
    this.#hasEvidence = true
    const isFirst = this.firstSign === undefined
    this.firstSign ??= event.seq
    switch (field(chunk, 'type')) {
      case 'block-start':
        this.blocks.open(chunk)
        return true
      case 'block-end':
        this.#seen(this.blocks.close(chunk), event)
        return true
      case 'usage':
        this.usage = field(chunk, 'usage')
        return true
      case 'finish':
        this.finish = field(chunk, 'reason')
        return true
      default:
        return isFirst
    }
  }

  #takeRetry(event: EntryEvent): boolean {
    if (this.status !== 'running') return false
    this.#place(event)
    this.#hasEvidence = true
    this.blocks.clear()
    this.firstVisible = undefined
    this.usage = undefined
    this.finish = undefined
    this.retries.push(retryOf(event))
    return true
  }

  #settle(event: EntryEvent): boolean {
    this.#place(event)
    this.firstSign ??= event.seq
    const data = dataOf(event)
    const message = field(data, 'message')
    const content = field(message, 'content')
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    if (Array.isArray(blocks)) this.blocks.settle(blocks)
    for (const block of this.blocks.view()) {
      if (block.type === 'text' || block.type === 'reasoning') this.#seen(block.text, event)
    }
    this.status = 'settled'
    this.isInterrupted = field(data, 'interrupted') === true
    this.usage = field(data, 'usage') ?? this.usage
    this.messageId = textField(message, 'id')
    this.ended = momentOf(event)
    return true
  }

  /** By the end of its step or of its turn. */
  #close(event: EntryEvent): boolean {
    if (this.status !== 'running') return false
    this.status = 'closed'
    this.isInterrupted = this.#hasEvidence
    this.ended = momentOf(event)
    if (event.type === 'turn/end') this.turnReason = field(dataOf(event), 'reason')
    else this.#place(event)
    return true
  }

  #seen(text: string | undefined, event: EntryEvent): void {
    if (text !== undefined && isVisible(text)) this.firstVisible ??= momentOf(event)
  }

  #place(event: EntryEvent): void {
    takePlace(this, dataOf(event))
  }
}

/** How the definitions of a step keep it; they differ in what they show. */
export const keepAnswer = {
  initial: () => new Answer(),

  match: matchAnswer,

  start({ state }: Context<Answer>, { event }: StartMatch): void {
    state.start(event)
  },

  update({ state }: Context<Answer>, { event }: UpdateMatch): boolean {
    return state.update(event)
  },

  isOver({ state }: Context<Answer>): boolean {
    return state.status !== 'running'
  },
}

/** What an entry is to the answer of a step. The end of a turn closes all that are still running in it. */
function matchAnswer(event: EntryEvent): Match | null {
  switch (event.type) {
    case 'turn/end':
      return matchTurnEnd(event)
    case 'assistant/message':
      if (isRow(event) || isReplacement(event)) return null
      return (
        matchStep(event, 'update') ?? (event.surfaceOp === 'append' ? { id: `@${event.seq}`, role: 'start' } : null)
      )
    case 'step/start':
      return matchStep(event, 'start')
    case 'step/end':
    case 'llm/retry':
    case 'assistant/chunk':
      return matchStep(event, 'update')
    default:
      return isRow(event) ? matchStep(event, 'update') : null
  }
}

function momentOf({ seq, time }: EntryEvent): Moment {
  return { seq, time }
}

function retryOf(event: EntryEvent): Retry {
  const data = dataOf(event)
  const retry = integerField(data, 'retry')
  const maxRetries = integerField(data, 'maxRetries')
  const delayMs = integerField(data, 'delayMs')
  const failure = field(data, 'failure')
  return {
    ...momentOf(event),
    ...(retry !== undefined && { retry }),
    ...(maxRetries !== undefined && { maxRetries }),
    ...(delayMs !== undefined && { delayMs }),
    ...(failure !== undefined && { failure }),
  }
}
