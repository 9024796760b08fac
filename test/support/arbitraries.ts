/**
 * Owns what the property tests draw from: text that is hard to carry, JSON as values and as raw text, deltas, events,
 * whole logs, and ways to slice bytes.
 */
import fc from 'fast-check'
import type { Delta, DeltaKind, SessionEvent, SurfaceOp } from '../../codec/event.ts'
import { deltaEvent, isReservedType } from '../../codec/event.ts'
import type { JsonValue } from '../../codec/json-text.ts'

/** For `fc.assert`: stops after two seconds, which is no failure. */
export function inTime(numRuns = 1000): fc.Parameters<unknown> {
  return { numRuns, interruptAfterTimeLimit: 2000, markInterruptAsFailure: false }
}

// ---- text ---------------------------------------------------------------------------------------------------------

const HARD_PIECES = [
  '',
  '\u0000',
  '\u001f',
  '\u007f',
  '\n',
  '\r\n',
  '"',
  '\\',
  '\\"',
  '/',
  '\u0085',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\ud83d',
  '\ude00',
  '😀',
  'é',
  'Я',
  '漢',
  '{}[],:',
  '__proto__',
  ' ',
] as const

/** Any UTF-16 text: controls, halves of pairs, separators, quotes and backslashes among plain letters. */
export const hardText: fc.Arbitrary<string> = fc
  .array(fc.oneof({ weight: 3, arbitrary: fc.string({ maxLength: 8 }) }, fc.constantFrom(...HARD_PIECES)), {
    maxLength: 6,
  })
  .map((pieces) => pieces.join(''))

export const hardKey: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    '2',
    '1',
    'type',
    'seq',
    'data',
    'text',
    '__proto__',
    'constructor',
    'toString',
    'a\u0000b',
  ),
  hardText,
)

// ---- JSON as values -----------------------------------------------------------------------------------------------

/** Numbers that `JSON.stringify` and `JSON.parse` carry unchanged; so not -0 and nothing infinite. */
const jsonNumber: fc.Arbitrary<number> = fc
  .oneof(fc.integer(), fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .map((number) => (Object.is(number, -0) ? 0 : number))

/** `__proto__` becomes a key like any other, as it does in `JSON.parse`. */
export function ownObject(entries: Iterable<readonly [string, JsonValue]>): { [key: string]: JsonValue } {
  return Object.fromEntries(entries)
}

/** A value that comes back equal from its JSON text. */
export const jsonValue: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(fc.constantFrom(null, true, false), jsonNumber, hardText),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(hardKey, tie('value')), { maxLength: 4 }).map(ownObject),
  ),
})).value

// ---- JSON as raw text ---------------------------------------------------------------------------------------------

/** Spellings that a parser turns into another number, or into the same number spelled in another way. */
export const ODD_NUMBERS = [
  '-0',
  '0.0',
  '-0.0',
  '1.0',
  '1e0',
  '1E5',
  '1e+2',
  '0.1e1',
  '1e400',
  '-1e400',
  '1e-400',
  '9007199254740993',
  '2512292042121000001',
  '123456789012345678901234567890',
  '0.30000000000000004441',
] as const

const rawNumber: fc.Arbitrary<string> = fc.oneof(fc.constantFrom(...ODD_NUMBERS), fc.integer().map(String))

/** One of the spellings that JSON has for a text; the first is that of `JSON.stringify`. */
export function rawString(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(text, fc.nat({ max: 3 })).map(([value, spelling]) => {
    const plain = JSON.stringify(value)
    if (spelling === 1) return plain.replaceAll('/', '\\/')
    if (spelling === 2) return `"${Array.from({ length: value.length }, (_, i) => unicodeEscape(value, i)).join('')}"`
    if (spelling === 3 && value !== '' && !isHalf(value, 0))
      return `"${unicodeEscape(value, 0)}${plain.slice(escapedLength(plain))}`
    return plain
  })
}

function unicodeEscape(text: string, at: number): string {
  return `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`
}

function isHalf(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xf800) === 0xd800
}

/** Where the second character begins in a JSON string text. */
function escapedLength(plain: string): number {
  if (plain[1] !== '\\') return 2
  return plain[2] === 'u' ? 7 : 3
}

/** White space that may stand between two tokens. */
export const space: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  fc.constantFrom(' ', '\n', '\r\n', '\t', '  \t'),
)

/**
 * The tokens of a JSON value, so that a test can put white space between them: joined with nothing they are the compact
 * text. Keys may be given twice, numbers and strings may be spelled oddly.
 */
