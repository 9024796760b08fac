/**
 * Owns logs that mean something to the views of a conversation, and the ways in which one log can reach a window: as
 * single events or rows, in pages, live, with closed runs compacted.
 */
import fc from 'fast-check'
import type { JsonValue, SessionEvent, SessionHistoryRecord } from '../../codec/index.ts'
import { packEvents, recordRange } from '../../codec/index.ts'
import type { JournalChange } from '../../src/client/index.ts'
import { JournalWindow } from '../../src/client/journal-window.ts'

/** An event before it has its place in a log. */
export type EventBody = Omit<SessionEvent, 'seq' | 'time'>

/** The log of these bodies; `time` of each is given, or one more than that of the one before. */
export function logOf(bodies: readonly (EventBody & { time?: number })[]): SessionEvent[] {
  let time = 1_000
  return bodies.map(({ type, time: given = time + 1, ...rest }, seq) => {
    time = given
    return { type, seq, time, ...rest } as SessionEvent
  })
}

export function chunk(turn: number, step: number, value: JsonValue): EventBody {
  return { type: 'assistant/chunk', data: { turn, step, chunk: value } }
}

export function textToken(text: string, { turn = 1, step = 1, index = 0, kind = 'text-delta' } = {}): EventBody {
  return chunk(turn, step, { type: kind, index, text })
}

export function callToken(id: string, name: string | undefined, args: string, { turn = 1, step = 1, index = 0 } = {}) {
  const named = name === undefined ? {} : { name }
  return chunk(turn, step, { type: 'tool-call-delta', index, id, ...named, argumentsDelta: args })
}

export function message(
  content: JsonValue,
  { turn = 1, step = 1, ...rest }: { [key: string]: JsonValue } = {},
): EventBody {
  const value = { role: 'assistant', content, source: { kind: 'model' }, id: `m${turn}-${step}` }
  return { type: 'assistant/message', data: { turn, step, message: value, ...rest }, surfaceOp: 'append' }
}

export function stepStart(turn = 1, step = 1): EventBody {
  return { type: 'step/start', data: { turn, step } }
}

export function stepEnd(turn = 1, step = 1): EventBody {
  return { type: 'step/end', data: { turn, step } }
}

export function turnStart(turn = 1): EventBody {
  return { type: 'turn/start', data: { turn } }
}

export function turnEnd(turn = 1, kind = 'completed'): EventBody {
  return { type: 'turn/end', data: { turn, reason: { kind } } }
}

export function retry(attempt: number, { turn = 1, step = 1 } = {}): EventBody {
  const failure = { message: 'busy', code: 'rate' }
  return { type: 'llm/retry', data: { turn, step, retry: attempt, maxRetries: 3, delayMs: 10, failure } }
}

export function question(text: string): EventBody {
  return { type: 'user/message', data: { role: 'user', content: text }, surfaceOp: 'append' }
}

export function single(events: readonly SessionEvent[]): SessionHistoryRecord[] {
  return events.map((event) => ({ type: 'event', event }))
}

// ---- logs out of order ----------------------------------------------------------------------------------------------

const FRAGMENTS = ['', ' ', '\n', '\u00a0', 'x', 'word', '\ud83d', '\ude00', '__proto__']
const fragment = fc.constantFrom(...FRAGMENTS)
const place = fc.record({ turn: fc.constantFrom(1, 2), step: fc.constantFrom(1, 2), index: fc.constantFrom(0, 1) })
const callId = fc.constantFrom('', 'a', 'b')
const toolName = fc.constantFrom(undefined, '', 'write', 'bash')
const usage = fc.record({ outputTokens: fc.nat({ max: 9 }) })

const block: fc.Arbitrary<JsonValue> = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'reasoning'), text: fragment }),
  fc.record({ type: fc.constant('tool-call'), id: callId, name: fc.constant('write'), arguments: fragment }),
  fc.record({ type: fc.constantFrom('image', 'text', ''), __proto__x: fragment }),
)

/** A run of tokens: what becomes a row, whole or in part. */
const run: fc.Arbitrary<EventBody[]> = fc
  .tuple(place, fc.constantFrom('text-delta', 'reasoning-delta', 'tool-call-delta'), callId, toolName)
  .chain(([at, kind, id, name]) =>
    fc
      .array(fragment, { minLength: 1, maxLength: 9 })
      .map((texts) =>
        texts.map((text) =>
          kind === 'tool-call-delta' ? callToken(id, name, text, at) : textToken(text, { ...at, kind }),
        ),
      ),
  )

