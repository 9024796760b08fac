// The domain's door.

// What callers do

export type { FollowSink } from './follower.ts'
export { Follower } from './follower.ts'
export type {
  FollowQuery,
  HistoryOptions,
  LogStream,
  PageQuery,
  RangeQuery,
  SessionPage,
  SessionTarget,
} from './history.ts'
export { History } from './history.ts'
export type { ExportLayout } from './log-export.ts'
export type { Allocate, PageMedia, PagePiece } from './page.ts'
export { Page } from './page.ts'
export { ZstdFrames } from './zstd-frames.ts'

// What a store gives

export type {
  AppendBody,
  AppendOptions,
  AppendResult,
  Group,
  HistoryStore,
  ImportOptions,
  ImportResult,
  ListOptions,
  LogHint,
  ReadOptions,
  RecordKind,
  SessionState,
  StoredRecord,
  SurfaceCursor,
  SurfaceMessage,
} from './store.ts'

// What a store uses: the rules of the log, and fairness

export type { NumberedItem } from './append-input.ts'
export { AppendInput } from './append-input.ts'
export { nextTurnIfLong } from './event-loop.ts'
export type { LogState, LogStorage, NewRecord, NewSurfaceEntry, StoredEvent } from './log-writer.ts'
export { LogWriter } from './log-writer.ts'
