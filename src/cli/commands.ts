// Owns the table of commands and what runs one: from the words of the command line to an exit code.

import { createRequire } from 'node:module'
import type { Command, Surroundings } from './command.ts'
import { columns, helpOf, parseCommand, UsageError } from './options.ts'
import { OutputClosed } from './output.ts'

interface Entry {
  /** in a few words, for the list of commands */
  readonly about: string
  /** Loaded when it is called: a page must not wait until the database is read in. */
  readonly load: () => Promise<Command>
}

const COMMANDS: Readonly<Record<string, Entry>> = {
  serve: { about: 'run the service', load: async () => (await import('./serve.ts')).serveCommand },
  import: { about: 'import session logs', load: async () => (await import('./import.ts')).importCommand },
  export: { about: 'write the log of a session', load: async () => (await import('./export.ts')).exportCommand },
  page: { about: 'write a page of a session', load: async () => (await import('./page.ts')).pageCommand },
  follow: {
    about: 'write the records of a session as they come',
    load: async () => (await import('./follow.ts')).followCommand,
  },
  backup: { about: 'copy the store while it is in use', load: async () => (await import('./backup.ts')).backupCommand },
  append: { about: 'append events to a session', load: async () => (await import('./append.ts')).appendCommand },
}

// By the package's own name: the compiled files lie a folder deeper than their sources.
const manifest = createRequire(import.meta.url)('scrollback/package.json') as { version: string }

const EXIT_OK = 0
const EXIT_FAILURE = 1
const EXIT_USAGE = 2

/** Runs a command line without the name of the program. Returns the exit code; throws the signal's reason only. */
export async function runCommandLine(args: readonly string[], around: Surroundings): Promise<number> {
  const { terminal, signal } = around
  const [name = '', ...rest] = args
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  const prefix = entry === undefined ? 'scrollback' : `scrollback ${name}`
  try {
    if (entry !== undefined) return await runCommand(await entry.load(), rest, around)
    if (name === '--version') {
      await around.output.write(`${manifest.version}\n`)
      return EXIT_OK
    }
    if (name !== '--help' && name !== '-h') throw new UsageError(unknownCommand(name))
    await around.output.write(help())
    return EXIT_OK
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof OutputClosed) return EXIT_OK
    if (error instanceof UsageError) {
      terminal.write(`${prefix}: ${error.message}\n`)
      return EXIT_USAGE
    }
    const { describeFailure } = await import('./failure.ts')
    terminal.write(`scrollback: ${describeFailure(error)}\n`)
    return EXIT_FAILURE
  }
}

async function runCommand(command: Command, args: readonly string[], around: Surroundings): Promise<number> {
  const { help, values, operands } = parseCommand(command.shape, args)
  if (!help) return command.run(values, operands, around)
  await around.output.write(helpOf(command.shape))
  return EXIT_OK
}

function unknownCommand(name: string): string {
  const names = Object.keys(COMMANDS).join(', ')
  const got = name === '' ? 'nothing' : JSON.stringify(name)
  return `expected a command (${names}) or --help, got ${got}`
}

function help(): string {
  const rows = Object.entries(COMMANDS).map(([name, { about }]) => [name, about] as const)
  return [
    'Usage: scrollback COMMAND [OPTIONS]',
    'A streaming service for the history of agent sessions, and its command line.',
    columns(rows, 8),
    '"scrollback COMMAND --help" explains one, "scrollback --version" tells the version.',
    'Results are NDJSON on standard output; notes and errors go to standard error.',
    'Exit codes: 0 done, 1 failed, 2 wrong usage.\n',
  ].join('\n\n')
}
