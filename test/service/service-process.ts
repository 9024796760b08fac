// Owns the real service as a process of its own: started on a port that stays the same, ended by a signal, started again.

import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

export interface ProcessOptions {
  /** folder of the database */
  readonly data: string
  readonly port: number
  /** settings beside these */
  readonly environment?: Record<string, string>
}

type Exit = [code: number | null, signal: NodeJS.Signals | null]

export class ServiceProcess {
  readonly url: string
  readonly #child: ChildProcess
  readonly #exit: Promise<Exit>
  #output = ''

  /** Does not wait. */
  constructor({ data, port, environment = {} }: ProcessOptions) {
    this.url = `http://127.0.0.1:${port}`
    // Without what a test runner adds to every process that it starts: it takes longer than the rest.
    const env = { ...process.env, NODE_OPTIONS: '', LOG_LEVEL: 'warn', ...environment }
    const args = [MAIN, 'serve', '--host', '127.0.0.1', '--port', `${port}`, '--data', data]
    this.#child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
      })
    }
    this.#exit = once(this.#child, 'close') as Promise<Exit>
  }

  static async start(options: ProcessOptions): Promise<ServiceProcess> {
    const service = new ServiceProcess(options)
    await service.listening()
    return service
  }

  /** what it wrote so far */
  get output(): string {
    return this.#output
  }

  /** Throws when it ends instead. */
  async listening(): Promise<void> {
    const ended = new AbortController()
    void this.#exit.then(() => ended.abort())
    while (!this.#output.includes('scrollback listens on')) {
      if (ended.signal.aborted) throw new Error(`the service ended: ${this.#output}`)
      await Promise.race([this.#exit, once(this.#child.stderr as NonNullable<ChildProcess['stderr']>, 'data')])
    }
  }

  /** Resolved when it has ended. */
  async end(signal: NodeJS.Signals): Promise<Exit> {
    this.#child.kill(signal)
    return this.#exit
  }
}

/**
 * A port that is free now and can be listened on again later: none of those that the system gives to connections, which
 * might take it meanwhile, or even be connected to themselves.
 */
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000)
    const server = createServer()
    const taken = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(true)).listen(port, '127.0.0.1', () => resolve(false))
    })
    if (taken) continue
    server.close()
    await once(server, 'close')
    return port
  }
}
