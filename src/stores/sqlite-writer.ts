// The writer thread: the one place that writes, commits, checkpoints and waits for locks.
//
// Requests are read in slices and then applied, many in one transaction (group commit): while one commit is on its way to
// the disk the next requests gather. Each request has a savepoint of its own, so a refused one takes nothing of the
// others with it. A turn of the loop: read, commit, answer, clear a little of what was deleted.

import type { MessagePort } from 'node:worker_threads'
import { parentPort, workerData } from 'node:worker_threads'
import { Problem } from '../../codec/index.ts'
import type { AppendBody, AppendOptions, AppendResult, LogHint, LogState, SessionState } from '../history/index.ts'
import { AppendInput, LogWriter } from '../history/index.ts'
import { LastUsed } from './last-used.ts'
import { storeProblem } from './sqlite-errors.ts'
import { AGAIN, LogImport } from './sqlite-import.ts'
import { prepareLogStatements, SqliteLog } from './sqlite-log.ts'
import type { Connection } from './sqlite-schema.ts'
import { DELETED, openWriter } from './sqlite-schema.ts'
import { SqliteSessions } from './sqlite-sessions.ts'
import type {
  NewHeader,
  WriterAnswer,
  WriterFailure,
  WriterOptions,
  WriterReport,
  WriterRequest,
} from './writer-protocol.ts'

/** Reading yields to the next commit after this long. */
const READ_SLICE_MS = 5
/** One commit takes about this much work, so that its first request does not wait for many others. */
const COMMIT_SLICE_MS = 20
/** After a failure, of a full disk for one, clearing waits this long before it tries again. */
const CLEARING_PAUSE_MS = 1_000
/**
 * The WAL is folded into the file after this many commits, in a turn that has nothing else to do: the commit that grew the
 * WAL beyond SQLite's own bound would wait for it, several times as long as for itself. A commit of one request writes two
 * to eight pages, so the bound is out of its reach.
 */
const CHECKPOINT_COMMITS = 128
/** Logs whose end is kept in memory; the end of another is read again, which costs a few index probes. */
const KEPT_LOGS = 1_024

interface Work {
  /** Read a slice of the request; true once it can be applied. */
  read(enough: () => boolean): boolean
  /** Inside a transaction. Returns the answer, or AGAIN to be read and applied once more. */
  apply(): unknown
  /** After a failure of either. */
  abandon?(): void
}

interface Job extends Work {
  readonly number: number
}

interface KeptLog {
  readonly session: SessionState
  readonly storage: SqliteLog
  readonly state: LogState
}

class Writer {
  readonly #port: MessagePort
  readonly #lineBytes: number
  readonly #db: Connection['db']
  readonly #sessions: SqliteSessions
  readonly #statements
  readonly #imports = new Map<number, LogImport>()
  readonly #kept = new LastUsed<string, KeptLog>(KEPT_LOGS)
  #dataVersion: number
  #queue: Job[] = []
  #answers: WriterAnswer[] = []
  #hints = new Map<number, LogHint>()
  #scheduled = false
  #clearingAfter = 0
  /** Since the last checkpoint. */
  #commits = 0
  #closing: number | undefined

  constructor(port: MessagePort, { path, lineBytes, busyTimeout }: WriterOptions) {
    this.#port = port
    this.#lineBytes = lineBytes
    const connection = openWriter(path, busyTimeout)
    this.#db = connection.db
    this.#sessions = new SqliteSessions(connection)
    this.#statements = prepareLogStatements(connection.db)
    this.#sessions.forgetHidden()
    this.#dataVersion = this.#sessions.dataVersion()
  }

