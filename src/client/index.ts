// The client's door: reading, following and writing sessions over HTTP. It knows the codec and nothing else of the service.

// The client

export type { SessionHead } from './answers.ts'
export type { HistoryClientOptions } from './client.ts'
export { HistoryClient } from './client.ts'
export type { ImportOptions, ListOptions, NewSession, Sessions } from './sessions.ts'

// A session

export type { AppendItem, AppendLines, NewEvent } from './append-lines.ts'
export type { AppendOptions } from './appender.ts'
export { ExportedLog } from './exported-log.ts'
export type { PageOptions, RangeOptions } from './history-page.ts'
export { HistoryPage } from './history-page.ts'
export type { RecordLine } from './record-lines.ts'
export type { ExportOptions } from './session.ts'
export { HistoryReader, SessionClient } from './session.ts'

// Following

export type { FollowOptions, FollowStatus } from './followed-log.ts'
export { FollowedLog } from './followed-log.ts'
export type { JournalOptions } from './journal.ts'
export { Journal } from './journal.ts'
export type { JournalChange, JournalStatus, ReplaceReason } from './journal-window.ts'

// Conversation

export type {
  AnswerStatus,
  AnyDefinition,
  Block,
  ChatAssistantView,
  ChatItem,
  Context,
  ConversationOptions,
  Definition,
  EntryEvent,
  ItemOf,
  ItemView,
  Match,
  Moment,
  Retry,
  StartMatch,
  ToolCallView,
  TrajectoryAssistantView,
  TrajectoryItem,
  TurnTailView,
  UpdateMatch,
  UserMessageView,
  ViewDefinitions,
} from './conversation/index.ts'
export {
  CONVERSATION,
  Conversation,
  ConversationAssembler,
  chatAssistant,
  toolCall,
  trajectoryAssistant,
  turnTail,
  userMessage,
} from './conversation/index.ts'

// Errors

export type { ClientCode } from './errors.ts'
export {
  AnswerError,
  AppendError,
  ClientError,
  ConversationError,
  InputError,
  JournalError,
  NetworkError,
  ServiceError,
  StreamEndedError,
  TokenError,
} from './errors.ts'

// Trying again

export type { ReconnectOptions, Repeatability, RetryOptions } from './retry.ts'
export { mayRepeat, RECONNECT_DEFAULTS, RETRY_DEFAULTS } from './retry.ts'

// The connection

export type { RequestBody, Timeouts, TransportOptions } from './transport.ts'
export { TIMEOUT_DEFAULTS } from './transport.ts'
