// One step of the assistant as a trajectory shows it: the life of its request to the model.

import type { JsonValue } from '../../../codec/index.ts'
import type { Answer, Retry } from './answer.ts'
import { keepAnswer } from './answer.ts'
import type { Block } from './blocks.ts'
import type { Definition } from './definition.ts'
import type { Moment } from './token-run.ts'

/** Figures of the tokens are absent when there were none, and when some of them were left out of the window. */
export interface TrajectoryAssistantView {
  readonly kind: 'request'
  /** The same as long as there is the item. Only a log that starts one step twice has it twice. */
  readonly id: string
  /** absent for a message of no step, and so is `step` */
  readonly turn?: number
  readonly step?: number
  /** of its start; while that is not in the window, of its first event that is */
  readonly seq: number
  /** whether the window holds its start */
  readonly isComplete: boolean
  /** `failed`: it ended without a message */
  readonly status: 'running' | 'settled' | 'failed'
  /** its message says that it was cut short */
  readonly isInterrupted: boolean
  /** each request that failed and was sent again */
  readonly retries: readonly Retry[]
  readonly started?: Moment
  readonly firstToken?: Moment
  readonly lastToken?: Moment
  readonly deltas?: number
  /** the message that settled it, or what ended it without one */
  readonly ended?: Moment
  readonly usage?: JsonValue
  /** why the model stopped */
  readonly finish?: JsonValue
  /** how its turn ended, when that is what ended it */
  readonly turnReason?: JsonValue
  readonly messageId?: string
  /** what had come of an answer that is not settled */
  readonly partial?: readonly Block[]
}

export const trajectoryAssistant: Definition<Answer, TrajectoryAssistantView> = {
  name: 'trajectory-assistant',

  ...keepAnswer,

  view({ id, state, firstSeq, isComplete, hasOmitted }) {
    const { turn, step, status, isInterrupted, retries, started, ended, usage, finish, turnReason, messageId } = state
    const { first, last, count } = state.clock
    return {
      ...{ kind: 'request', id, seq: firstSeq, isComplete },
      ...(turn !== undefined && { turn }),
      ...(step !== undefined && { step }),
      status: status === 'closed' ? 'failed' : status,
      isInterrupted: status === 'settled' && isInterrupted,
      retries: [...retries],
      ...(started && { started }),
      ...(!hasOmitted && first && { firstToken: first }),
      ...(!hasOmitted && last && { lastToken: last, deltas: count }),
      ...(ended && { ended }),
      ...(usage !== undefined && { usage }),
      ...(finish !== undefined && { finish }),
      ...(turnReason !== undefined && { turnReason }),
      ...(messageId !== undefined && { messageId }),
      ...(status !== 'settled' && { partial: state.blocks.view() }),
    }
  },
}
