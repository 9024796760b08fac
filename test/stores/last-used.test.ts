// What is kept of many things is what was used last.

import t from 'tap'
import { LastUsed } from '../../src/stores/last-used.ts'

const KEYS = ['a', 'b', 'c', 'd', 'e']

type Kept = LastUsed<string, { key: string }>

/** The keys that are there after these steps. To ask for one uses it, so each is asked of a copy of its own. */
function keysAfter(steps: (kept: Kept) => void, most = 3): string {
  const has = (key: string) => {
    const kept: Kept = new LastUsed(most)
    steps(kept)
    return kept.get(key)?.key === key
  }
  return KEYS.filter(has).join('')
}

t.test('one more than there is room for puts out the one not used for longest', (t) => {
  const fill = (keys: string) => (kept: Kept) => {
    for (const key of keys) kept.set(key, { key })
  }
  t.equal(keysAfter(fill('')), '')
  t.equal(keysAfter(fill('abc')), 'abc')
  t.equal(keysAfter(fill('abcd')), 'bcd')
  t.equal(keysAfter(fill('abcde')), 'cde')
  t.equal(keysAfter(fill('abcde'), 1), 'e')
  t.equal(keysAfter(fill('abcad')), 'acd', 'what is set again is used')
  t.equal(keysAfter(fill('abca')), 'abc', 'and takes no room')
  const used = (kept: Kept) => {
    fill('abc')(kept)
    kept.get('a')
    kept.get('nothing')
    kept.set('d', { key: 'd' })
  }
  t.equal(keysAfter(used), 'acd', 'what is looked up is used')
  t.end()
})

t.test('the value is the last one set, until it is deleted', (t) => {
  const kept = new LastUsed<number, { value: number }>(2)
  kept.set(1, { value: 1 })
  kept.set(2, { value: 2 })
  kept.set(1, { value: 3 })
  t.strictSame([kept.get(1), kept.get(2), kept.get(3)], [{ value: 3 }, { value: 2 }, undefined])
  kept.delete(1)
  kept.delete(3)
  t.strictSame([kept.get(1), kept.get(2)], [undefined, { value: 2 }])
  kept.set(3, { value: 3 })
  t.strictSame([kept.get(2), kept.get(3)], [{ value: 2 }, { value: 3 }], 'what was deleted leaves room')
  kept.clear()
  t.strictSame([kept.get(2), kept.get(3)], [undefined, undefined])
  t.end()
})
