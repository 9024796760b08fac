import t from 'tap'
import type { JsonValue } from '../../../codec/index.ts'
import { Blocks } from '../../../src/client/conversation/blocks.ts'
import { deltaRun } from '../../../src/client/conversation/token-run.ts'

type Chunk = { [key: string]: JsonValue }

function start(index: number, blockType: string): Chunk {
  return { type: 'block-start', index, blockType }
}

function text(index: number, fragment: string, kind = 'text-delta'): Chunk {
  return { type: kind, index, text: fragment }
}

function call(index: number, id: string | undefined, argumentsDelta: string, name?: string): Chunk {
  return {
    ...{ type: 'tool-call-delta', index, argumentsDelta },
    ...(id !== undefined && { id }),
    ...(name !== undefined && { name }),
  }
}

function end(index: number, block: Chunk): Chunk {
  return { type: 'block-end', index, block }
}

function fed(chunks: readonly Chunk[]): Blocks {
  const blocks = new Blocks()
  for (const chunk of chunks) feed(blocks, chunk)
  return blocks
}

function feed(blocks: Blocks, chunk: Chunk): void {
  if (chunk.type === 'block-start') blocks.open(chunk)
  else if (chunk.type === 'block-end') blocks.close(chunk)
  else {
    const run = deltaRun(chunk, 0, 0)
    if (run) blocks.add(run)
  }
}

const calls = (...each: [callId: string, name: string, argsRaw: string, index?: number][]) =>
  each.map(([callId, name, argsRaw, index = 0]) => ({ type: 'tool-call', index, callId, name, argsRaw }))

