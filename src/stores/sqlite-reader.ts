// Reading from SQLite. Each method is one short read transaction that ends before it returns: no statement and no
// snapshot is held while a socket waits. Everything is found by key.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { Problem } from '../../codec/index.ts'
import type {
  Group,
  ListOptions,
  ReadOptions,
  RecordKind,
  SessionState,
  StoredRecord,
  SurfaceCursor,
  SurfaceMessage,
} from '../history/index.ts'
import { OpenRuns, runOfPieces } from './open-run.ts'
import type { Connection } from './sqlite-schema.ts'
import { epochOf, VISIBLE } from './sqlite-schema.ts'

/** Rows that one read looks at when it takes no lines, or few: about a millisecond. */
const BATCH_ROWS = 2_000

/** Members of an open run that are read without the rest of it. */
const FEW_MEMBERS = 64

const KINDS: readonly RecordKind[] = ['event', 'chunk', 'row']

type Row = readonly (number | string | Uint8Array | null)[]

export class SqliteReader {
  readonly #generation: string
  readonly #openRuns = new OpenRuns()
  readonly #statements

  constructor({ db, generation }: Connection) {
    this.#generation = generation
    this.#statements = prepareReads(db)
  }

  describe(id: string): SessionState | undefined {
    const row = this.#statements.sessionById.get(id) as Row | undefined
    return row && this.#session(row)
  }

  list({ limit, after, parent, origin }: ListOptions): SessionState[] {
    const { createdAt, log } = after ?? { createdAt: Number.MAX_SAFE_INTEGER, log: Number.MAX_SAFE_INTEGER }
    const rows =
      parent === undefined
        ? this.#statements.newestSessions.all(createdAt, log, origin ?? null, limit)
        : this.#statements.sessionsOfParent.all(parent, createdAt, log, origin ?? null, limit)
    return (rows as unknown as Row[]).map((row) => this.#session(row))
  }

  pageStart(log: number, end: number, maxMessages: number): number {
    const [count, start] = this.#statements.pageStart.get(log, end, maxMessages) as unknown as [number, number | null]
    return count < maxMessages || start === null ? 0 : start
  }

  countMessages(log: number, from: number, limit: number): number {
    return (this.#statements.countMessages.get(log, from, limit) as unknown as [number])[0]
  }

  headOf(log: number): number | undefined {
    const row = this.#statements.headOf.get(log) as unknown as [number] | undefined
    return row?.[0]
  }

  async messageGroups(log: number, from: number, to: number): Promise<Group[]> {
    const groups: { start: number; end: number }[] = []
    for (let at = from; ; await setImmediate()) {
      const rows = this.#statements.messageGroups.all(log, at, to, BATCH_ROWS) as unknown as [number, number][]
      for (const [seq, groupStart] of rows) {
        let start = Math.max(groupStart, from)
        // A later message may reach back over the groups of earlier ones.
        while (groups.length > 0 && (groups.at(-1) as Group).end >= start) {
          start = Math.min(start, (groups.pop() as Group).start)
        }
        if (start < seq) groups.push({ start, end: seq })
      }
      if (rows.length < BATCH_ROWS) return groups
      at = (rows.at(-1) as [number, number])[0] + 1
    }
  }

  /** @param state what the life must still be: an import reads its own, which is hidden */
  read(
    log: number,
    from: number,
    to: number,
    { maxBytes, chunkLines }: ReadOptions,
    state: number = VISIBLE,
  ): StoredRecord[] {
    return this.#snapshot(() => {
      const openFrom = this.#openFrom(log, state)
      const records: StoredRecord[] = []
      const settledEnd = Math.min(to, openFrom)
      if (from < settledEnd) {
        let bytes = 0
        const statement = chunkLines ? this.#statements.records : this.#statements.recordsWithoutChunks
        const range = chunkLines ? [log, from, settledEnd] : [log, from, settledEnd, to]
        // The one event that was just committed is what is read most often.
        const rows = settledEnd - from === 1 ? statement.all(...range) : statement.iterate(...range)
        for (const row of rows) {
          const [first, last, kind, time, line] = row as unknown as [number, number, number, number, Uint8Array | null]
          records.push({ first, last, kind: KINDS[kind] as RecordKind, time, line: line ?? undefined })
          bytes += line?.length ?? 0
          if (bytes >= maxBytes || records.length >= BATCH_ROWS) return records
        }
      }
      if (to > openFrom) records.push(...this.#openRun(log, openFrom, Math.max(from, openFrom), to))
      return records
    })
  }

  readSurface(
    log: number,
    head: number,
    after: SurfaceCursor | undefined,
    maxBytes: number,
  ): { messages: SurfaceMessage[]; next: SurfaceCursor | undefined } {
    return this.#snapshot(() => {
      this.#openFrom(log, VISIBLE)
      const messages: SurfaceMessage[] = []
      let bytes = 0
      let rows = 0
      const { position: afterPosition, seq: afterSeq } = after ?? { position: -1, seq: -1 }
      for (const row of this.#statements.surface.iterate(log, head, afterPosition, afterSeq)) {
        const [position, seq, message] = row as unknown as [number, number, Uint8Array | null]
        if (message) messages.push({ seq, message })
        bytes += message?.length ?? 0
        if (bytes >= maxBytes || ++rows >= BATCH_ROWS) return { messages, next: { position, seq } }
      }
      return { messages, next: undefined }
    })
  }

  check(): void {
    this.#statements.check.get()
  }

  /** The part of the open run in `[from, to)`, packed as if the run ended there. */
  #openRun(log: number, openFrom: number, from: number, to: number): StoredRecord[] {
    const piecesFrom = (seq: number) => (this.#statements.pieces.all(log, seq, to) as unknown as [string][]).flat()
    // The end of a run, as one who follows it asks for, is less work than the whole.
    const run =
      to - from <= FEW_MEMBERS ? runOfPieces(piecesFrom(from)) : this.#openRuns.upTo(log, openFrom, to, piecesFrom)
    if (!run) return []
    const end = Math.min(to, run.nextSeq)
    const lines = run.lines(from, end)
    const packed = lines.length === 1 && end - from > 1
    return lines.map((line, index) => ({
      first: from + index,
      last: packed ? end - 1 : from + index,
      kind: packed ? 'row' : 'chunk',
      time: run.timeAt(from + index),
      line: Buffer.from(`${line}\n`),
    }))
  }

  /** First seq of the open run, or beyond every seq. @throws Problem `session/not-found` when the life is over */
  #openFrom(log: number, state: number): number {
    const row = this.#statements.openFrom.get(log) as unknown as [number, number | null] | undefined
    if (!row || row[0] !== state) throw new Problem('session/not-found', 'the session was deleted')
    return row[1] ?? Number.MAX_SAFE_INTEGER
  }

  #snapshot<T>(read: () => T): T {
    this.#statements.begin.run()
    try {
      return read()
    } finally {
      this.#statements.commit.run()
    }
  }

  #session(row: Row): SessionState {
    const [log, id, life, header, parent, origin, createdAt, updatedAt, head, messages, bytes] = row as unknown as [
      number,
      string,
      string,
      string,
      string | null,
      string | null,
      number,
      number,
      number,
      number,
      number,
    ]
    return {
      log,
      id,
      epoch: epochOf(life, this.#generation),
      head,
      messages,
      bytes,
      createdAt,
      updatedAt,
      header,
      parentSession: parent ?? undefined,
      origin: origin ?? undefined,
    }
  }
}