export const jsonTokens: fc.Arbitrary<string[]> = fc.letrec<{ value: string[] }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.oneof(fc.constantFrom('null', 'true', 'false'), rawNumber, rawString(hardText)).map((token) => [token]),
    fc.array(tie('value'), { maxLength: 4 }).map((items) => bracketed('[', items, ']')),
    fc.array(fc.tuple(rawString(hardKey), tie('value')), { maxLength: 4 }).map((members) =>
      bracketed(
        '{',
        members.map(([key, value]) => [key, ':', ...value]),
        '}',
      ),
    ),
  ),
})).value

function bracketed(open: string, items: string[][], close: string): string[] {
  return [open, ...items.flatMap((item, index) => (index === 0 ? item : [',', ...item])), close]
}

/** Compact JSON text of any value, as odd as JSON allows. */
export const rawJson: fc.Arbitrary<string> = jsonTokens.map((tokens) => tokens.join(''))

/** A JSON text with white space in it, and the compact text of the same. */
export const spacedJson: fc.Arbitrary<{ spaced: string; compact: string }> = spacedTokens(jsonTokens)

export function spacedTokens(tokens: fc.Arbitrary<string[]>): fc.Arbitrary<{ spaced: string; compact: string }> {
  return fc.tuple(tokens, fc.array(space, { minLength: 1, maxLength: 12 })).map(([each, spaces]) => ({
    compact: each.join(''),
    spaced: each.map((token, index) => spaces[index % spaces.length] + token).join('') + spaces[0],
  }))
}

// ---- deltas and events --------------------------------------------------------------------------------------------

/** Small and huge places alike. */
const place = fc.oneof({ weight: 5, arbitrary: fc.nat({ max: 5 }) }, fc.maxSafeInteger())
export const seqNumber: fc.Arbitrary<number> = fc.oneof(fc.nat({ max: 1000 }), fc.maxSafeNat())
export const timeNumber: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: 1_700_000_000_000, max: 1_900_000_000_000 }),
  fc.maxSafeInteger(),
)

export const deltaKind: fc.Arbitrary<DeltaKind> = fc.constantFrom('text-delta', 'reasoning-delta', 'tool-call-delta')

/** Any packable delta. */
export const delta: fc.Arbitrary<Delta> = fc
  .record({
    kind: deltaKind,
    turn: place,
    step: place,
    index: place,
    id: hardText,
    name: fc.option(hardText, { nil: undefined }),
    fragment: hardText,
  })
  .map((drawn) => (drawn.kind === 'tool-call-delta' ? drawn : { ...drawn, id: undefined, name: undefined }))

/** Open types only; the words of the formats are not among them. */
export const eventType: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom('turn/start', 'step/end', 'tool/call', 'llm/retry', 'x', '__proto__', 'assistant/chunk', 'end-seed'),
  hardText.filter((text) => text !== '' && !isReservedType(text)),
)

/**
 * An event that is not on the surface and not packable in most cases, without place. Its raw text is
 * `{"type":…,"seq":…,"time":…,"data":…}` with unknown fields behind, `data` as odd as JSON allows.
 */
export const rawEvent: fc.Arbitrary<{ text: string; seq: number; time: number }> = fc
  .record({
    type: rawString(eventType),
    seq: seqNumber,
    time: timeNumber,
    data: rawJson,
    ignorable: fc.boolean(),
    extra: fc.option(fc.tuple(rawString(hardText.map((text) => `x${text}`)), rawJson), { nil: undefined }),
    order: fc.nat({ max: 3 }),
  })
  .map(({ type, seq, time, data, ignorable, extra, order }) => {
    const members = [`"type":${type}`, `"seq":${seq}`, `"time":${time}`, `"data":${data}`]
    if (ignorable) members.push('"ignorable":true')
    if (extra !== undefined) members.push(`${extra[0]}:${extra[1]}`)
    const turned = [...members.slice(order), ...members.slice(0, order)]
    return { text: `{${turned.join(',')}}`, seq, time }
  })

// ---- logs ---------------------------------------------------------------------------------------------------------

/** An event before it has its place; `pick` chooses among what the log holds by then. */
type Step =
  | { does: 'run'; delta: Delta; fragments: string[]; gaps: number[] }
  | { does: 'event'; event: Omit<SessionEvent, 'seq' | 'time'>; gap: number }
  | {
      does: 'surface'
      type: 'user/message' | 'assistant/message' | 'tool/result'
      data: JsonValue
      sources: number[] | undefined
      on: boolean
      gap: number
    }
  | {
      does: 'replace'
      type: 'user/message' | 'assistant/message' | 'tool/result'
      data: JsonValue
      pick: [number, number]
      gap: number
    }
  | { does: 'clock'; time: number }

/** Mostly forward by little, sometimes back. */
const gap = fc.oneof({ weight: 6, arbitrary: fc.nat({ max: 50 }) }, fc.integer({ min: -10_000, max: 10_000 }))

