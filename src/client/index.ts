// The client's door: reading and writing sessions over HTTP. It knows the codec and nothing else of the service.

// The client

export type { SessionHead } from './answers.ts'
export type { HistoryClientOptions, ImportOptions, Sessions } from './client.ts'
export { HistoryClient } from './client.ts'
export type { AppendLines, PageOptions, RangeOptions } from './session.ts'
export { ExportedLog, HistoryPage, HistoryReader, SessionClient } from './session.ts'

// Lines

export type { RecordLine } from './record-lines.ts'

// Errors

export type { ClientCode } from './errors.ts'
export { AnswerError, ClientError, NetworkError, ServiceError } from './errors.ts'

// Trying again

export type { Repeatability, RetryOptions } from './retry.ts'
export { mayRepeat, RETRY_DEFAULTS } from './retry.ts'

// The connection

export type { RequestBody, Timeouts, TransportOptions } from './transport.ts'
export { TIMEOUT_DEFAULTS } from './transport.ts'
