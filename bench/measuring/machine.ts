// What the figures depend on: the machine, and the versions that ran.

import { statfsSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import { DatabaseSync } from 'node:sqlite'

/** @param directory where the stores lie */
export function machineFacts(directory: string): Record<string, string | number> {
  const db = new DatabaseSync(':memory:')
  const sqlite = String(db.prepare('SELECT sqlite_version() AS version').get()?.version)
  db.close()
  return {
    processor: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryMiB: Math.round(totalmem() / 2 ** 20),
    system: `${type()} ${release()}`,
    node: process.version,
    sqlite,
    directory,
    filesystem: `0x${statfsSync(directory).type.toString(16)}`,
  }
}
