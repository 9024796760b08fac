// The host's side: events of a page in memory, packed and written as NDJSON, again and again in one process that is
// warm, since a host does little else.

import { encodeRecords, packEvents } from '../../codec/index.ts'
import type { PageFixtureName } from '../fixtures/index.ts'
import { pageEvents, represent } from '../fixtures/index.ts'
import { answerTask } from '../measuring/child-task.ts'
import { collectYoung } from '../measuring/heap.ts'

export interface PackPageTask {
  readonly fixture: PageFixtureName
  readonly rounds: number
}

/** Milliseconds of each round. */
export interface PackPageResult {
  readonly pack: number[]
  readonly serialise: number[]
  /** `encodeRecords` of the unpacked events, for comparison. */
  readonly serialiseRaw: number[]
}

const WARM_UP_ROUNDS = 2

await answerTask(({ fixture, rounds }: PackPageTask): PackPageResult => {
  const events = pageEvents(fixture)
  const raw = represent(events, 'raw')
  const result: PackPageResult = { pack: [], serialise: [], serialiseRaw: [] }
  for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
    collectYoung()
    const started = performance.now()
    const records = packEvents(events)
    const packed = performance.now()
    const bytes = encodeRecords(records).length
    const serialised = performance.now()
    const rawBytes = encodeRecords(raw).length
    const rawSerialised = performance.now()
    if (bytes > rawBytes) throw new Error('packing made the page longer')
    if (round < 0) continue
    result.pack.push(packed - started)
    result.serialise.push(serialised - packed)
    result.serialiseRaw.push(rawSerialised - serialised)
  }
  return result
})
