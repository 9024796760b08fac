// The service under measurement: its own process with its own store, filled over HTTP.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { LogHeader, LogPiece } from '../fixtures/index.ts'
import { logBytes } from '../fixtures/index.ts'
import { MeasuredProcess } from './measured-process.ts'

/** What every measure is given. */
export interface Bench {
  /** Everything that is stored lies below. */
  readonly directory: string
  /** Fewer repetitions: a first look. */
  readonly quick: boolean
  /** Write a processor profile of each service process here. */
  readonly profiles: string | undefined
  /** Tell what is going on. */
  progress(text: string): void
}

/** The server alone: `scrollback serve` would read a page of its sample session first, and the process be no longer fresh. */
const PROGRAM = new URL('../../src/server/main.ts', import.meta.url).pathname

/** @param store a name for the store: the same name is the same store */
export function startService(bench: Bench, store: string): Promise<MeasuredProcess> {
  const profiling = bench.profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${bench.profiles}`]
  const data = join(bench.directory, store)
  mkdirSync(data, { recursive: true })
  return MeasuredProcess.startService([...profiling, PROGRAM], { SCROLLBACK_DATA: data, LOG_LEVEL: 'error' })
}

/** Import a session log. Returns the seconds that it took. */
export async function importSession(
  service: MeasuredProcess,
  header: LogHeader,
  pieces: Iterable<LogPiece>,
): Promise<number> {
  const started = performance.now()
  const request = {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: ReadableStream.from(logBytes(header, pieces, 'packed')),
    duplex: 'half',
  }
  const response = await fetch(`http://127.0.0.1:${service.port}/v1/sessions/import`, request as RequestInit)
  const text = await response.text()
  if (!response.ok) throw new Error(`import of ${header.id}: ${response.status} ${text}`)
  return (performance.now() - started) / 1000
}

/** Start a service over the store, fill it with the session, and stop it. Returns the import's seconds. */
export async function fillStore(
  bench: Bench,
  store: string,
  header: LogHeader,
  pieces: Iterable<LogPiece>,
): Promise<number> {
  const service = await startService(bench, store)
  try {
    return await importSession(service, header, pieces)
  } finally {
    await service.stop()
  }
}

export function newestPage(id: string): string {
  return `/v1/sessions/${id}/history`
}
