// Owns how an error is told: one line, its code first.

import { Problem } from '../../codec/index.ts'
import { ClientError } from '../client/index.ts'

/** An error that is about one line of what was read, from 1. */
export class InputLineError extends Error {
  readonly line: number | undefined

  constructor(cause: unknown, line: number | undefined) {
    super('a line of the input was refused', { cause })
    this.line = line
  }
}

/** The error as one line without control characters: what a server or a file says must not steer the terminal. */
export function describeFailure(error: unknown): string {
  if (error instanceof InputLineError) {
    const described = describeFailure(error.cause)
    return error.line === undefined ? described : `${described} (line ${error.line} of the input)`
  }
  const text =
    error instanceof ClientError || error instanceof Problem ? `${error.code}: ${error.message}` : plain(error)
  return text.replace(/\s*[\r\n]+\s*/g, ' ').replace(/[\u0000-\u001f\u007f-\u009f]/g, '?')
}

/** Errors of files have their code in the message. */
function plain(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error)
}
