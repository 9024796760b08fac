// The process: opens the store, listens, and closes with grace on SIGTERM and SIGINT.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { getSystemErrorMap } from 'node:util'
import type { HistoryStore } from '../history/index.ts'
import { openSqliteStore } from '../stores/index.ts'
import type { AppOptions } from './app.ts'
import { buildApp } from './app.ts'
import type { Config } from './config.ts'
import { readConfig } from './config.ts'

export interface RunningServer {
  /** Where it listens, such as `http://127.0.0.1:7411`. */
  readonly url: string
  /**
   * Refuse new requests, let the running ones finish for up to the configured time, then close everything.
   * Called again, it waits no longer.
   */
  close(): Promise<void>
}

/**
 * @throws Error when the store cannot be opened or the address cannot be listened on: one sentence that names the file or
 * the address, and the setting
 */
export async function startServer(config: Config, options: Pick<AppOptions, 'logger'> = {}): Promise<RunningServer> {
  const store = await openStore(config)
  const app = await buildApp({ store, config, ...options }).catch(async (error) => {
    await store.close()
    throw error
  })
  const cut = Promise.withResolvers<void>()
  let closing: Promise<void> | undefined

  const shutDown = async () => {
    await app.drain.finish(config.graceMs, cut.promise)
    await app.close()
    await store.close()
  }
  const close = () => {
    if (closing) cut.resolve()
    closing ??= shutDown().finally(() => {
      for (const signal of SIGNALS) process.off(signal, onSignal)
    })
    return closing
  }
  const onSignal = (signal: NodeJS.Signals) => {
    app.log.info({ signal }, closing ? 'closing at once' : 'closing')
    close().then(
      () => process.exit(0),
      (error) => {
        app.log.fatal({ err: error }, 'could not close')
        process.exit(1)
      },
    )
  }

  // A process that can only read would look alive for ever; one that ends is started again by whoever watches it.
  const fail = (error: Error) => {
    app.log.fatal({ err: error }, 'the store has failed')
    process.exitCode = 1
    close().finally(() => process.exit(1))
  }

  try {
    const url = await app.listen({ host: config.host, port: config.port })
    for (const signal of SIGNALS) process.on(signal, onSignal)
    void store.failed().then((error) => fail(error))
    return { url, close }
  } catch (error) {
    await close()
    throw cannotListen(config, error)
  }
}

async function openStore({ data, lineBytes }: Config): Promise<HistoryStore> {
  try {
    await mkdir(data, { recursive: true })
  } catch (error) {
    throw new Error(`cannot make the folder ${data}: ${systemReason(error)}; ${CHOOSE_DATA}`, { cause: error })
  }
  const file = join(data, 'scrollback.db')
  try {
    return await openSqliteStore(file, { lineBytes })
  } catch (error) {
    const reason = error instanceof Error ? error.message : `${error}`
    const named = reason.includes(file) ? reason : `cannot open ${file}: ${reason}`
    throw new Error(`${named}; ${CHOOSE_DATA}`, { cause: error })
  }
}

const CHOOSE_DATA = 'SCROLLBACK_DATA names the folder of the database'

function cannotListen({ host, port }: Config, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') {
    const stopOrMove = 'end what listens there, or set PORT to another one (0 for any free one)'
    return new Error(`port ${port} on ${host} is in use: ${stopOrMove}`, { cause: error })
  }
  if (syscall !== 'listen' && syscall !== 'getaddrinfo') return error
  return new Error(`cannot listen on ${host}, port ${port}: ${systemReason(error)}; HOST and PORT name the address`, {
    cause: error,
  })
}

/** In words, without the code, the call and the path. */
function systemReason(error: unknown): string {
  const { errno = 0, message } = error as NodeJS.ErrnoException
  return getSystemErrorMap().get(errno)?.[1] ?? message
}

/** Where the store lies. */
export function databaseFile({ data }: Pick<Config, 'data'>): string {
  return join(data, 'scrollback.db')
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

if (import.meta.main) {
  try {
    await startServer(readConfig(process.env))
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}