/** Anything, anywhere: starts missing and doubled, ends without a beginning, results before their calls. */
const other: fc.Arbitrary<EventBody> = fc.oneof(
  place.map(({ turn, step }) => stepStart(turn, step)),
  place.map(({ turn, step }) => stepEnd(turn, step)),
  place.map(({ turn }) => turnStart(turn)),
  place.map(({ turn }) => turnEnd(turn)),
  fc.tuple(place, fc.nat({ max: 3 })).map(([at, attempt]) => retry(attempt, at)),
  fc
    .tuple(place, fc.constantFrom('text', 'reasoning', 'tool-call', 'image'))
    .map(([{ turn, step, index }, blockType]) => chunk(turn, step, { type: 'block-start', index, blockType })),
  fc
    .tuple(place, block)
    .map(([{ turn, step, index }, value]) => chunk(turn, step, { type: 'block-end', index, block: value })),
  fc.tuple(place, usage).map(([{ turn, step }, value]) => chunk(turn, step, { type: 'usage', usage: value })),
  place.map(({ turn, step }) => chunk(turn, step, { type: 'finish', reason: { kind: 'stop' } })),
  fc
    .tuple(place, fc.oneof(fc.array(block, { maxLength: 3 }), fragment, fc.constant(null)), fc.option(usage))
    .map(([{ turn, step }, content, used]) =>
      message(content as JsonValue, { turn, step, ...(used && { usage: used }), interrupted: used === null }),
    ),
  fragment.map(question),
  fc.tuple(place, callId).map(([{ turn, step }, id]): EventBody => {
    return { type: 'tool/call', data: { turn, step, callId: id, name: 'write', arguments: '{}' } }
  }),
  fc.tuple(place, callId, fc.boolean()).map(([{ turn, step }, id, isError]): EventBody => {
    const content = [{ type: 'tool-result', toolCallId: id, isError }]
    return { type: 'tool/result', data: { turn, step, message: { content } }, surfaceOp: 'append' }
  }),
  fc.constantFrom<EventBody>(
    { type: 'session/title', data: { title: 'x' } },
    { type: 'assistant/chunk', data: null },
    { type: 'assistant/chunk', data: { turn: '1', step: 1, chunk: { type: 'text-delta', index: 0, text: 'x' } } },
    chunk(1, 1, { type: 'text-delta', index: -1, text: 7 }),
    chunk(1, 1, { type: 'text-delta', index: 0, text: 'more', extra: true }),
    chunk(1, 1, { type: 'unheard-of' }),
  ),
)

const gap = fc.constantFrom(0, 1, 7, -3)

/** A log of a few turns and steps in any disorder, rich in runs. Clocks step back. */
export const disorderedLog: fc.Arbitrary<SessionEvent[]> = fc
  .array(fc.oneof({ weight: 2, arbitrary: run }, { weight: 5, arbitrary: other.map((body) => [body]) }), {
    maxLength: 30,
  })
  .chain((parts) => {
    const bodies = parts.flat()
    return fc.array(gap, { minLength: bodies.length, maxLength: bodies.length }).map((gaps) => {
      let time = 1_000
      const timed = bodies.map((body, at) => {
        time += gaps[at] as number
        return { ...body, time }
      })
      return logOf(timed)
    })
  })

/** A log of steps as harnesses write them, some retried, some cut off. */
export const orderlyLog: fc.Arbitrary<SessionEvent[]> = fc
  .array(fc.tuple(fc.array(run, { minLength: 1, maxLength: 4 }), fc.constantFrom('message', 'end', 'retry', 'none')), {
    minLength: 1,
    maxLength: 6,
  })
  .map((steps) => {
    const bodies = steps.flatMap(([runs, ending], at): EventBody[] => {
      const here = { turn: 1 + Math.floor(at / 2), step: 1 + (at % 2) }
      const moved = runs.flat().map((body) => {
        return { ...body, data: { ...(body.data as object), turn: here.turn, step: here.step } } as EventBody
      })
      return [
        ...(here.step === 1 ? [turnStart(here.turn), question('?')] : []),
        stepStart(here.turn, here.step),
        ...moved,
        ...(ending === 'retry' ? [retry(1, here), ...moved] : []),
        ...(ending === 'none' ? [] : ending === 'end' ? [] : [message([{ type: 'text', text: 'done' }], here)]),
        ...(ending === 'none' ? [] : [stepEnd(here.turn, here.step)]),
        ...(here.step === 2 ? [turnEnd(here.turn)] : []),
      ]
    })
    return logOf(bodies)
  })

// ---- ways into a window -----------------------------------------------------------------------------------------------

/** How a log reaches a window: numbers that are used one after the other, over and over. */
export const choices = fc.array(fc.nat({ max: 99 }), { minLength: 1, maxLength: 12 })

/** The same events, split at random into single ones and rows of any length. */
export function partition(events: readonly SessionEvent[], choose: () => number): SessionHistoryRecord[] {
  const records: SessionHistoryRecord[] = []
  for (let at = 0; at < events.length; ) {
    const part = events.slice(at, at + 1 + (choose() % 12))
    records.push(...(choose() % 3 === 0 ? single(part) : packEvents(part)))
    at += part.length
  }
  return records
}

/** The changes of a journal that opens somewhere, is paged back to the beginning and hears the rest live. */
export function journalChanges(events: readonly SessionEvent[], numbers: readonly number[]): JournalChange[] {
  let used = 0
  const choose = () => numbers[used++ % numbers.length] as number
  const changes: JournalChange[] = []
  const window = new JournalWindow({ compacting: choose() % 2 === 0 })
  let from = choose() % (events.length + 1)
  let to = from + (choose() % (events.length - from + 1))
  changes.push(window.replace('e', from, partition(events.slice(from, to), choose), 'opened'))
  while (from > 0 || to < events.length) {
    const isOlder = to === events.length || (from > 0 && choose() % 2 === 0)
    const count = 1 + (choose() % 20)
    if (isOlder) {
      const start = Math.max(0, from - count)
      const older = partition(events.slice(start, from), choose)
      changes.push(window.prepend({ epoch: 'e', from }, { from: start, to: from }, older))
      from = start
    } else {
      const part = events.slice(to, to + count)
      const records = choose() % 3 === 0 ? partition(part, choose) : single(part)
      for (const change of window.append(records)) changes.push(change())
      to += part.length
    }
  }
  const last = window.entries.at(-1)
  if (last && recordRange(last).to !== events.length) throw new Error('the window does not hold the log')
  return changes
}
