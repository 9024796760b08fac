import t from 'tap'
import { packEvents } from '../../../codec/index.ts'
import { Fold } from '../../../src/client/conversation/fold.ts'
import { OmittedRanges } from '../../../src/client/conversation/omitted-ranges.ts'
import { chatAssistant } from '../../../src/client/index.ts'
import { logOf, message, single, stepStart, textToken } from '../../support/conversations.ts'

const tokens = Array.from({ length: 20 }, (_, at) => textToken(`${at}`))

function folded(entries: ReturnType<typeof single>): Fold {
  const fold = new Fold(chatAssistant, new OmittedRanges(), () => {})
  for (const entry of entries) fold.take(entry)
  return fold
}

t.test('only what may still get a start keeps what it was told', async (t) => {
  const log = logOf([stepStart(), ...tokens])
  t.equal(folded(single(log)).instances[0]?.told, undefined)
  t.equal(folded(single(log.slice(1))).instances[0]?.told?.length, tokens.length)
})

t.test('a compacted run is kept as its row, so that a window open all day stays small', async (t) => {
  const log = logOf([textToken('other', { index: 1 }), ...tokens, message([])])
  const fold = folded(single(log))
  const [row] = packEvents(log.slice(1, 21))
  if (row?.type !== 'chunks') throw new Error('the tokens are one row')
  fold.compact(1, 21, row)
  t.same(
    fold.instances[0]?.told?.map(({ event }) => event.seq),
    [0, 1, 21],
  )
  fold.compact(1, 21, row)
  t.equal(fold.instances[0]?.told?.length, 3, 'once more changes nothing')
})
