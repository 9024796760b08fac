// What a user, or a harness in the user's place, said.

import type { JsonValue } from '../../../codec/index.ts'
import type { Definition } from './definition.ts'
import { dataOf, field, textField } from './event-fields.ts'
import { isRow } from './token-run.ts'

export interface UserMessageView {
  readonly kind: 'user'
  /** the same as long as there is the item */
  readonly id: string
  readonly seq: number
  /** epoch ms */
  readonly time: number
  /** the texts of its content, one after the other */
  readonly text: string
  /** who said it, when the host tells: `{ kind: 'user' }`, or a part of the harness in the user's place */
  readonly source?: JsonValue
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

  view({ id, state, firstSeq }) {
    const { time, message } = state
    const source = field(message, 'source')
    return {
      kind: 'user',
      id,
      seq: firstSeq,
      time,
      text: textOf(message),
      ...(source !== undefined && { source }),
      message,
    }
  },
}

function textOf(message: JsonValue): string {
  const content = field(message, 'content')
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part) => textField(part, 'text') ?? '').join('') : ''
}
