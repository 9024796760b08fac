// The codec's door: the history's values to bytes and back. No I/O, no clock; runs in a browser as it is.

// Problems

export type { ProblemCode, ProblemDocument, ProblemFacts } from './problem.ts'
export { isProblemDocument, PROBLEM_STATUS, Problem, problemDocument } from './problem.ts'

// JSON as text

export type { JsonMember, JsonObjectText, JsonValue } from './json-text.ts'
export {
  compactJson,
  elementTexts,
  exceedsUtf8,
  jsonStringBytes,
  memberSlice,
  scanObject,
  utf8Bytes,
} from './json-text.ts'

// Events

export type { Delta, DeltaKind, EventText, EventTextOptions, SessionEvent, SurfaceOp } from './event.ts'
export {
  checkSources,
  deltaEvent,
  deltaOf,
  deltaText,
  eventText,
  isReservedType,
  LIMITS,
  numberEvent,
  parseEventText,
  SURFACE_TYPES,
  validateEvent,
} from './event.ts'

// Records

export type {
  ChunkRowEvent,
  InputItem,
  OmittedEvent,
  Range,
  SessionHistoryRecord,
  TextRow,
  ToolCallRow,
} from './record.ts'
export {
  eventRecordLine,
  omittedRecordLine,
  parseInputLine,
  recordRange,
  rowFragments,
  rowKind,
  rowRecordLine,
  rowText,
  rowTimeAt,
  sliceRow,
  validateRecord,
  validateRow,
} from './record.ts'

// Packing and expanding

export { expandRecord, expandRecords, expandRowLines } from './expand.ts'
export { deltaBytes, members, Packer, packEvents, Run } from './pack.ts'

// The surface

export type { SurfaceEntry } from './surface.ts'
export { foldSurface, groupStart, isMessage, messageSlice } from './surface.ts'

// Lines

export type { ControlRecord, NumberedLine } from './ndjson.ts'
export { encodeRecords, LineDecoder, RecordDecoder } from './ndjson.ts'

// Session logs

export type { HeaderText, SessionHeader, StorageRow } from './session-log.ts'
export {
  decodeSessionLog,
  decodeStorageRecord,
  differingField,
  headerFromFields,
  isSessionId,
  parseHeaderLine,
  SESSION_ID,
  SESSION_LOG_VERSION,
  storageLine,
  storageLineBytes,
} from './session-log.ts'

// The wire

export type { ChunksMode, EndReason, ExportLayout, ParameterWords } from './protocol.ts'
export {
  AppendLineSchema,
  AppendQuery,
  AppendResult,
  CHUNKS_MODES,
  ChildPath,
  CreateSession,
  CURSOR_LENGTH,
  END_REASONS,
  EndSchema,
  EPOCH_LENGTH,
  EventRecordSchema,
  EventSchema,
  EventsQuery,
  EXPORT_LAYOUTS,
  ExportQuery,
  FollowQuery,
  HEADER_EPOCH,
  HEADER_FROM,
  HEADER_HEAD,
  HEADER_MORE,
  HEADER_TO,
  HistoryQuery,
  ImportQuery,
  ImportResult,
  LIST_SESSIONS,
  MEDIA_EVENT_STREAM,
  MEDIA_JSON,
  MEDIA_NDJSON,
  MEDIA_NDJSON_NAMES,
  MEDIA_PROBLEM,
  MEDIA_ZSTD,
  MessageLine,
  MessagesQuery,
  NewEventSchema,
  OmittedRecordSchema,
  PAGE_MESSAGES,
  PageDocument,
  ParentPath,
  ProblemSchema,
  queryInteger,
  RecordSchema,
  RowRecordSchema,
  RowSchema,
  SESSION_ID_WORDS,
  SessionDescription,
  SessionList,
  SessionListQuery,
  SessionPath,
  SubagentListQuery,
} from './protocol.ts'
