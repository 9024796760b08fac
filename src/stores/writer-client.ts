// The serving thread's side of the writer thread: calls go out in batches, answers and hints come back in batches.

import { Worker } from 'node:worker_threads'
import { Problem } from '../../codec/index.ts'
import type { AppendBody, AppendOptions, AppendResult, LogHint } from '../history/index.ts'
import { gatherAll } from './transfer.ts'
import type { WriterCall, WriterFailure, WriterOptions, WriterReport, WriterRequest } from './writer-protocol.ts'

/** A body that waits in the outbox in the pieces it came in, and the arrays of its request to put it into. */
interface SmallBody {
  readonly pieces: readonly Uint8Array[]
  readonly bytes: Uint8Array[]
}

interface Waiting {
  resolve(value: unknown): void
  reject(error: unknown): void
}

export class WriterClient {
  readonly #worker: Worker
  readonly #waiting = new Map<number, Waiting>()
  readonly #listeners = new Set<(hint: LogHint) => void>()
  #outbox: WriterRequest[] = []
  #smallBodies: SmallBody[] = []
  #transfers: ArrayBuffer[] = []
  #number = 0
  #gone: Problem | undefined
  #closing = false
  readonly #failed = Promise.withResolvers<Problem>()

  static async open(options: WriterOptions): Promise<WriterClient> {
    // The published package runs from .js files, the source from .ts.
    const file = import.meta.url.endsWith('.ts') ? './sqlite-writer.ts' : './sqlite-writer.js'
    const worker = new Worker(new URL(file, import.meta.url), { workerData: options, name: 'history writer' })
    const client = new WriterClient(worker)
    await new Promise<void>((resolve, reject) => {
      worker.once('message', (first: 'ready' | { failure: WriterFailure }) => {
        if (first === 'ready') resolve()
        else reject(errorOf(first.failure))
      })
      worker.once('error', reject)
    })
    worker.on('message', (report: WriterReport) => client.#receive(report))
    return client
  }

  private constructor(worker: Worker) {
    this.#worker = worker
    worker.on('error', (cause) => this.#end(new Problem('store/unavailable', 'the writer has failed', {}, { cause })))
    worker.on('exit', () => this.#end(new Problem('store/unavailable', 'the writer has ended', {})))
  }

  /** @param bytes arrays inside the call that are handed over, not copied */
  call<T>(call: WriterCall, bytes: readonly Uint8Array<ArrayBuffer>[] = []): Promise<T> {
    if (this.#gone) return Promise.reject(this.#gone)
    const number = this.#number++
    const idle = this.#waiting.size === 0
    if (this.#outbox.length === 0 && !idle) setImmediate(() => this.#send())
    this.#outbox.push({ number, call })
    for (const { buffer } of bytes) this.#transfers.push(buffer)
    const answer = new Promise<T>((resolve, reject) => {
      this.#waiting.set(number, { resolve: resolve as (value: unknown) => void, reject })
    })
    if (idle) this.#send()
    return answer
  }

  /** Append a small body. Its pieces must stay as they are until the answer. */
  appendSmall(id: string, { format, bytes: pieces }: AppendBody, options: AppendOptions): Promise<AppendResult> {
    const bytes: Uint8Array[] = []
    this.#smallBodies.push({ pieces, bytes })
    return this.call({ op: 'append', id, body: { format, bytes }, options })
  }

  /** Resolved when the thread has ended without being told to. */
  get failed(): Promise<Problem> {
    return this.#failed.promise
  }

  watch(listener: (hint: LogHint) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** @throws Problem `store/unavailable` once the thread has ended */
  check(): void {
    if (this.#gone) throw this.#gone
  }

  async close(): Promise<void> {
    if (this.#gone) return
    this.#closing = true
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve))
    await this.call({ op: 'close' }).catch(() => {})
    await ended
  }

  /**
   * What gathered in one turn of the event loop goes in one message: a message costs more than most calls. To a writer
   * that has nothing to do the first call goes at once.
   */
  #send(): void {
    const requests = this.#outbox
    const transfers = this.#transfers
    const bodies = this.#smallBodies
    this.#outbox = []
    this.#transfers = []
    this.#smallBodies = []
    if (this.#gone) return
    const gathered = gatherAll(bodies.map(({ pieces }) => pieces))
    for (const [place, { bytes }] of bodies.entries()) bytes.push(gathered[place] as Uint8Array)
    const [shared] = gathered
    if (shared) transfers.push(shared.buffer)
    this.#worker.postMessage(requests, transfers)
  }

  #receive({ answers, hints }: WriterReport): void {
    for (const hint of hints) for (const listener of this.#listeners) listener(hint)
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.number)
      this.#waiting.delete(answer.number)
      if ('failure' in answer) waiting?.reject(errorOf(answer.failure))
      else waiting?.resolve(answer.value)
    }
  }

  #end(problem: Problem): void {
    this.#gone ??= problem
    if (!this.#closing) this.#failed.resolve(this.#gone)
    for (const { reject } of this.#waiting.values()) reject(this.#gone)
    this.#waiting.clear()
  }
}

function errorOf({ message, stack, problem }: WriterFailure): Error {
  if (problem) return new Problem(problem.code, message, problem.facts)
  const error = new Error(message)
  if (stack !== undefined) error.stack = stack
  return error
}