// Providers break every rule of opening, filling and closing (cases E14, E16): what was sent for a block is in it.
const TABLE: [what: string, chunks: Chunk[], blocks: object[]][] = [
  ['nothing', [], []],
  ['a block that is opened and gets nothing', [start(0, 'text')], [{ type: 'text', index: 0, text: '' }]],
  [
    'deltas without a start',
    [text(1, 'a'), text(0, 'r', 'reasoning-delta'), text(1, 'b')],
    [
      { type: 'reasoning', index: 0, text: 'r' },
      { type: 'text', index: 1, text: 'ab' },
    ],
  ],
  ['an end without a start', [end(0, { type: 'text', text: 'all' })], [{ type: 'text', index: 0, text: 'all' }]],
  [
    'two starts before anything came',
    [start(0, 'text'), start(0, 'text'), text(0, 'a')],
    [{ type: 'text', index: 0, text: 'a' }],
  ],
  [
    'a second start when something had come',
    [start(0, 'text'), text(0, 'a'), start(0, 'text'), text(0, 'b')],
    [
      { type: 'text', index: 0, text: 'a' },
      { type: 'text', index: 0, text: 'b' },
    ],
  ],
  [
    'an end is the last word on what came, and ends it',
    [start(0, 'text'), text(0, 'ab'), end(0, { type: 'text', text: 'AB' }), text(0, 'c')],
    [
      { type: 'text', index: 0, text: 'AB' },
      { type: 'text', index: 0, text: 'c' },
    ],
  ],
  [
    'two kinds at one index',
    [text(0, 'a'), text(0, 'r', 'reasoning-delta'), text(0, 'b')],
    [
      { type: 'text', index: 0, text: 'ab' },
      { type: 'reasoning', index: 0, text: 'r' },
    ],
  ],
  ['halves of a pair', [text(0, '\ud83d'), text(0, '\ude00')], [{ type: 'text', index: 0, text: '😀' }]],
  [
    'one call: the first id that is not empty, the latest name',
    [start(0, 'tool-call'), call(0, '', '{', 'wri'), call(0, 'a', '"x"', 'write'), call(0, 'a', ':1}')],
    calls(['a', 'write', '{"x":1}']),
  ],
  [
    'an id on the first delta only',
    [call(0, 'a', '{', 'w'), call(0, undefined, '1'), call(0, '', '}')],
    calls(['a', 'w', '{1}']),
  ],
  [
    'four calls that share an index, one after the other',
    ['a', 'b', 'c', 'd'].flatMap((id) => [call(0, id, `${id}1`, 'w'), call(0, id, `${id}2`, 'w')]),
    calls(['a', 'w', 'a1a2'], ['b', 'w', 'b1b2'], ['c', 'w', 'c1c2'], ['d', 'w', 'd1d2']),
  ],
  [
    'two calls that share an index, in turns',
    [call(0, 'a', 'a1'), call(0, 'b', 'b1'), call(0, 'a', 'a2'), call(0, 'b', 'b2')],
    calls(['a', '', 'a1a2'], ['b', '', 'b1b2']),
  ],
  [
    'two calls in turns, each at its index, ids on the first deltas only',
    [call(0, 'a', 'a1', 'x'), call(1, 'b', 'b1', 'x'), call(0, '', 'a2'), call(1, '', 'b2')],
    calls(['a', 'x', 'a1a2', 0], ['b', 'x', 'b1b2', 1]),
  ],
  [
    'one tool three times in a row at one index, opened and closed',
    ['a', 'b', 'c'].flatMap((id) => [
      start(0, 'tool-call'),
      call(0, id, `{"${id}`, 'w'),
      end(0, { type: 'tool-call', id, name: 'w', arguments: `{"${id}":1}` }),
    ]),
    calls(['a', 'w', '{"a":1}'], ['b', 'w', '{"b":1}'], ['c', 'w', '{"c":1}']),
  ],
  [
    'an end names the call it ends',
    [
      call(0, 'a', 'a1'),
      call(0, 'b', 'b1'),
      end(0, { type: 'tool-call', id: 'a', name: 'w', arguments: 'A' }),
      call(0, 'b', 'b2'),
    ],
    calls(['a', 'w', 'A'], ['b', '', 'b1b2']),
  ],
  [
    'calls that never had an id, each closed before the next',
    [call(0, '', 'x', 'w'), end(0, { type: 'tool-call', name: 'w', arguments: 'x' }), call(0, '', 'y', 'w')],
    calls(['', 'w', 'x'], ['', 'w', 'y']),
  ],
  [
    'arguments that come as a value at the end',
    [call(0, 'a', '{"x"'), end(0, { type: 'tool-call', id: 'a', name: 'w', arguments: { x: 1 } })],
    calls(['a', 'w', '{"x":1}']),
  ],
  [
    'another kind of block',
    [start(0, 'image'), end(0, { type: 'image', url: 'u' }), start(1, 'audio')],
    [
      { type: 'other', index: 0, blockType: 'image', block: { type: 'image', url: 'u' } },
      { type: 'other', index: 1, blockType: 'audio' },
    ],
  ],
  [
    'what is no chunk of a block is none',
    [
      start(-1, 'text'),
      { type: 'block-start', index: 0 },
      { type: 'block-end', index: 0 },
      { type: 'text-delta', index: 0 },
    ].slice(1),
    [],
  ],
]

for (const [what, chunks, blocks] of TABLE) {
  t.test(what, async (t) => {
    t.strictSame(fed(chunks).view(), blocks)
  })
}

t.test('the blocks of a message take the place of all, by their order in it', async (t) => {
  const blocks = fed([text(3, 'partial')])
  blocks.settle([
    { type: 'reasoning', text: 'r' },
    { type: 'tool-call', id: 'a', name: 'w', arguments: '{}' },
    null,
    'odd',
  ])
  t.strictSame(blocks.view(), [
    { type: 'reasoning', index: 0, text: 'r' },
    { type: 'tool-call', index: 1, callId: 'a', name: 'w', argsRaw: '{}' },
    { type: 'other', index: 2, blockType: '', block: null },
    { type: 'other', index: 3, blockType: '', block: 'odd' },
  ])
})

t.test('a block that did not change is the same object', async (t) => {
  const blocks = fed([text(0, 'a'), text(1, 'b')])
  const before = blocks.view()
  t.equal(blocks.view(), before)
  feed(blocks, text(1, 'c'))
  const after = blocks.view()
  t.equal(after[0], before[0])
  t.not(after[1], before[1])
  t.strictSame(before[1], { type: 'text', index: 1, text: 'b' }, 'what was given stays as it was')
})
