// The port: what the domain needs of a store, and no more. Every store passes the same contract suite.
//
// A store keeps three things for each life of a session: its header and counts, its records (each `line` is the NDJSON
// line exactly as it goes out, newline included), and its surface entries (the message-boundary index). All methods are
// asynchronous, so that a store may live in another process. Nothing here assumes that this process is the only one.

import type { HeaderText } from '../../codec/index.ts'

/** One life of one session. A session deleted and created again under its id is another life with another `log` and `epoch`. */
export interface SessionState {
  /** The store's key of this life. */
  readonly log: number
  readonly id: string
  /** Opaque token that names this life in this generation of the store. */
  readonly epoch: string
  /** Last committed seq, -1 when empty. */
  readonly head: number
  /** Messages appended (user and assistant). */
  readonly messages: number
  /** UTF-8 bytes of the JSON texts of all events. */
  readonly bytes: number
  /** Epoch milliseconds, from the header. */
  readonly createdAt: number
  /** Epoch milliseconds of the last change, by the server's clock. */
  readonly updatedAt: number
  /** The header's JSON text. */
  readonly header: string
  readonly parentSession: string | undefined
  readonly origin: string | undefined
}

/** What an event record holds: any event, an `assistant/chunk` event, or a packed row of chunks. */
export type RecordKind = 'event' | 'chunk' | 'row'

/** One canonical record. `line` ends with its newline; it is absent when it was not asked for, and the caller's own. */
export interface StoredRecord {
  readonly first: number
  readonly last: number
  readonly kind: RecordKind
  /** Time of the first event, epoch milliseconds. */
  readonly time: number
  readonly line: Uint8Array | undefined
}

export interface ReadOptions {
  /** Stop after the record that reaches this many bytes; at least one record is returned. */
  readonly maxBytes: number
  /** `false`: leave out the lines of `chunk` and `row` records that lie wholly inside the range, and do not read them. */
  readonly chunkLines: boolean
}

export interface ListOptions {
  readonly limit: number
  /** Continue after this session of an earlier answer (newest created first). */
  readonly after?: { readonly createdAt: number; readonly log: number } | undefined
  /** Only sessions whose header names this parent. */
  readonly parent?: string | undefined
  /** Only sessions with this origin. */
  readonly origin?: string | undefined
}

/** The bytes of an append request, decoded of any content coding, in the order they came. */
export interface AppendBody {
  readonly format: 'ndjson' | 'json'
  readonly bytes: readonly Uint8Array[]
}

export interface AppendOptions {
  /** Number events without `seq` from here. */
  readonly expectedSeq?: number | undefined
  /** Refuse unless the session's epoch is this one. */
  readonly epoch?: string | undefined
}

export interface AppendResult {
  readonly head: number
  readonly appended: number
  readonly duplicates: number
  readonly epoch: string
}

export interface ImportOptions {
  /** Refuse the file unless its last seq is this one. */
  readonly expectedHead?: number | undefined
}

export interface ImportResult {
  readonly id: string
  readonly epoch: string
  readonly head: number
  /** `false`: the session was there already, equal to the file. */
  readonly created: boolean
}

/** A stretch of the log between a message's group start and the message: `[start, end)`. */
export interface Group {
  readonly start: number
  readonly end: number
}

/** One entry of the model-visible surface; `message` is the message's JSON text as it was sent. */
export interface SurfaceMessage {
  readonly seq: number
  readonly message: Uint8Array
}

/** Where the next batch of the surface begins. */
export interface SurfaceCursor {
  readonly position: number
  readonly seq: number
}

/**
 * A hint that a log changed: it has come to `head`, or its life is over, or (`any`) some log may have changed and it is
 * not known which. Hints may be lost or repeated; they only say when it is worth while to ask.
 */
export type LogHint =
  | { readonly log: number; readonly head: number }
  | { readonly log: number; readonly deleted: true }
  | { readonly any: true }

export interface HistoryStore {
  /**
   * Create a session, or find the one of that id.
   * @returns `created: false` with the session that is there, when its header agrees with `given`
   * @throws Problem `session/exists` when it does not
   */
  create(
    header: HeaderText,
    given: ReadonlyMap<string, string>,
  ): Promise<{ readonly created: boolean; readonly session: SessionState }>
  describe(id: string): Promise<SessionState | undefined>
  /** Newest created first. Reads no record. */
  list(options: ListOptions): Promise<readonly SessionState[]>
  /** Hide the session from every reader at once; its rows are cleared later. `false` when there is none. */
  delete(id: string): Promise<boolean>
  /** One atomic, durable step: resolved after the commit, or nothing was stored. */
  append(id: string, body: AppendBody, options: AppendOptions): Promise<AppendResult>
  /** Read a session log (not compressed) and make it visible in one step, or leave nothing. */
  importLog(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult>

  /** Start of the page that ends before `end` and holds `maxMessages` messages, by index probes. */
  pageStart(log: number, end: number, maxMessages: number): Promise<number>
  /** How many messages there are from this seq on, counted up to `limit`. */
  countMessages(log: number, from: number, limit: number): Promise<number>
  /** Last committed seq of this life; undefined once it is over. */
  headOf(log: number): Promise<number | undefined>
  /** The groups of the messages with seq in `[from, to)`, cut to that range, ascending, merged. */
  messageGroups(log: number, from: number, to: number): Promise<readonly Group[]>
  /**
   * The canonical records that overlap `[from, to)`, from its beginning, a bounded batch of them.
   * The first and the last may reach beyond the range; what the open run gives is cut to it already.
   * @throws Problem `session/not-found` once the life is gone
   */
  read(log: number, from: number, to: number, options: ReadOptions): Promise<readonly StoredRecord[]>
  /** The surface as it stood at `head`, in order, a bounded batch of it; `next` is absent at the end. */
  readSurface(
    log: number,
    head: number,
    after: SurfaceCursor | undefined,
    maxBytes: number,
  ): Promise<{ readonly messages: readonly SurfaceMessage[]; readonly next: SurfaceCursor | undefined }>

  /** Hear of changes, also those of other processes, within about a second. Returns how to stop. */
  watch(listener: (hint: LogHint) => void): () => void
  /** Resolved once the store has failed in a way that only opening it anew can mend. */
  failed(): Promise<Error>
  /** A cheap question to the database. @throws Problem `store/unavailable` */
  check(): Promise<void>
  /** Finish what was accepted, then close. */
  close(): Promise<void>
}
