// Owns `scrollback serve`: the service in the foreground, a sample session in an empty store, and what to try first.

import { createReadStream } from 'node:fs'
import { HistoryClient, ServiceError } from '../client/index.ts'
import { readConfig, SETTINGS, startServer } from '../server/index.ts'
import type { Surroundings, Terminal } from './command.ts'
import { command } from './command.ts'
import { describeFailure } from './failure.ts'
import { integer, option, textOf, UsageError } from './options.ts'

/** In the package it lies beside the compiled server too. */
const SAMPLE = new URL('../server/demo-session.jsonl', import.meta.url)
const SAMPLE_ID = 'demo'
const SAMPLE_EVENT = '{"type":"user/message","data":{"role":"user","content":"hello"},"surfaceOp":"append"}'
const MESSAGES = 2

export const serveCommand = command({
  shape: {
    name: 'serve',
    about: [
      'Runs the service until SIGINT or SIGTERM. An empty store gets the sample session "demo".',
      'The options come before the environment variables below.',
    ].join('\n'),
    operands: [],
    options: {
      host: option('HOST', textOf('an address to listen on'), about(SETTINGS.host)),
      port: option('PORT', integer(0, 65_535), about(SETTINGS.port)),
      data: option('DIR', textOf('the name of a folder'), about(SETTINGS.data)),
    },
    variables: Object.values(SETTINGS).map((setting) => [setting.variable, about(setting)]),
  },
  async run({ host, port, data }, _operands, around) {
    const config = configOf(around, { HOST: host, PORT: port?.toString(), SCROLLBACK_DATA: data })
    // Until the server listens it has nothing to finish, so a signal ends the start at once.
    const stop = () => process.exit(0)
    if (around.signal.aborted) stop()
    around.signal.addEventListener('abort', stop)
    const { url } = await startServer(config)
    around.signal.removeEventListener('abort', stop)
    const { terminal } = around
    terminal.write(`scrollback listens on ${url}\n`)
    try {
      await welcome(url, around)
    } catch (error) {
      // The service runs, and that is what was asked for.
      if (!around.signal.aborted) terminal.write(`scrollback: the sample session: ${describeFailure(error)}\n`)
    }
    // The server ends the process itself.
    return new Promise<never>(() => {})
  },
})

function about(setting: { about: string; default: string | number; oneOf?: readonly string[] }): string {
  const choices = setting.oneOf === undefined ? '' : `: ${setting.oneOf.join(', ')}`
  return `${setting.about}${choices} (default ${setting.default})`
}

function configOf({ environment }: Surroundings, given: Record<string, string | undefined>) {
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  try {
    return readConfig({ ...environment, ...options })
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function welcome(url: string, { terminal, signal }: Surroundings): Promise<void> {
  const client = new HistoryClient({ baseUrl: url, retry: { tries: 1 } })
  try {
    if ((await client.sessions.newest(signal)) === undefined) {
      await client.sessions.import(createReadStream(SAMPLE), { signal })
      terminal.write(`The store was empty; it has the sample session "${SAMPLE_ID}" now.\n`)
    }
    suggest(terminal, url, await sampleStart(client, signal))
  } finally {
    await client.close()
  }
}

/** Where the newest page of the sample begins, undefined when somebody has deleted it. */
async function sampleStart(client: HistoryClient, signal: AbortSignal): Promise<number | undefined> {
  try {
    const page = await client.session(SAMPLE_ID).page({ maxMessages: MESSAGES, signal })
    page.cancel()
    return page.from
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return undefined
    throw error
  }
}

/** Lines for a shell, each right as it stands. */
function suggest(terminal: Terminal, url: string, sampleFrom: number | undefined): void {
  const sample = `${url}/v1/sessions/${SAMPLE_ID}`
  const page = `${sample}/history?maxMessages=${MESSAGES}`
  const lines = ['# list the sessions', `curl '${url}/v1/sessions'`]
  if (sampleFrom !== undefined) {
    lines.push('# the newest page; its History-From and Link headers lead to the one before', `curl -i '${page}'`)
    if (sampleFrom > 0) lines.push('# the page before it', `curl '${page}&beforeSeq=${sampleFrom}'`)
    lines.push(
      '# append an event',
      `curl '${sample}/events' -H 'Content-Type: application/x-ndjson' -d '${SAMPLE_EVENT}'`,
      '# export the session',
      `curl '${sample}/export'`,
    )
  }
  terminal.write(`Try:\n${lines.map((line) => `  ${line}\n`).join('')}Everything else: ${url}/docs\n`)
}
