// A server under measurement is a process of its own, seen from outside: its processor time, its memory, its writes.
// Those figures come from Linux's /proc; elsewhere they are absent (NaN) and the times still stand.

import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/** What a reference server prints once it takes connections. */
const LISTENING = /^listening (\d+)$/m

const START_MS = 30_000

export class MeasuredProcess {
  readonly port: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  /** Start one of the bench's own servers, which chooses its port. */
  static async startReference(file: URL, args: readonly string[]): Promise<MeasuredProcess> {
    const child = spawn(process.execPath, [file.pathname, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    for await (const text of child.stdout.setEncoding('utf8')) {
      output += text
      const [, port] = LISTENING.exec(output) ?? []
      if (port !== undefined) return new MeasuredProcess(child, Number(port))
    }
    throw new Error(`${file.pathname} ended before it listened`)
  }

  /** Start the service and wait until it is ready. */
  static async startService(args: readonly string[], env: Record<string, string>): Promise<MeasuredProcess> {
    const port = await freePort()
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...env, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    const started = new MeasuredProcess(child, port)
    const end = performance.now() + START_MS
    for (;;) {
      const ready = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: 'close' } }).catch(() => {})
      await ready?.arrayBuffer()
      if (ready?.ok) return started
      if (child.exitCode !== null || performance.now() > end) {
        child.kill('SIGKILL')
        throw new Error(`${args.join(' ')} did not get ready`)
      }
      await delay(20)
    }
  }

  /** Processor time of all threads that live now, milliseconds. */
  cpu(): number {
    return this.#from(() => {
      const tasks = `/proc/${this.#child.pid}/task`
      const nanoseconds = readdirSync(tasks).map((task) =>
        Number(readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ', 1)),
      )
      return nanoseconds.reduce((sum, time) => sum + time, 0) / 1e6
    })
  }

  /** Resident memory now, MiB. */
  memory(): number {
    return this.#status('VmRSS')
  }

  /** The most resident memory since the last reset, MiB. */
  peakMemory(): number {
    return this.#status('VmHWM')
  }

  resetPeakMemory(): void {
    this.#from(() => {
      writeFileSync(`/proc/${this.#child.pid}/clear_refs`, '5')
      return 0
    })
  }

  /** Bytes sent to the block device so far, the page cache's rewrites of one page counted once. */
  writtenBytes(): number {
    return this.#from(() => {
      const [, bytes] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${this.#child.pid}/io`, 'utf8')) ?? []
      return Number(bytes)
    })
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGTERM')
    await Promise.race([ended, delay(10_000, undefined, { ref: false })])
    this.#child.kill('SIGKILL')
  }

  #status(field: string): number {
    return this.#from(() => {
      const text = readFileSync(`/proc/${this.#child.pid}/status`, 'utf8')
      const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text) ?? []
      return Number(kib) / 1024
    })
  }

  #from(read: () => number): number {
    try {
      return read()
    } catch {
      return Number.NaN
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
