// The process: opens the store, listens, and closes with grace on SIGTERM and SIGINT.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
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

/** @throws Error when the store cannot be opened or the address cannot be listened on */
export async function startServer(config: Config, options: Pick<AppOptions, 'logger'> = {}): Promise<RunningServer> {
  await mkdir(config.data, { recursive: true })
  const store = await openSqliteStore(join(config.data, 'scrollback.db'), { lineBytes: config.lineBytes })
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

  try {
    const url = await app.listen({ host: config.host, port: config.port })
    for (const signal of SIGNALS) process.on(signal, onSignal)
    return { url, close }
  } catch (error) {
    await close()
    throw error
  }
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