/** Few blocks, so that runs meet, go on and are broken off by one another. */
const blockOf = fc
  .record({
    kind: deltaKind,
    turn: fc.nat({ max: 1 }),
    step: fc.nat({ max: 1 }),
    index: fc.nat({ max: 1 }),
    id: fc.constantFrom('', 'call_1', 'call_2'),
    name: fc.constantFrom(undefined, '', 'bash'),
    fragment: fc.constant(''),
  })
  .map((drawn) => (drawn.kind === 'tool-call-delta' ? drawn : { ...drawn, id: undefined, name: undefined }))

const run: fc.Arbitrary<Step> = fc
  .tuple(
    blockOf,
    fc.array(fc.tuple(fc.oneof(hardText, fc.constantFrom(' ', 'a', '')), gap), { minLength: 1, maxLength: 9 }),
  )
  .map(([block, members]) => ({
    does: 'run',
    delta: block,
    fragments: members.map(([fragment]) => fragment),
    gaps: members.map(([, each]) => each),
  }))

/** Chunks that are none of the packable shapes, each odd in one way, and the chunks that are no deltas. */
const otherChunk: fc.Arbitrary<Omit<SessionEvent, 'seq' | 'time'>> = fc
  .tuple(
    fc.constantFrom<JsonValue>(
      { type: 'block-start', index: 0, blockType: 'text' },
      { type: 'block-end', index: 0, block: { type: 'text', text: 'ab' } },
      { type: 'usage', usage: { inputTokens: 1, outputTokens: 2 } },
      { type: 'finish', reason: 'stop' },
      { type: 'text-delta', index: 0, text: 'a', extra: 1 },
      { type: 'text-delta', index: '0', text: 'a' },
      { type: 'text-delta', index: 0.5, text: 'a' },
      { type: 'text-delta', index: 2 ** 53, text: 'a' },
      { type: 'text-delta', index: 0, text: null },
      { type: 'text-delta', index: 0 },
      { type: 'reasoning-delta', index: 0, text: 'a', id: 'b' },
      { type: 'tool-call-delta', index: 0, argumentsDelta: '{}' },
      { type: 'tool-call-delta', index: 0, id: 'a', name: null, argumentsDelta: '' },
      { type: 'tool-call-delta', index: 0, id: 'a', text: '' },
      { type: 'image-delta', index: 0, text: 'a' },
      ownObject([
        ['type', 'text-delta'],
        ['index', 0],
        ['__proto__', 'a'],
      ]),
      'text-delta',
      null,
    ),
    fc.nat({ max: 3 }),
  )
  .map(([chunk, odd]) => {
    const data: JsonValue = odd === 1 ? { turn: 0, step: 0, chunk, more: 1 } : { turn: 0, step: 0, chunk }
    const event = { type: 'assistant/chunk', data }
    if (odd === 2) return { ...event, ignorable: true as const }
    return odd === 3 ? { ...event, unknownField: [1] } : event
  })

const scalarEvent: fc.Arbitrary<Omit<SessionEvent, 'seq' | 'time'>> = fc.oneof(
  fc.constantFrom<Omit<SessionEvent, 'seq' | 'time'>>(
    { type: 'turn/start', data: { turn: 0 } },
    { type: 'turn/end', data: { turn: 0, reason: { kind: 'done' } } },
    { type: 'step/start', data: { turn: 0, step: 0 } },
    { type: 'step/end', data: { turn: 0, step: 0 } },
    { type: 'tool/call', data: { turn: 0, step: 0, callId: 'call_1', name: 'bash', arguments: '{}' } },
    { type: 'llm/retry', data: { turn: 0, step: 0, retry: 1, delayMs: 5, failure: { message: 'm', code: 'c' } } },
  ),
  otherChunk,
  fc.tuple(eventType, jsonValue).map(([type, data]) => ({ type, data })),
)

const surfaceType = fc.constantFrom('user/message' as const, 'assistant/message' as const, 'tool/result' as const)

