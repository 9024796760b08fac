// Owns what every command is given and gives back.

import type { Readable } from 'node:stream'
import type { CommandShape, OptionTable, OptionValues } from './options.ts'
import type { Output } from './output.ts'

/** The outside of a command. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** opened only by the commands that read it */
  readonly input: () => Readable
  readonly output: Output
  readonly terminal: Terminal
  /** aborted when the process is asked to end */
  readonly signal: AbortSignal
}

/** Standard error: notes for people. */
export interface Terminal {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

export interface Command<Table extends OptionTable = OptionTable> {
  readonly shape: CommandShape<Table>
  /** Returns the exit code. What it throws is told on standard error, and is the exit code 1, or 2 for a UsageError. */
  run(values: OptionValues<Table>, operands: readonly string[], around: Surroundings): Promise<number>
}

/** A command as the table of commands holds it. */
export function command<Table extends OptionTable>(definition: Command<Table>): Command {
  return definition as unknown as Command
}
