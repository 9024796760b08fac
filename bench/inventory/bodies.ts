// The bytes of a page in each representation, and what a server would make of them by compressing.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import type { SessionEvent } from '../../codec/index.ts'
import { encodeRecords } from '../../codec/index.ts'
import type { PageFixtureName, Representation } from '../fixtures/index.ts'
import { pageEvents, REPRESENTATIONS, represent, withOmitted } from '../fixtures/index.ts'
import type { Bench } from '../measuring/service.ts'

/** What the service compresses with. */
export const GZIP_LEVEL = 6
export const BROTLI_QUALITY = 4
const BROTLI_WINDOW = 18

export interface Sizes {
  readonly records: number
  /** NDJSON as it is on the wire. */
  readonly jsonBytes: number
  readonly gzipBytes: number
  readonly brotliBytes: number
}

export interface Body extends Sizes {
  /** What a client reads. */
  readonly file: string
  /** Of the file: the projection has a record more for each stretch that was left out, or nobody could fold it. */
  readonly fileBytes: number
}

export interface Bodies {
  readonly events: number
  /** Every event as a line of its own, without the frame that makes a record of it. */
  readonly bareEventBytes: number
  readonly bodies: Readonly<Record<Representation, Body>>
}

export function writeBodies({ directory, progress }: Bench, fixture: PageFixtureName): Bodies {
  progress(`${fixture}: three representations, compressed`)
  const events = pageEvents(fixture)
  const entries = REPRESENTATIONS.map((as) => {
    const file = join(directory, `${fixture}-${as}.ndjson`)
    return [as, writeBody(events, as, file)] as const
  })
  return { events: events.length, bareEventBytes: bareBytes(events), bodies: byRepresentation(entries) }
}

export function sizesOf(records: number, body: Uint8Array): Sizes {
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY, [constants.BROTLI_PARAM_LGWIN]: BROTLI_WINDOW }
  return {
    records,
    jsonBytes: body.length,
    gzipBytes: gzipSync(body, { level: GZIP_LEVEL }).length,
    brotliBytes: brotliCompressSync(body, { params }).length,
  }
}

export function byRepresentation<Value>(
  entries: Iterable<readonly [Representation, Value]>,
): Record<Representation, Value> {
  return Object.fromEntries(entries) as Record<Representation, Value>
}

/** Percent fewer bytes. */
export function fewer(bytes: number, than: number): number {
  return (1 - bytes / than) * 100
}

function writeBody(events: readonly SessionEvent[], as: Representation, file: string): Body {
  const records = represent(events, as)
  const body = Buffer.from(encodeRecords(records))
  const read = as === 'projected' ? Buffer.from(encodeRecords(withOmitted(events))) : body
  writeFileSync(file, read)
  return { ...sizesOf(records.length, body), file, fileBytes: read.length }
}

function bareBytes(events: readonly SessionEvent[]): number {
  let bytes = 0
  for (const event of events) bytes += Buffer.byteLength(JSON.stringify(event)) + 1
  return bytes
}
