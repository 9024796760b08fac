// The bare rate of one SQLite commit a batch: no HTTP, no parsing, one process that does nothing else. Prints JSON.
// Arguments: the table's file, how many sessions take turns, milliseconds of warm-up, milliseconds measured.

import { readFileSync } from 'node:fs'
import { BATCH_EVENTS, tokenBatch } from '../measuring/append-load.ts'
import { BatchTable } from './batch-table.ts'
import { linesOf } from './lines-file.ts'

const [path, sessions, warmUpMs, measureMs] = process.argv.slice(2) as [string, string, string, string]
const table = new BatchTable(path)
const body = tokenBatch(0)
const batch = [...linesOf(body)]

run(Number(warmUpMs))
const writtenBefore = writtenBytes()
const latencies: number[] = []
const started = performance.now()
const batches = run(Number(measureMs), latencies)
const elapsed = performance.now() - started

// Each line without its newline, as the load counts them.
const eventBytes = batches * (body.length - BATCH_EVENTS)
const result = { batches, elapsed, latencies, eventBytes, writtenBytes: writtenBytes() - writtenBefore }
console.log(JSON.stringify(result))

function run(milliseconds: number, latencies: number[] = []): number {
  let commits = 0
  let now = performance.now()
  const end = now + milliseconds
  while (now < end) {
    table.commit(commits++ % Number(sessions), batch)
    const then = now
    now = performance.now()
    latencies.push(now - then)
  }
  return commits
}

function writtenBytes(): number {
  const [, bytes] = /^write_bytes: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8')) ?? []
  return Number(bytes)
}