const messageData: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.constantFrom<JsonValue>(
    { role: 'user', content: [{ type: 'text', text: 'hello' }], id: 'm1' },
    { turn: 0, step: 0, message: { id: 'm2', role: 'assistant', content: [{ type: 'text', text: 'hi' }] } },
    { turn: 0, step: 0, message: { id: 'm3', role: 'assistant', content: [] } },
    { turn: 0, step: 0, message: { id: 'm4', role: 'assistant' }, interrupted: true },
    { turn: 0, step: 0, message: { role: 'tool', content: 'output' }, error: null },
  ),
  jsonValue.map((content) => ({ turn: 0, step: 0, message: { id: 'm5', role: 'assistant', content } })),
)

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: run },
  { weight: 3, arbitrary: fc.tuple(scalarEvent, gap).map(([event, by]): Step => ({ does: 'event', event, gap: by })) },
  {
    weight: 3,
    arbitrary: fc
      .record({
        type: surfaceType,
        data: messageData,
        sources: fc.option(fc.array(fc.nat({ max: 30 }), { maxLength: 4 }), { nil: undefined }),
        on: fc.nat({ max: 5 }).map((drawn) => drawn > 0),
        gap,
      })
      .map((drawn): Step => ({ does: 'surface', ...drawn })),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ type: surfaceType, data: messageData, pick: fc.tuple(fc.nat(), fc.nat()), gap })
      .map((drawn): Step => ({ does: 'replace', ...drawn })),
  },
  // Far enough apart that the gap between two of them is no safe integer.
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        0,
        -5,
        1_785_014_504_343,
        Number.MAX_SAFE_INTEGER - 20_000_000,
        20_000_000 - Number.MAX_SAFE_INTEGER,
      )
      .map((time): Step => ({ does: 'clock', time })),
  },
)

function placed(steps: readonly Step[]): SessionEvent[] {
  const events: SessionEvent[] = []
  const surface: number[] = []
  let time = 1_785_014_504_343
  const push = (event: Omit<SessionEvent, 'seq' | 'time'>, by: number): number => {
    time += by
    const seq = events.length
    // Type, seq and time first, then the rest in its order.
    events.push({ type: event.type, seq, time, ...withoutType(event) } as SessionEvent)
    return seq
  }
  for (const each of steps) {
    switch (each.does) {
      case 'clock':
        time = each.time
        break
      case 'run':
        for (const [at, fragment] of each.fragments.entries()) {
          time += each.gaps[at]!
          events.push(deltaEvent({ ...each.delta, fragment }, events.length, time))
        }
        break
      case 'event':
        push(each.event, each.gap)
        break
      case 'surface': {
        const sources = each.sources && sourcesOf(each.type, each.sources, events.length)
        const seq = push(
          {
            type: each.type,
            data: each.data,
            ...(sources && { sourceEventSeqs: sources }),
            ...(each.on && { surfaceOp: 'append' as const }),
          },
          each.gap,
        )
        if (each.on) surface.push(seq)
        break
      }
      case 'replace': {
        if (surface.length === 0) break
        const first = each.pick[0] % surface.length
        const last = first + (each.pick[1] % (surface.length - first))
        const surfaceOp: SurfaceOp = { op: 'replace', start: surface[first]!, end: surface[last]! }
        const seq = push({ type: each.type, data: each.data, surfaceOp }, each.gap)
        surface.splice(first, last - first + 1, seq)
        break
      }
    }
  }
  return events
}

function withoutType(event: Omit<SessionEvent, 'seq' | 'time'>): object {
  const { type: _, ...rest } = event
  return rest
}

/** Sources as a host writes them: mostly the seqs just before; all are earlier, none twice, and none at all only where it may be. */
function sourcesOf(type: string, back: readonly number[], seq: number): number[] | undefined {
  const sources = [...new Set(back.map((each) => seq - 1 - each).filter((each) => each >= 0))]
  return sources.length > 0 || type === 'assistant/message' ? sources : undefined
}

/**
 * A valid log from seq 0: runs of every kind of delta, chunks of every other kind and of odd shapes, surface appends and
 * replaces, ordinary and unknown events, clocks that step back or leap.
 */
export const logEvents: fc.Arbitrary<SessionEvent[]> = fc.array(step, { maxLength: 14 }).map(placed)

/** The same, at least one event long. */
export const nonEmptyLog: fc.Arbitrary<SessionEvent[]> = fc
  .array(step, { minLength: 1, maxLength: 14 })
  .map(placed)
  .filter((events) => events.length > 0)

// ---- bytes --------------------------------------------------------------------------------------------------------

/** Cuts the bytes at the given places, taken modulo their length. */
export function slicedAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [...new Set(places.map((each) => each % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...cuts, bytes.length].map((cut, index) => bytes.slice(cuts[index - 1] ?? 0, cut))
}

/** Places to cut at. */
export const cuts: fc.Arbitrary<number[]> = fc.array(fc.nat(), { maxLength: 12 })

/** Whole, one byte at a time, two, three and seven at a time: the fixed slicings of a golden. */
export function slicings(bytes: Uint8Array): Uint8Array[][] {
  return [bytes.length, 1, 2, 3, 7].map((size) => {
    const slices: Uint8Array[] = []
    for (let at = 0; at < bytes.length; at += Math.max(1, size)) slices.push(bytes.slice(at, at + size))
    return slices
  })
}
