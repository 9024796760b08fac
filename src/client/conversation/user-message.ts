// What a user, or a harness in the user's place, said.

import type { JsonValue } from '../../../codec/index.ts'
import type { Definition } from './definition.ts'
import { dataOf } from './event-fields.ts'
import { isRow } from './token-run.ts'

export interface UserMessageView {
  readonly kind: 'user'
  readonly seq: number
  /** epoch ms */
  readonly time: number
  /** as it was appended: `content`, and whatever else the host gave */
  readonly message: JsonValue
}

export interface UserMessage {
  time: number
  message: JsonValue
}

export const userMessage: Definition<UserMessage, UserMessageView> = {
  name: 'user-message',

  initial: () => ({ time: 0, message: null }),

  match(event) {
    if (event.type !== 'user/message' || isRow(event) || event.surfaceOp !== 'append') return null
    return { id: `${event.seq}`, role: 'start' }
  },

  start({ state }, { event }) {
    state.time = event.time
    state.message = dataOf(event)
  },

  update: () => false,

  view({ state, firstSeq }) {
    return { kind: 'user', seq: firstSeq, ...state }
  },
}
