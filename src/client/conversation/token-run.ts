// Reads tokens out of an entry: one delta, or a row of them, as one run. The one place that knows both shapes.

import type { ChunkRowEvent, JsonValue } from '../../../codec/index.ts'
import { rowFragments } from '../../../codec/index.ts'
import type { EntryEvent } from './definition.ts'
import { field, integerField, textField } from './event-fields.ts'

export type TokenKind = 'text' | 'reasoning' | 'tool-call'

/** Consecutive tokens of one block. */
export interface TokenRun {
  readonly kind: TokenKind
  readonly index: number
  /** of the tool call; empty when it is not given */
  readonly id: string
  /** of the tool; empty when it is not given */
  readonly name: string
  readonly fragments: readonly string[]
  /** milliseconds from each token to the next */
  readonly gaps: readonly number[]
  readonly seq: number
  readonly time: number
}

/** A moment of the log. */
export interface Moment {
  readonly seq: number
  /** epoch ms */
  readonly time: number
}

const ROW_KINDS: Record<ChunkRowEvent['type'], TokenKind> = {
  'chunkrow/text-chunks': 'text',
  'chunkrow/reasoning-chunks': 'reasoning',
  'chunkrow/tool-call-chunks': 'tool-call',
}

const NO_GAPS: readonly number[] = []

export function isRow(event: EntryEvent): event is ChunkRowEvent {
  return Object.hasOwn(ROW_KINDS, event.type)
}

/** The tokens of a row. */
export function rowRun(row: ChunkRowEvent): TokenRun {
  const { seq, time, data } = row
  const fragments = rowFragments(row)
  const { id = '', name = '' } = data as { id?: string; name?: string }
  return { kind: ROW_KINDS[row.type], index: data.index, id, name, fragments, gaps: data.dt, seq, time }
}

/** The token of a delta; undefined for a chunk that is none. Other fields than the known ones are welcome. */
export function deltaRun(chunk: JsonValue | undefined, seq: number, time: number): TokenRun | undefined {
  const kind = deltaKind(field(chunk, 'type'))
  const index = integerField(chunk, 'index')
  if (kind === undefined || index === undefined) return undefined
  const text = textField(chunk, kind === 'tool-call' ? 'argumentsDelta' : 'text')
  if (text === undefined) return undefined
  const id = kind === 'tool-call' ? (textField(chunk, 'id') ?? '') : ''
  const name = kind === 'tool-call' ? (textField(chunk, 'name') ?? '') : ''
  return { kind, index, id, name, fragments: [text], gaps: NO_GAPS, seq, time }
}

function deltaKind(type: JsonValue | undefined): TokenKind | undefined {
  if (type === 'text-delta') return 'text'
  if (type === 'reasoning-delta') return 'reasoning'
  return type === 'tool-call-delta' ? 'tool-call' : undefined
}

/** What the fragments make together. */
export function runText({ fragments }: TokenRun): string {
  return fragments.length === 1 ? (fragments[0] as string) : fragments.join('')
}

/** The moment of the first token whose fragment passes. */
export function firstMoment(run: TokenRun, passes: (fragment: string) => boolean): Moment | undefined {
  const place = run.fragments.findIndex(passes)
  return place === -1 ? undefined : { seq: run.seq + place, time: timeAt(run, place) }
}

/** The moment of the first token that carries something: text, reasoning, arguments or a tool's name. */
export function firstToken(run: TokenRun): Moment | undefined {
  // A name is given with each token of a row, so with its first one.
  return run.name === '' ? firstMoment(run, (fragment) => fragment !== '') : { seq: run.seq, time: run.time }
}

/** The moment of the last token. */
export function lastMoment(run: TokenRun): Moment {
  const place = run.fragments.length - 1
  return { seq: run.seq + place, time: timeAt(run, place) }
}

function timeAt({ time, gaps }: TokenRun, place: number): number {
  let at = time
  for (let gap = 0; gap < place; gap++) at += gaps[gap] as number
  return at
}

/** The last seq of an event or a row. */
export function lastSeqOf(event: EntryEvent): number {
  return isRow(event) ? event.seq + event.data.dt.length : event.seq
}

/** Whether a text holds something other than white space. */
export function isVisible(text: string): boolean {
  return /\S/.test(text)
}
