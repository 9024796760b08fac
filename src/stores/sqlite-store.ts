// The embedded store: reads on the calling thread through a read-only connection, everything else through the writer
// thread.

import { statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { HeaderText } from '../../codec/index.ts'
import { LIMITS, Problem } from '../../codec/index.ts'
import type {
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
  SessionState,
  StoredRecord,
  SurfaceCursor,
} from '../history/index.ts'
import { nextTurnIfLong } from '../history/index.ts'
import { isBusy, storeProblem } from './sqlite-errors.ts'
import { SqliteReader } from './sqlite-reader.ts'
import type { Connection } from './sqlite-schema.ts'
import { openReader } from './sqlite-schema.ts'
import { byteLength, gather, parts, SMALL_BYTES } from './transfer.ts'
import { WriterClient } from './writer-client.ts'

export interface SqliteStoreOptions {
  /** UTF-8 bytes of one input line, default 8 MiB. */
  readonly lineBytes?: number
  /** How long a write waits while another process holds the write lock, ms, default 5,000. */
  readonly busyTimeout?: number
}

/** A reader's rare collision with another connection is over in a moment. */
const BUSY_TRIES = 50
const BUSY_WAIT_MS = 20
/** How often to look for commits of other processes while someone watches. */
const OTHERS_MS = 500
/** Open the store in this file, made when it is not there. @throws Problem `store/unavailable` */
export async function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Promise<HistoryStore> {
  const { lineBytes = LIMITS.lineBytes, busyTimeout = 5_000 } = options
  const writer = await WriterClient.open({ path, lineBytes, busyTimeout })
  try {
    return new SqliteStore(path, writer, openReader(path))
  } catch (error) {
    await writer.close()
    throw storeProblem(error)
  }
}

class SqliteStore implements HistoryStore {
  readonly #path: string
  /** Of the file that is open: another one may come to stand at its path. */
  readonly #inode: bigint
  readonly #writer: WriterClient
  readonly #connection: Connection
  readonly #reader: SqliteReader
  #imports = 0
  #closed = false

  constructor(path: string, writer: WriterClient, connection: Connection) {
    this.#path = path
    this.#inode = statSync(path, { bigint: true }).ino
    this.#writer = writer
    this.#connection = connection
    this.#reader = new SqliteReader(connection)
  }

  create(header: HeaderText, given: ReadonlyMap<string, string>): Promise<{ created: boolean; session: SessionState }> {
    return this.#writer.call({ op: 'create', header, given: [...given] })
  }

  describe(id: string): Promise<SessionState | undefined> {
    return this.#read((reader) => reader.describe(id))
  }

  list(options: ListOptions): Promise<readonly SessionState[]> {
    return this.#read((reader) => reader.list(options))
  }

  delete(id: string): Promise<boolean> {
    return this.#writer.call({ op: 'delete', id })
  }

  async append(id: string, body: AppendBody, options: AppendOptions): Promise<AppendResult> {
    const { format } = body
    if (byteLength(body.bytes) <= SMALL_BYTES) return this.#writer.appendSmall(id, body, options)
    const bytes: Uint8Array<ArrayBuffer>[] = []
    for (const part of parts(body.bytes)) {
      // Copying a large request whole would hold this thread for tens of milliseconds.
      if (bytes.length > 0) await nextTurn()
      bytes.push(gather(part))
    }
    return this.#writer.call({ op: 'append', id, body: { format, bytes }, options }, bytes)
  }

  async importLog(source: AsyncIterable<Uint8Array>, options: ImportOptions): Promise<ImportResult> {
    const key = this.#imports++
    try {
      for await (const piece of source) {
        const bytes = gather([piece])
        await this.#writer.call({ op: 'import-chunk', key, bytes }, [bytes])
      }
      return await this.#writer.call({ op: 'import-end', key, options })
    } catch (error) {
      // After a failure of the writer's own there is nothing left to abort; asking again is harmless.
      const lastGoodLine = await this.#writer.call<number | undefined>({ op: 'import-abort', key }).catch(() => {})
      // What was wrong before it was text, a cut frame for one, knows no lines.
      const nameless =
        error instanceof Problem && error.code === 'log/invalid' && error.facts.lastGoodLine === undefined
      throw nameless && lastGoodLine !== undefined ? error.withFacts({ line: lastGoodLine + 1, lastGoodLine }) : error
    }
  }

  pageStart(log: number, end: number, maxMessages: number): Promise<number> {
    return this.#read((reader) => reader.pageStart(log, end, maxMessages))
  }

  countMessages(log: number, from: number, limit: number): Promise<number> {
    return this.#read((reader) => reader.countMessages(log, from, limit))
  }

  headOf(log: number): Promise<number | undefined> {
    return this.#read((reader) => reader.headOf(log))
  }

  messageGroups(log: number, from: number, to: number): Promise<readonly Group[]> {
    return this.#read((reader) => reader.messageGroups(log, from, to))
  }

  read(log: number, from: number, to: number, options: ReadOptions): Promise<readonly StoredRecord[]> {
    return this.#read((reader) => reader.read(log, from, to, options))
  }

  readSurface(log: number, head: number, after: SurfaceCursor | undefined, maxBytes: number) {
    return this.#read((reader) => reader.readSurface(log, head, after, maxBytes))
  }

  watch(listener: (hint: LogHint) => void): () => void {
    const unwatch = this.#writer.watch(listener)
    let version: number | undefined
    // This process's own commits are heard of at once; those of others only when the writer is asked. The first answer is
    // news in any case: it cannot tell what was committed since the watch began.
    const timer = setInterval(() => {
      this.#writer.call<number>({ op: 'others' }).then(
        (now) => {
          if (now !== version) listener({ any: true })
          version = now
        },
        // The next look may succeed.
        () => {},
      )
    }, OTHERS_MS).unref()
    return () => {
      clearInterval(timer)
      unwatch()
    }
  }

  failed(): Promise<Error> {
    return this.#writer.failed
  }

  async check(): Promise<void> {
    this.#writer.check()
    await this.#checkFile()
    await this.#read((reader) => reader.check())
  }

  /** The system keeps a file that was removed for whoever has it open: everything would go on, and be gone at the end. */
  async #checkFile(): Promise<void> {
    const there = await stat(this.#path, { bigint: true }).catch(() => undefined)
    if (there?.ino === this.#inode) return
    throw new Problem('store/unavailable', 'the database file was removed or replaced while it was open')
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    // The last connection to close folds the WAL into the file and removes it; a reader's could not.
    this.#connection.db.close()
    await this.#writer.close()
  }

  async #read<T>(work: (reader: SqliteReader) => T | Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      await nextTurnIfLong()
      if (this.#closed) throw new Problem('store/unavailable', 'the store is closed', { retryAfter: 1 })
      try {
        return await work(this.#reader)
      } catch (error) {
        if (!isBusy(error) || tries === BUSY_TRIES) throw storeProblem(error)
      }
      await delay(BUSY_WAIT_MS)
    }
  }
}