const SESSION = 'log, id, life, header, parent, origin, created_at, updated_at, head, messages, bytes'
const RECORD = 'first_seq, last_seq, kind, time'
// The record that holds a seq is the last one that begins at or before it.
const FROM_RECORD_OF = `first_seq >= (SELECT max(first_seq) FROM records WHERE log = ?1 AND first_seq <= ?2)`

export function prepareReads(db: DatabaseSync) {
  const arrays = (sql: string): StatementSync => {
    const statement = db.prepare(sql)
    statement.setReturnArrays(true)
    return statement
  }
  return {
    begin: db.prepare('BEGIN'),
    commit: db.prepare('COMMIT'),
    check: db.prepare('SELECT 1 FROM sessions LIMIT 1'),
    sessionById: arrays(`SELECT ${SESSION} FROM sessions WHERE id = ? AND state = 1`),
    newestSessions: arrays(
      `SELECT ${SESSION} FROM sessions WHERE state = 1 AND (created_at, log) < (?1, ?2)
       AND (?3 IS NULL OR origin = ?3) ORDER BY created_at DESC, log DESC LIMIT ?4`,
    ),
    sessionsOfParent: arrays(
      `SELECT ${SESSION} FROM sessions WHERE state = 1 AND parent = ?1 AND (created_at, log) < (?2, ?3)
       AND (?4 IS NULL OR origin = ?4) ORDER BY created_at DESC, log DESC LIMIT ?5`,
    ),
    openFrom: arrays('SELECT state, open_from FROM sessions WHERE log = ?'),
    pageStart: arrays(
      `SELECT count(*), min(page_start) FROM (SELECT page_start FROM surface INDEXED BY surface_messages
       WHERE log = ? AND seq < ? AND operation = 0 AND kind < 2 ORDER BY seq DESC LIMIT ?)`,
    ),
    countMessages: arrays(
      `SELECT count(*) FROM (SELECT 1 FROM surface INDEXED BY surface_messages
       WHERE log = ? AND seq >= ? AND operation = 0 AND kind < 2 LIMIT ?)`,
    ),
    headOf: arrays('SELECT head FROM sessions WHERE log = ? AND state = 1'),
    messageGroups: arrays(
      `SELECT seq, group_start FROM surface INDEXED BY surface_messages
       WHERE log = ? AND seq >= ? AND seq < ? AND operation = 0 AND kind < 2 ORDER BY seq LIMIT ?`,
    ),
    records: arrays(
      `SELECT ${RECORD}, line FROM records WHERE log = ?1 AND ${FROM_RECORD_OF} AND first_seq < ?3 ORDER BY first_seq`,
    ),
    recordsWithoutChunks: arrays(
      `SELECT ${RECORD}, CASE WHEN kind = 0 OR first_seq < ?2 OR last_seq >= ?4 THEN line END
       FROM records WHERE log = ?1 AND ${FROM_RECORD_OF} AND first_seq < ?3 ORDER BY first_seq`,
    ),
    pieces: arrays(
      `SELECT CAST(line AS TEXT) FROM records WHERE log = ?1 AND ${FROM_RECORD_OF} AND first_seq < ?3 ORDER BY first_seq`,
    ),
    surface: arrays(
      `SELECT s.position, s.seq,
         CASE WHEN s.seq <= ?2 AND (s.replaced_by IS NULL OR s.replaced_by > ?2) AND s.message_from IS NOT NULL
         THEN (SELECT substr(line, s.message_from + 1, s.message_to - s.message_from) FROM records
               WHERE log = ?1 AND first_seq = s.seq) END
       FROM surface AS s WHERE s.log = ?1 AND (s.position, s.seq) > (?3, ?4) ORDER BY s.position, s.seq`,
    ),
  }
}
