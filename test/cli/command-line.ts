// Owns running the command line as a process of its own, against the real service.

import type { ChildProcessByStdio } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { Output, runCommandLine } from '../../src/cli/index.ts'
import { DEFAULT_CONFIG, startServer } from '../../src/server/index.ts'

export const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
export const SAMPLE = fileURLToPath(new URL('../../src/server/demo-session.jsonl', import.meta.url))

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  stdout: string
  stderr: string
}

export interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly ended: Promise<Ended>
}

/** Starts `scrollback` with standard input open. */
export function start(args: readonly string[], environment: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, SCROLLBACK_URL: '', ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // The program may end before it has read everything.
  child.stdin.on('error', () => {})
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr, [code, signal]]) => ({ code, signal, stdout, stderr }),
  )
  return { child, ended }
}

/** Runs `scrollback` to its end. */
export function run(
  args: readonly string[],
  { input = '', environment = {} }: { input?: string | Uint8Array; environment?: Record<string, string> } = {},
): Promise<Ended> {
  const { child, ended } = start(args, environment)
  child.stdin.end(input)
  return ended
}

/** The same in this process, for what needs no process of its own: a start costs half a second. */
export async function call(
  args: readonly string[],
  { input = '', environment = {} }: { input?: string | Uint8Array; environment?: Record<string, string> } = {},
): Promise<Ended> {
  const stdout = new PassThrough()
  const written = text(stdout)
  let stderr = ''
  const code = await runCommandLine(args, {
    environment,
    input: () => Readable.from([Buffer.from(input)]),
    output: new Output(stdout),
    terminal: {
      write(note) {
        stderr += note
      },
    },
    signal: new AbortController().signal,
  })
  stdout.end()
  return { code, signal: null, stdout: await written, stderr }
}

/** The real service on a database of its own, closed with the test. */
export async function startService(t: Test): Promise<{ url: string }> {
  const config = { ...DEFAULT_CONFIG, host: '127.0.0.1', port: 0, data: t.testdir(), logLevel: 'silent', graceMs: 0 }
  const { url, close } = await startServer(config)
  t.teardown(close)
  return { url }
}

/** The values of NDJSON. */
export function values(ndjson: string): Record<string, unknown>[] {
  if (ndjson !== '' && !ndjson.endsWith('\n')) throw new Error('the last line has no newline')
  return ndjson
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}
