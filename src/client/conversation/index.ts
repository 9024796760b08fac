// The conversation's door: from the changes of a window to what a user interface shows.

import { chatAssistant } from './chat-assistant.ts'
import type { ItemOf } from './definition.ts'
import { toolCall } from './tool-call.ts'
import { trajectoryAssistant } from './trajectory-assistant.ts'
import { turnTail } from './turn-tail.ts'
import { userMessage } from './user-message.ts'

/** The views that come with the client. */
export const CONVERSATION = {
  /** what was said, as a chat shows it */
  chat: [userMessage, chatAssistant, toolCall, turnTail],
  /** what was done: each request to a model, each call of a tool */
  trajectory: [trajectoryAssistant, toolCall],
} as const

/** An item of the view `chat`; its `kind` tells which. */
export type ChatItem = ItemOf<typeof CONVERSATION.chat>
/** An item of the view `trajectory`; its `kind` tells which. */
export type TrajectoryItem = ItemOf<typeof CONVERSATION.trajectory>

export type { JournalChange } from '../journal-window.ts'
export type { AnswerStatus, Retry } from './answer.ts'
export type { ViewDefinitions } from './assembler.ts'
export { ConversationAssembler } from './assembler.ts'
export type { Block } from './blocks.ts'
export type { ChatAssistantView } from './chat-assistant.ts'
export type { ConversationOptions } from './conversation.ts'
export { Conversation } from './conversation.ts'
export type {
  AnyDefinition,
  Context,
  Definition,
  EntryEvent,
  ItemOf,
  ItemView,
  Match,
  StartMatch,
  UpdateMatch,
} from './definition.ts'
export type { Moment } from './token-run.ts'
export type { ToolCallView } from './tool-call.ts'
export type { TrajectoryAssistantView } from './trajectory-assistant.ts'
export type { TurnTailView } from './turn-tail.ts'
export type { UserMessageView } from './user-message.ts'
export { chatAssistant, toolCall, trajectoryAssistant, turnTail, userMessage }
