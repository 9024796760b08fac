// The domain's door.

export type { NumberedItem } from './append-input.ts'
// What a store uses: the rules of the log
export { AppendInput } from './append-input.ts'
export type { LogStream, PageQuery, RangeQuery, SessionPage, SessionTarget } from './history.ts'
// What callers do
export { History } from './history.ts'
export type { ExportLayout } from './log-export.ts'
export type { LogState, LogStorage, NewRecord, NewSurfaceEntry, StoredEvent } from './log-writer.ts'
export { LogWriter } from './log-writer.ts'
export type { Allocate, PageMedia } from './page.ts'
export { Page } from './page.ts'
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
export { ZstdFrames } from './zstd-frames.ts'
