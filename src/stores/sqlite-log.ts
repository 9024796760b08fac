// One log on the writing connection: the reads and writes that the rules of the log ask for, each one statement.

import type { DatabaseSync } from 'node:sqlite'
import { deltaText, memberSlice, members, validateRow } from '../../codec/index.ts'
import type { LogState, LogStorage, NewRecord, NewSurfaceEntry, RecordKind, StoredEvent } from '../history/index.ts'
import { runOfPieces } from './open-run.ts'
import { KIND_CHUNK, KIND_EVENT, KIND_ROW, SURFACE_KINDS } from './sqlite-schema.ts'

const KIND_NUMBERS: Record<RecordKind, number> = { event: KIND_EVENT, chunk: KIND_CHUNK, row: KIND_ROW }

const decoder = new TextDecoder()

export type LogStatements = ReturnType<typeof prepareLogStatements>

export function prepareLogStatements(db: DatabaseSync) {
  return {
    state: db.prepare('SELECT head, messages, bytes, open_from FROM sessions WHERE log = ?'),
    saveState: db.prepare(
      'UPDATE sessions SET head = ?, messages = ?, bytes = ?, open_from = ?, updated_at = ? WHERE log = ?',
    ),
    pieces: db.prepare(
      'SELECT CAST(line AS TEXT) AS line FROM records WHERE log = ? AND first_seq >= ? ORDER BY first_seq',
    ),
    insertRecord: db.prepare('INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)'),
    deleteRecords: db.prepare('DELETE FROM records WHERE log = ? AND first_seq >= ?'),
    recordAt: db.prepare(
      'SELECT first_seq, last_seq, kind, time, line FROM records WHERE log = ? AND first_seq <= ? ORDER BY first_seq DESC LIMIT 1',
    ),
    insertSurface: db.prepare('INSERT INTO surface VALUES (?, ?, ?, ?, ?, ?, ?, NULL, ?, ?)'),
    surfaceEntry: db.prepare('SELECT position, replaced_by FROM surface WHERE log = ? AND seq = ?'),
    hideSurface: db.prepare(
      `UPDATE surface INDEXED BY surface_live SET replaced_by = ?
       WHERE log = ? AND position BETWEEN ? AND ? AND replaced_by IS NULL`,
    ),
    messageBefore: db.prepare(
      `SELECT seq, page_start FROM surface INDEXED BY surface_messages
       WHERE log = ? AND seq < ? AND operation = 0 AND kind < 2 ORDER BY seq DESC LIMIT 1`,
    ),
  }
}

export class SqliteLog implements LogStorage {
  readonly #log: number
  readonly #statements: LogStatements

  constructor(log: number, statements: LogStatements) {
    this.#log = log
    this.#statements = statements
  }

  load(): LogState {
    const row = this.#statements.state.get(this.#log)
    if (!row) throw new Error(`log ${this.#log} is gone`)
    const pieces = row.open_from === null ? [] : this.#statements.pieces.all(this.#log, row.open_from as number)
    const run = runOfPieces(pieces.map((piece) => piece.line as string))
    return {
      head: row.head as number,
      messages: row.messages as number,
      bytes: row.bytes as number,
      run,
      pieces: pieces.length,
      unstored: run?.nextSeq ?? 0,
    }
  }

  save({ head, messages, bytes, run }: LogState, now: number): void {
    this.#statements.saveState.run(head, messages, bytes, run?.firstSeq ?? null, now, this.#log)
  }

  insertRecord({ first, last, kind, time, line }: NewRecord): void {
    this.#statements.insertRecord.run(this.#log, first, last, KIND_NUMBERS[kind], time, Buffer.from(`${line}\n`))
  }

  deleteRecords(from: number): void {
    this.#statements.deleteRecords.run(this.#log, from)
  }

  insertSurface({ seq, type, message, groupStart, pageStart, position, slice }: NewSurfaceEntry): void {
    const kind = SURFACE_KINDS.indexOf(type)
    const operation = message || position === seq ? 0 : 1
    this.#statements.insertSurface.run(
      this.#log,
      seq,
      kind,
      operation,
      groupStart,
      pageStart,
      position,
      slice?.start ?? null,
      slice?.end ?? null,
    )
  }

  surfaceEntry(seq: number): { position: number; live: boolean } | undefined {
    const row = this.#statements.surfaceEntry.get(this.#log, seq)
    return row && { position: row.position as number, live: row.replaced_by === null }
  }

  hideSurface(fromPosition: number, toPosition: number, bySeq: number): void {
    this.#statements.hideSurface.run(bySeq, this.#log, fromPosition, toPosition)
  }

  messageBefore(seq: number): { seq: number; pageStart: number } | undefined {
    const row = this.#statements.messageBefore.get(this.#log, seq)
    return row && { seq: row.seq as number, pageStart: row.page_start as number }
  }

  *storedEvents(from: number): Generator<StoredEvent> {
    for (let at = from; ; ) {
      const row = this.#statements.recordAt.get(this.#log, at)
      if (!row || (row.last_seq as number) < at) return
      const line = decoder.decode(row.line as Uint8Array)
      const slice = memberSlice(line, 'event')
      if (!slice) throw new Error(`record ${row.first_seq} of log ${this.#log} holds no event`)
      const text = line.slice(slice.start, slice.end)
      if (row.kind === KIND_ROW) {
        for (const { delta, seq, time } of members(validateRow(JSON.parse(text)))) {
          if (seq >= at) yield { seq, time, text: deltaText(delta, seq, time) }
        }
      } else {
        yield { seq: row.first_seq as number, time: row.time as number, text }
      }
      at = (row.last_seq as number) + 1
    }
  }
}
