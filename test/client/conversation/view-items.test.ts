import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import t from 'tap'
import { Instance } from '../../../src/client/conversation/instance.ts'
import { ViewItems } from '../../../src/client/conversation/view-items.ts'
import type { AnyDefinition } from '../../../src/client/index.ts'
import { inTime } from '../../support/arbitraries.ts'

interface Shown {
  seq: number | undefined
}

/** Shows what its state says: at a place, or nothing. */
function definition(name: string): AnyDefinition {
  return {
    name,
    initial: (): Shown => ({ seq: undefined }),
    match: () => null,
    start: () => {},
    update: () => true,
    view: ({ state, firstSeq }) => (state.seq === undefined ? undefined : { seq: state.seq, name, firstSeq }),
  }
}

const DEFINITIONS = [definition('a'), definition('b')]

function instance(rank: number, firstSeq: number, seq: number | undefined): Instance {
  const made = new Instance(
    DEFINITIONS[rank] as AnyDefinition,
    { id: `${firstSeq}` },
    { firstSeq, isComplete: true, isKept: false },
  )
  ;(made.state as Shown).seq = seq
  return made
}

/** Moves it; the next view of it is another object. */
function move(moved: Instance, seq: number | undefined): void {
  ;(moved.state as Shown).seq = seq
  moved.markOmitted()
}

t.test('items stand by their place, then by the order of their definitions', async (t) => {
  const view = new ViewItems(DEFINITIONS)
  for (const each of [instance(1, 0, 3), instance(0, 1, 3), instance(0, 2, 1), instance(1, 3, undefined)])
    view.changed(each)
  t.match(view.items(), [
    { name: 'a', seq: 1 },
    { name: 'a', seq: 3 },
    { name: 'b', seq: 3 },
  ])
})

t.test('what was given stays as it is', async (t) => {
  const view = new ViewItems(DEFINITIONS)
  const [one, two] = [instance(0, 0, 0), instance(0, 1, 1)]
  for (const each of [one, two]) view.changed(each)
  const before = view.items()
  const copy = [...before]
  view.changed(one)
  t.equal(view.items(), before, 'told to have changed, and the same')
  move(one, 5)
  view.changed(one)
  const after = view.items()
  t.strictSame(before, copy)
  t.not(after, before)
  t.equal(after[0], before[1])
  t.match(after[1], { seq: 5 })
  move(two, undefined)
  view.changed(two)
  t.match(view.items(), [{ seq: 5 }])
})

t.test('patched or sorted anew, it is the same', async () => {
  const step = fc.record({
    rank: fc.nat({ max: 1 }),
    old: fc.option(fc.nat({ max: 60 }), { nil: undefined }),
    seq: fc.option(fc.nat({ max: 20 }), { nil: undefined }),
  })
  fc.assert(
    fc.property(fc.array(fc.array(step, { maxLength: 45 }), { maxLength: 6 }), (rounds) => {
      const view = new ViewItems(DEFINITIONS)
      const instances: Instance[] = []
      for (const round of rounds) {
        for (const { rank, old, seq } of round) {
          const there = old === undefined ? undefined : instances[old]
          const changed = there ?? instance(rank, instances.length, seq)
          if (there) move(there, seq)
          else instances.push(changed)
          view.changed(changed)
        }
        const anew = new ViewItems(DEFINITIONS)
        for (const each of instances) anew.changed(each)
        deepStrictEqual(view.items(), anew.items())
      }
    }),
    inTime(400),
  )
})
