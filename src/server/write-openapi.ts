// Writes openapi.yaml from the routes; with --check it only compares, and fails when the file is not what it would write.
//
//   node src/server/write-openapi.ts [--check]

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSqliteStore } from '../stores/index.ts'
import { buildApp } from './app.ts'
import { DEFAULT_CONFIG } from './config.ts'

const FILE = new URL('../../openapi.yaml', import.meta.url)

/** The description as the service gives it. */
export async function openapiText(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'scrollback-'))
  const store = await openSqliteStore(join(folder, 'empty.db'))
  const app = await buildApp({ store, config: DEFAULT_CONFIG, logger: false })
  const text = app.swagger({ yaml: true })
  await app.close()
  await store.close()
  await rm(folder, { recursive: true })
  return text
}

async function run(check: boolean): Promise<void> {
  const text = await openapiText()
  if (!check) return writeFile(FILE, text)
  const written = await readFile(FILE, 'utf8').catch(() => '')
  if (written === text) return
  console.error('openapi.yaml is not what the routes describe: run node src/server/write-openapi.ts')
  process.exitCode = 1
}

if (import.meta.main) await run(process.argv.includes('--check'))
