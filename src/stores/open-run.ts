// The open run read back from its pieces: the records that hold the deltas stored since the run began.

import { deltaOf, members, Run, validateRecord } from '../../codec/index.ts'

const decoder = new TextDecoder()

/** @param lines record lines of consecutive deltas of one run, in order */
export function runOfPieces(lines: Iterable<Uint8Array>): Run | undefined {
  let run: Run | undefined
  for (const line of lines) {
    const record = validateRecord(JSON.parse(decoder.decode(line)))
    if (record.type === 'omitted') throw new Error('an omitted range is stored')
    for (const { delta, seq, time } of record.type === 'chunks' ? members(record.event) : single(record.event)) {
      if (run) run.add(delta, seq, time)
      else run = new Run(delta, seq, time)
    }
  }
  return run
}

function* single(event: Parameters<typeof deltaOf>[0]) {
  const delta = deltaOf(event)
  if (!delta) throw new Error(`event ${event.seq} is no delta of an open run`)
  yield { delta, seq: event.seq, time: event.time }
}
