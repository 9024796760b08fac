// Reading views as a screen does, to their last character. A text that was put together from many may be made only when
// somebody looks at it; without looking, that cost would be missing, and an optimiser might leave out the work itself.

import { createHash } from 'node:crypto'

export interface ReadViews {
  readonly items: number
  /** Characters of all texts. */
  readonly characters: number
  /** Of the assistant's steps together; 0 when no token was in the window. */
  readonly deltas: number
  /** -1 when no token was in the window. */
  readonly lastDeltaSeq: number
  /** First 16 hexadecimal digits of the SHA-256 of the views' JSON; empty unless it was asked for. */
  readonly checksum: string
}

export function readViews(views: readonly object[], { hashed = false } = {}): ReadViews {
  const checksum = hashed ? createHash('sha256').update(JSON.stringify(views)).digest('hex').slice(0, 16) : ''
  let deltas = 0
  let lastDeltaSeq = -1
  for (const view of views as readonly { kind?: unknown; deltas?: number; lastDeltaSeq?: number }[]) {
    if (view.kind !== 'assistant') continue
    deltas += view.deltas ?? 0
    lastDeltaSeq = Math.max(lastDeltaSeq, view.lastDeltaSeq ?? -1)
  }
  return { items: views.length, characters: characters(views), deltas, lastDeltaSeq, checksum }
}

function characters(value: unknown): number {
  if (typeof value === 'string') return touched(value)
  if (typeof value !== 'object' || value === null) return 0
  let sum = 0
  for (const part of Object.values(value)) sum += characters(part)
  return sum
}

/** A character can be given only once the text is whole. */
function touched(text: string): number {
  if (text.length > 0 && Number.isNaN(text.charCodeAt(text.length - 1))) throw new RangeError('a text without an end')
  return text.length
}
