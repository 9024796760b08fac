// Owns the surface: which events are messages, where a message's group begins, and what the model sees when the append
// and replace operations of a log are folded in order.

import type { SessionEvent, SurfaceOp } from './event.ts'
import type { JsonValue } from './json-text.ts'
import { memberSlice } from './json-text.ts'
import { Problem } from './problem.ts'

/** Whether an event is a message, the unit that pages are counted in: a user or assistant message that was appended. */
export function isMessage(event: { type: string; surfaceOp?: SurfaceOp | undefined }): boolean {
  return event.surfaceOp === 'append' && (event.type === 'user/message' || event.type === 'assistant/message')
}

/** The first seq of a message's group: the smallest of its own and those of the events that made it. */
export function groupStart(seq: number, sourceEventSeqs: readonly number[] | undefined): number {
  let start = seq
  // A loop, as the list may be longer than a call takes arguments.
  if (sourceEventSeqs !== undefined) for (const source of sourceEventSeqs) if (source < start) start = source
  return start
}

/** One message that the model sees. */
export interface SurfaceEntry {
  seq: number
  type: string
  message: JsonValue
}

/**
 * Where the message lies in the compact text of a surface event, so that it can go out as the exact text that came in.
 * Undefined when the event adds nothing to see: an assistant message without content. Cost is linear in the text.
 */
export function messageSlice(type: string, eventText: string): { start: number; end: number } | undefined {
  const data = memberSlice(eventText, 'data')
  if (data === undefined) return undefined
  const dataText = eventText.slice(data.start, data.end)
  const inner = memberSlice(dataText, 'message')
  const message =
    inner !== undefined && dataText[inner.start] === '{'
      ? { start: data.start + inner.start, end: data.start + inner.end }
      : undefined
  if (type !== 'assistant/message') return message ?? data
  if (message === undefined) return undefined
  const messageText = eventText.slice(message.start, message.end)
  const content = memberSlice(messageText, 'content')
  if (content === undefined) return undefined
  return EMPTY_CONTENT.has(messageText.slice(content.start, content.end)) ? undefined : message
}

const EMPTY_CONTENT = new Set(['""', '[]', 'null'])

/** The same on a parsed event. */
function surfaceMessage(event: SessionEvent): JsonValue | undefined {
  const inner = isObject(event.data) && Object.hasOwn(event.data, 'message') ? event.data.message : undefined
  if (event.type !== 'assistant/message') return isObject(inner) ? inner : event.data
  if (!isObject(inner) || !Object.hasOwn(inner, 'content')) return undefined
  const { content } = inner
  const empty = content === '' || content === null || (Array.isArray(content) && content.length === 0)
  return empty ? undefined : inner
}

function isObject(value: JsonValue | undefined): value is { [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An event on the surface, linked to its neighbours: a replacement then costs what it takes away. */
interface Place {
  event: SessionEvent
  next: Place | undefined
  previous: Place | undefined
}

/**
 * Folds the surface operations of consecutive events and gives the messages that are left, in surface order.
 * Other events are passed over. Throws `event/invalid` for a replacement whose ends are not on the surface in that order.
 */
export function foldSurface(events: Iterable<SessionEvent>): SurfaceEntry[] {
  // The place before the first spares the edges a case of their own.
  const before: Place = { event: undefined as never, next: undefined, previous: undefined }
  let last = before
  const places = new Map<number, Place>()
  for (const event of events) {
    const { surfaceOp } = event
    if (surfaceOp === undefined) continue
    const place: Place = { event, next: undefined, previous: last }
    if (surfaceOp !== 'append') {
      const { first, final } = replaced(places, event.seq, surfaceOp.start, surfaceOp.end)
      for (let gone: Place | undefined = first; gone !== final.next; gone = gone?.next) places.delete(gone!.event.seq)
      place.previous = first.previous
      place.next = final.next
    }
    place.previous!.next = place
    if (place.next === undefined) last = place
    else place.next.previous = place
    places.set(event.seq, place)
  }
  const entries: SurfaceEntry[] = []
  for (let place = before.next; place !== undefined; place = place.next) {
    const message = surfaceMessage(place.event)
    if (message !== undefined) entries.push({ seq: place.event.seq, type: place.event.type, message })
  }
  return entries
}

function replaced(places: Map<number, Place>, seq: number, start: number, end: number): { first: Place; final: Place } {
  const first = places.get(start)
  if (first === undefined) throw unfit(seq, 'start', start, 'is not on the surface')
  const final = places.get(end)
  if (final === undefined) throw unfit(seq, 'end', end, 'is not on the surface')
  let place: Place | undefined = first
  while (place !== undefined && place !== final) place = place.next
  if (place === undefined) throw unfit(seq, 'end', end, `comes before ${start} on the surface`)
  return { first, final }
}

function unfit(seq: number, key: string, value: number, reason: string): Problem {
  return new Problem('event/invalid', `event ${seq}: the replacement's ${key}, ${value}, ${reason}`, {
    path: `/surfaceOp/${key}`,
  })
}
