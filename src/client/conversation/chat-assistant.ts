// One step of the assistant as a chat shows it: its blocks as they come, and how it ended.

import type { JsonValue } from '../../../codec/index.ts'
import type { Answer, AnswerStatus, Retry } from './answer.ts'
import { keepAnswer } from './answer.ts'
import type { Block } from './blocks.ts'
import type { Definition } from './definition.ts'
import type { Moment } from './token-run.ts'

/** Figures of the tokens are absent when there were none, and when some of them were left out of the window. */
export interface ChatAssistantView {
  readonly kind: 'assistant'
  /** The same as long as there is the item, whatever comes before or behind it. Only a log that starts one step twice has it twice. */
  readonly id: string
  /** absent for a message of no step, and so is `step` */
  readonly turn?: number
  readonly step?: number
  /** of its first chunk, or of its message; before there is one, of its start, which may come before the question */
  readonly seq: number
  /** whether the window holds its start */
  readonly isComplete: boolean
  readonly status: AnswerStatus
  /** It closed without a message though something had come, or its message says so itself. */
  readonly isInterrupted: boolean
  /** whether there is something to show; a retry hides the step until something comes again */
  readonly isVisible: boolean
  readonly blocks: readonly Block[]
  /** epoch ms */
  readonly startedAt?: number
  /** the first token that carried anything, also when it was retried after that */
  readonly firstToken?: Moment
  /** when text or reasoning first held something other than white space, since the last retry */
  readonly firstVisible?: Moment
  /** how many tokens came, those before a retry included */
  readonly deltas?: number
  readonly lastDeltaSeq?: number
  /** the last one */
  readonly retry?: Retry
  readonly usage?: JsonValue
  /** why the model stopped */
  readonly finish?: JsonValue
  readonly messageId?: string
  readonly messageSeq?: number
}

export const chatAssistant: Definition<Answer, ChatAssistantView> = {
  name: 'chat-assistant',

  ...keepAnswer,

  view({ id, state, firstSeq, isComplete, hasOmitted }) {
    const { turn, step, status, isInterrupted, started, firstVisible, usage, finish, messageId, ended } = state
    const { first, last, count } = state.clock
    const blocks = state.blocks.view()
    const retry = state.retries.at(-1)
    return {
      ...{ kind: 'assistant', id, seq: state.firstSign ?? firstSeq, isComplete, status, isInterrupted },
      ...(turn !== undefined && { turn }),
      ...(step !== undefined && { step }),
      isVisible: firstVisible !== undefined || (status === 'running' ? blocks.some(isNamedCall) : blocks.length > 0),
      blocks,
      ...(started && { startedAt: started.time }),
      ...(!hasOmitted && first && { firstToken: first }),
      ...(!hasOmitted && firstVisible && { firstVisible }),
      ...(!hasOmitted && last && { deltas: count, lastDeltaSeq: last.seq }),
      ...(retry && { retry }),
      ...(usage !== undefined && { usage }),
      ...(finish !== undefined && { finish }),
      ...(messageId !== undefined && { messageId }),
      ...(status === 'settled' && ended && { messageSeq: ended.seq }),
    }
  },
}

function isNamedCall(block: Block): boolean {
  return block.type === 'tool-call' && block.name !== ''
}