  start(): void {
    this.#port.on('message', (requests: readonly WriterRequest[]) => {
      for (const request of requests) this.#accept(request)
      this.#schedule()
    })
    this.#port.postMessage('ready')
    this.#schedule()
  }

  #accept({ number, call }: WriterRequest): void {
    if (call.op === 'close') this.#closing = number
    else if (call.op === 'others') this.#answerOthers(number)
    else this.#queue.push({ number, ...this.#work(call) })
  }

  /** Asked here because this connection does not count its own commits, as a reader's would. No transaction is needed. */
  #answerOthers(number: number): void {
    try {
      this.#answer({ number, value: this.#sessions.dataVersion() })
    } catch (error) {
      this.#answer({ number, failure: failureOf(error) })
    }
  }

  #work(call: Exclude<WriterRequest['call'], { op: 'others' | 'close' }>): Work {
    switch (call.op) {
      case 'create':
        return atOnce(() => this.#create(call.header, new Map(call.given)))
      case 'delete':
        return atOnce(() => this.#delete(call.id))
      case 'append':
        return this.#append(call.id, call.body, call.options)
      case 'import-chunk':
        return this.#importing(call.key, (log) => log.take(call.bytes))
      case 'import-end':
        return this.#importing(call.key, (log) => log.finish(call.options))
      case 'import-abort':
        return atOnce(() => this.#dropImport(call.key))
    }
  }

  #create(header: NewHeader, given: ReadonlyMap<string, string>) {
    return this.#sessions.create(header, given, Date.now())
  }

  #delete(id: string): boolean {
    const session = this.#sessions.reader.describe(id)
    if (!session) return false
    this.#sessions.setState(session.log, DELETED)
    this.#kept.delete(id)
    this.#hints.set(session.log, { log: session.log, deleted: true })
    return true
  }

  #append(id: string, body: AppendBody, options: AppendOptions): Work {
    const input = new AppendInput(body, { lineBytes: this.#lineBytes })
    return {
      read: (enough) => input.read(enough),
      apply: (): AppendResult => {
        const { session, storage, state } = this.#keep(id)
        const { log, epoch } = session
        if (options.epoch !== undefined && options.epoch !== epoch) {
          throw new Problem('session/replaced', `session ${id} is another log now`, { epoch, head: state.head })
        }
        try {
          const now = Date.now()
          const counts = new LogWriter(state, storage, now).append(input.items(), options)
          if (counts.appended > 0) {
            storage.save(state, now)
            this.#hints.set(log, { log, head: state.head })
          }
          return { head: state.head, ...counts, epoch }
        } catch (error) {
          // The state may have moved on before the error; the log itself has not.
          this.#kept.delete(id)
          throw error
        }
      },
    }
  }

  #keep(id: string): KeptLog {
    const known = this.#kept.get(id)
    if (known) return known
    const session = this.#sessions.reader.describe(id)
    if (!session) throw new Problem('session/not-found', `there is no session ${id}`)
    const storage = new SqliteLog(session.log, this.#statements)
    const kept = { session, storage, state: storage.load() }
    this.#kept.set(id, kept)
    return kept
  }

  #importing(key: number, step: (log: LogImport) => Work): Work {
    const log = this.#imports.get(key) ?? new LogImport(this.#sessions, this.#statements, this.#lineBytes)
    this.#imports.set(key, log)
    const { read, apply } = step(log)
    return {
      read,
      apply: () => {
        const result = apply()
        if (result !== undefined && result !== AGAIN) this.#imports.delete(key)
        return result
      },
      abandon: () => {
        // A last step may have ended it already in a transaction that then failed.
        this.#imports.set(key, log)
        this.#queue.push({ number: UNASKED, ...atOnce(() => this.#dropImport(key)) })
      },
    }
  }

  /** @returns the last good line of the file so far */
  #dropImport(key: number): number | undefined {
    const dropped = this.#imports.get(key)
    this.#imports.delete(key)
    const log = dropped?.log
    if (log !== undefined && this.#sessions.isHidden(log)) this.#sessions.setState(log, DELETED)
    return dropped?.lastGoodLine
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#turn()
    })
  }

  #turn(): void {
    const ready = this.#read()
    if (ready.length > 0) this.#commit(ready)
    this.#report()
    if (this.#queue.length > 0) this.#schedule()
    else if (this.#closing !== undefined) this.#close(this.#closing)
    else if (this.#clear() || this.#checkpoint(ready.length === 0)) this.#schedule()
  }

  /** Returns whether one is due and waits for an idle turn. */
  #checkpoint(idle: boolean): boolean {
    if (this.#commits < CHECKPOINT_COMMITS) return false
    if (!idle) return true
    this.#commits = 0
    this.#sessions.checkpoint()
    return false
  }

  /** Clear a little of what was deleted. Returns whether there is more; nobody waits for it, so a failure is no answer. */
  #clear(): boolean {
    if (performance.now() < this.#clearingAfter) return false
    try {
      return this.#sessions.clear()
    } catch {
      this.#sessions.rollback()
      this.#clearingAfter = performance.now() + CLEARING_PAUSE_MS
      setTimeout(() => this.#schedule(), CLEARING_PAUSE_MS + 1).unref()
      return false
    }
  }

  /** Read a slice of what is queued; the jobs that can be applied leave the queue in the order they came. */
  #read(): Job[] {
    const end = performance.now() + READ_SLICE_MS
    const enough = () => performance.now() > end
    const ready: Job[] = []
    const waiting: Job[] = []
    let cut: Job | undefined
    for (const job of this.#queue.splice(0)) {
      if (cut) {
        waiting.push(job)
        continue
      }
      try {
        if (job.read(enough)) ready.push(job)
        else cut = job
      } catch (error) {
        this.#fail(job, error)
      }
      if (enough()) cut ??= NONE
    }
    // The one cut short goes behind the others, so that a large request does not hold up small ones.
    if (cut && cut !== NONE) waiting.push(cut)
    this.#queue = [...waiting, ...this.#queue]
    return ready
  }

  #commit(ready: readonly Job[]): void {
    const end = performance.now() + COMMIT_SLICE_MS
    const answered: { job: Job; value: unknown }[] = []
    const again: Job[] = []
    let taken = 0
    try {
      this.#sessions.begin()
      this.#noticeOthers()
      for (const job of ready) {
        taken++
        try {
          const value = this.#sessions.savepoint(() => job.apply())
          if (value === AGAIN) again.push(job)
          else answered.push({ job, value })
        } catch (error) {
          // Without a transaction the whole group has failed, not this request alone.
          if (!this.#sessions.inTransaction) throw error
          this.#fail(job, error)
        }
        if (performance.now() > end) break
      }
      if (performance.now() >= this.#clearingAfter) this.#sessions.clearSome()
      this.#sessions.commit()
      this.#commits++
      for (const { job, value } of answered) this.#answer({ number: job.number, value })
      this.#queue = [...again, ...ready.slice(taken), ...this.#queue]
    } catch (error) {
      this.#sessions.rollback()
      // Clearing may be what failed: the next group goes without it.
      this.#clearingAfter = performance.now() + CLEARING_PAUSE_MS
      // Nothing of the group is stored: what memory holds of its logs is wrong.
      this.#kept.clear()
      this.#hints.clear()
      const failed = new Set(this.#answers.map(({ number }) => number))
      for (const job of ready) if (!failed.has(job.number)) this.#fail(job, error)
    }
  }

  /** Another process may share the file: what it wrote makes what is kept here out of date. */
  #noticeOthers(): void {
    const version = this.#sessions.dataVersion()
    if (version !== this.#dataVersion) this.#kept.clear()
    this.#dataVersion = version
  }

  #fail(job: Job, error: unknown): void {
    this.#answer({ number: job.number, failure: failureOf(error) })
    job.abandon?.()
  }

  #answer(answer: WriterAnswer): void {
    if (answer.number !== UNASKED) this.#answers.push(answer)
  }

  #report(): void {
    if (this.#answers.length === 0 && this.#hints.size === 0) return
    const report: WriterReport = { answers: this.#answers, hints: [...this.#hints.values()] }
    this.#answers = []
    this.#hints = new Map()
    this.#port.postMessage(report)
  }

  #close(number: number): void {
    this.#db.close()
    this.#answer({ number, value: undefined })
    this.#report()
    this.#port.close()
  }
}

/** The number of work that nobody waits for. */
const UNASKED = -1

const NONE: Job = { number: UNASKED, read: () => true, apply: () => undefined }

function atOnce(apply: () => unknown): Work {
  return { read: () => true, apply }
}

function failureOf(error: unknown): WriterFailure {
  const known = storeProblem(error)
  const { message, stack } = known instanceof Error ? known : new Error(String(known))
  const problem = known instanceof Problem ? { code: known.code, facts: known.facts } : undefined
  return { message, stack, problem }
}

if (parentPort) {
  try {
    new Writer(parentPort, workerData as WriterOptions).start()
  } catch (error) {
    parentPort.postMessage({ failure: failureOf(error) })
    parentPort.close()
  }
}
