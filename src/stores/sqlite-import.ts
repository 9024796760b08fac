// One import on the writer thread: a session log read piece by piece into a hidden life, in small transactions, and made
// visible in one. Its jobs are queued like any other request, so appends go on meanwhile.

import type { HeaderText, NumberedLine } from '../../codec/index.ts'
import { decodeStorageRecord, LineDecoder, Problem, parseHeaderLine } from '../../codec/index.ts'
import type { ImportOptions, ImportResult, LogState, NumberedItem, SessionState } from '../history/index.ts'
import { LogWriter } from '../history/index.ts'
import type { LogStatements } from './sqlite-log.ts'
import { SqliteLog } from './sqlite-log.ts'
import { DELETED, HIDDEN, VISIBLE } from './sqlite-schema.ts'
import type { SqliteSessions } from './sqlite-sessions.ts'
import { exists } from './sqlite-sessions.ts'

/** Text gathered before it is written: large enough that a commit costs little beside it, about 20 ms of work. */
const WRITE_CHARACTERS = 1024 * 1024
const COMPARE_BYTES = 256 * 1024

/** `apply` has more to do after another `read`. */
export const AGAIN = Symbol('again')

export class LogImport {
  readonly #sessions: SqliteSessions
  readonly #statements: LogStatements
  readonly #decoder: LineDecoder
  readonly #lineBytes: number
  #lines: NumberedLine[] = []
  #nextLine = 0
  #items: NumberedItem[] = []
  #characters = 0
  #header: HeaderText | undefined
  #log: { readonly number: number; readonly storage: SqliteLog; state: LogState } | undefined
  #lastGoodLine = 0

  constructor(sessions: SqliteSessions, statements: LogStatements, lineBytes: number) {
    this.#sessions = sessions
    this.#statements = statements
    this.#lineBytes = lineBytes
    this.#decoder = new LineDecoder({ lineBytes })
  }

  /** The last line that was read and found good, 0 before the first. */
  get lastGoodLine(): number {
    return this.#lastGoodLine
  }

  /** The hidden life, once there is one. */
  get log(): number | undefined {
    return this.#log?.number
  }

  /** Read one piece; its lines are written when enough have gathered. */
  take(bytes: Uint8Array) {
    let fed = false
    return {
      read: (enough: () => boolean) => {
        if (!fed) this.#gather(() => this.#decoder.feed(bytes))
        fed = true
        return this.#parse(enough)
      },
      apply: () => {
        if (this.#characters >= WRITE_CHARACTERS) this.#write()
      },
    }
  }

  /** Write what is left, and make the session visible if it may be. */
  finish({ expectedHead }: ImportOptions) {
    let ended = false
    let rival: Comparison | undefined
    return {
      read: (enough: () => boolean) => {
        if (rival) return rival.read(enough)
        if (!ended) this.#gather(() => this.#decoder.end())
        ended = true
        return this.#parse(enough)
      },
      apply: (): ImportResult | typeof AGAIN => {
        if (!this.#header) throw new Problem('log/invalid', 'the file is empty: a header line comes first', { line: 1 })
        this.#write()
        const log = this.#opened()
        const { head } = log.state
        if (expectedHead !== undefined && expectedHead !== head) {
          throw new Problem('log/invalid', `the file ends at seq ${head}, not at ${expectedHead}: it may be cut`, {
            head,
            lastGoodLine: this.#lastGoodLine,
          })
        }
        const there = this.#sessions.reader.describe(this.#header.id)
        if (!there) {
          this.#sessions.setState(log.number, VISIBLE)
          const { id, epoch } = this.#sessions.reader.describe(this.#header.id) as SessionState
          return { id, epoch, head, created: true }
        }
        if (there.header !== this.#header.text || there.head !== head || rival?.equal === false) throw exists(there)
        if (rival?.log !== there.log) {
          rival = new Comparison(this.#sessions, there.log, log.number, head + 1)
          return AGAIN
        }
        this.#sessions.setState(log.number, DELETED)
        return { id: there.id, epoch: there.epoch, head, created: false }
      },
    }
  }

  #gather(next: () => NumberedLine[]): void {
    this.#naming(undefined, () => {
      this.#lines = next()
      this.#nextLine = 0
    })
  }

  #parse(enough: () => boolean): boolean {
    while (this.#nextLine < this.#lines.length) {
      const { text, line } = this.#lines[this.#nextLine++] as NumberedLine
      this.#naming(line, () => {
        if (!this.#header) this.#header = this.#checkHeader(parseHeaderLine(text))
        else this.#items.push({ line, item: decodeStorageRecord(text, { lineBytes: this.#lineBytes }) })
      })
      this.#characters += text.length
      this.#lastGoodLine = line
      if (this.#nextLine % 16 === 0 && enough()) return false
    }
    this.#lines = []
    return true
  }

