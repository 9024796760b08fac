#!/usr/bin/env node
// The process of the command line: its streams, its signals, its exit code.

import { Output, runCommandLine } from './index.ts'

const stopping = new AbortController()
let stoppedBy: NodeJS.Signals | undefined

// A command that is stopped cleans up first. A second signal finds no listener any more and ends the process at once.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stoppedBy ??= signal
    stopping.abort(new Error(`stopped by ${signal}`))
  })
}

// A note that nobody reads is no reason to fail.
process.stderr.on('error', () => {})

try {
  process.exitCode = await runCommandLine(process.argv.slice(2), {
    environment: process.env,
    input: () => process.stdin,
    output: new Output(process.stdout),
    terminal: process.stderr,
    signal: stopping.signal,
  })
} catch (error) {
  if (stoppedBy === undefined) throw error
  // Whoever sent the signal is told that it worked, in the way of any other program.
  process.removeAllListeners(stoppedBy)
  process.kill(process.pid, stoppedBy)
}
