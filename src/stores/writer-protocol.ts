// What passes between the serving thread and the writer thread. Requests travel in batches, and so do answers.

import type { ProblemCode, ProblemFacts } from '../../codec/index.ts'
import type { AppendBody, AppendOptions, ImportOptions, LogHint } from '../history/index.ts'

export interface WriterOptions {
  readonly path: string
  /** UTF-8 bytes of one input line. */
  readonly lineBytes: number
  /** How long a write waits for another process's lock, ms. */
  readonly busyTimeout: number
}

export interface NewHeader {
  readonly text: string
  readonly id: string
  readonly createdAt: number
  readonly parentSession: string | undefined
  readonly origin: string | undefined
}

export type WriterCall =
  | { readonly op: 'create'; readonly header: NewHeader; readonly given: readonly (readonly [string, string])[] }
  | { readonly op: 'delete'; readonly id: string }
  | { readonly op: 'append'; readonly id: string; readonly body: AppendBody; readonly options: AppendOptions }
  | { readonly op: 'import-chunk'; readonly key: number; readonly bytes: Uint8Array }
  | { readonly op: 'import-end'; readonly key: number; readonly options: ImportOptions }
  | { readonly op: 'import-abort'; readonly key: number }
  /** Answered with another value than last time when another process has committed meanwhile. */
  | { readonly op: 'others' }
  | { readonly op: 'close' }

export interface WriterRequest {
  readonly number: number
  readonly call: WriterCall
}

export interface WriterFailure {
  readonly message: string
  readonly stack: string | undefined
  /** Absent for what is no Problem: a fault of this program. */
  readonly problem: { readonly code: ProblemCode; readonly facts: ProblemFacts } | undefined
}

export type WriterAnswer =
  | { readonly number: number; readonly value: unknown }
  | { readonly number: number; readonly failure: WriterFailure }

export interface WriterReport {
  readonly answers: readonly WriterAnswer[]
  readonly hints: readonly LogHint[]
}