  /** Another session of that id that cannot be this one is told at once, not after the whole file. */
  #checkHeader(header: HeaderText): HeaderText {
    const there = this.#sessions.reader.describe(header.id)
    if (there && there.header !== header.text) throw exists(there)
    return header
  }

  #write(): void {
    const { number, storage, state } = this.#opened()
    if (!this.#sessions.isHidden(number)) {
      throw new Problem('store/unavailable', 'another process has taken over the store: import again', {
        retryAfter: 1,
      })
    }
    const [first] = this.#items
    if (first) {
      this.#naming(undefined, () => {
        const seq = first.item.kind === 'row' ? first.item.row.seq : first.item.event.seq
        if (seq !== state.head + 1) {
          throw new Problem('append/gap', `the next seq is ${state.head + 1}`, {
            line: first.line,
            expectedSeq: state.head + 1,
          })
        }
        new LogWriter(state, storage, 0).append(this.#items)
      })
      storage.save(state, Date.now())
    }
    this.#items = []
    this.#characters = 0
  }

  #opened() {
    if (!this.#log) {
      const number = this.#sessions.insert(this.#header as HeaderText, HIDDEN, Date.now())
      const storage = new SqliteLog(number, this.#statements)
      this.#log = { number, storage, state: storage.load() }
    }
    return this.#log
  }

  /** Whatever is wrong with a line makes the file invalid; the caller learns how far it is good. */
  #naming(line: number | undefined, work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof Problem) || !FILE_FAULTS.has(error.code)) throw error
      const at = error.facts.line ?? line ?? this.#lastGoodLine + 1
      const said = error.message.startsWith(`line ${at}`) ? error.message : `line ${at}: ${error.message}`
      // The head of what was read so far is nobody's head.
      const { head: _, ...facts } = error.facts
      throw new Problem('log/invalid', said, { ...facts, line: at, lastGoodLine: at - 1 }, { cause: error })
    }
  }
}

const FILE_FAULTS: ReadonlySet<string> = new Set([
  'event/invalid',
  'record/malformed',
  'append/gap',
  'append/conflict',
  'log/invalid',
])

/** Whether two lives hold the same records; canonical records are equal exactly when the events are. */
class Comparison {
  readonly log: number
  equal = true
  readonly #sessions: SqliteSessions
  readonly #other: number
  readonly #end: number
  #at = 0

  constructor(sessions: SqliteSessions, log: number, other: number, end: number) {
    this.#sessions = sessions
    this.log = log
    this.#other = other
    this.#end = end
  }

  read(enough: () => boolean): boolean {
    const options = { maxBytes: COMPARE_BYTES, chunkLines: true }
    while (this.equal && this.#at < this.#end) {
      const mine = this.#sessions.reader.read(this.#other, this.#at, this.#end, options, HIDDEN)
      let theirs: typeof mine
      try {
        theirs = this.#sessions.reader.read(this.log, this.#at, this.#end, options)
      } catch (error) {
        // Deleted meanwhile: the id is free.
        if (error instanceof Problem && error.code === 'session/not-found') return true
        throw error
      }
      this.equal =
        mine.length === theirs.length && mine.every((record, index) => sameLine(record.line, theirs[index]?.line))
      this.#at = (mine.at(-1)?.last ?? this.#end) + 1
      if (enough()) return !this.equal || this.#at >= this.#end
    }
    return true
  }
}

function sameLine(one: Uint8Array | undefined, other: Uint8Array | undefined): boolean {
  return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0
}
