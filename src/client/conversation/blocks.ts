// The blocks of one model answer as they come: opened, filled by tokens, closed by the authoritative block, or given
// whole by the message that settles the step.
//
// A block is found by its index, its kind and, for tool calls, its id: some providers use one index for several calls.
// Nothing has to be opened before it is filled. A block that was closed takes no more; what comes for it begins another.

import type { JsonValue } from '../../../codec/index.ts'
import { argumentsField, field, integerField, textField } from './event-fields.ts'
import type { TokenKind, TokenRun } from './token-run.ts'
import { runText } from './token-run.ts'

export type Block =
  | { readonly type: 'text' | 'reasoning'; readonly index: number; readonly text: string }
  | {
      readonly type: 'tool-call'
      readonly index: number
      /** the first id given; empty when none was */
      readonly callId: string
      /** the latest name given; empty when none was */
      readonly name: string
      /** the arguments as the model wrote them: JSON text, unless it broke off */
      readonly argsRaw: string
    }
  | {
      readonly type: 'other'
      readonly index: number
      readonly blockType: string
      /** as the provider's last word has it; absent while there is none */
      readonly block?: JsonValue
    }

/** A block while it may change. */
interface Slot {
  readonly kind: TokenKind | 'other'
  readonly index: number
  text: string
  /** rows whose texts come behind `text`; joined when they are asked for, since a message mostly comes first */
  rows: TokenRun[]
  callId: string
  name: string
  blockType: string
  block: JsonValue | undefined
  /** what readers were given; undefined once it differs */
  shown: Block | undefined
}

export class Blocks {
  /** by index, then in the order in which they began */
  #slots: Slot[] = []
  /** those not closed, by what finds them */
  #open = new Map<string, Slot>()
  /** the last one filled: mostly the next one too */
  #latest: Slot | undefined
  #shown: readonly Block[] | undefined = []

  open(chunk: JsonValue): void {
    const index = integerField(chunk, 'index')
    const blockType = textField(chunk, 'blockType')
    if (index === undefined || blockType === undefined) return
    const kind = kindOf(blockType)
    const there = this.#find(kind, index, '')
    // Told twice before anything came: one block.
    if (there && textOf(there) === '' && there.callId === '') return
    if (there && kind !== 'tool-call') this.#shut(there)
    this.#begin(kind, index, '').blockType = blockType
  }

  add(run: TokenRun): void {
    const { kind, index, id, name } = run
    const slot = this.#find(kind, index, id) ?? this.#begin(kind, index, id)
    if (run.fragments.length > 1) slot.rows.push(run)
    else slot.text = textOf(slot) + runText(run)
    if (name !== '') slot.name = name
    this.#latest = slot
    this.#touch(slot)
  }

  /** The authoritative block takes the place of what came. Returns its text when that is text or reasoning. */
  close(chunk: JsonValue): string | undefined {
    const index = integerField(chunk, 'index')
    const block = field(chunk, 'block')
    if (index === undefined || block === undefined) return undefined
    const kind = kindOf(textField(block, 'type'))
    const id = textField(block, 'id') ?? ''
    const slot = this.#find(kind, index, id) ?? this.#begin(kind, index, id)
    this.#shut(slot)
    fill(slot, block)
    this.#touch(slot)
    return kind === 'text' || kind === 'reasoning' ? textOf(slot) : undefined
  }

  /** The blocks of a message take the place of all. */
  settle(content: readonly JsonValue[]): void {
    this.clear()
    for (const [index, block] of content.entries()) {
      fill(this.#begin(kindOf(textField(block, 'type')), index, ''), block)
    }
    this.#open = new Map()
  }

  clear(): void {
    this.#slots = []
    this.#open = new Map()
    this.#latest = undefined
    this.#shown = undefined
  }

  /** By index. A block that did not change is the same object as before, and so is the list. */
  view(): readonly Block[] {
    this.#shown ??= this.#slots.map((slot) => {
      slot.shown ??= shown(slot)
      return slot.shown
    })
    return this.#shown
  }

  /** The open block that goes on: for a tool call that of the same id, or the last one as long as it has no id. */
  #find(kind: Slot['kind'], index: number, id: string): Slot | undefined {
    const latest = this.#latest
    if (latest?.index === index && latest.kind === kind && (id === '' || id === latest.callId)) return latest
    const named = id === '' ? undefined : this.#open.get(slotKey(kind, index, id))
    if (named) return named
    const last = this.#open.get(slotKey(kind, index, ''))
    if (id === '' || last === undefined || last.callId !== '') return id === '' ? last : undefined
    last.callId = id
    this.#open.set(slotKey(kind, index, id), last)
    return last
  }

  #begin(kind: Slot['kind'], index: number, id: string): Slot {
    const slot: Slot = {
      kind,
      index,
      text: '',
      rows: [],
      callId: id,
      name: '',
      blockType: '',
      block: undefined,
      shown: undefined,
    }
    let place = this.#slots.length
    while (place > 0 && (this.#slots[place - 1] as Slot).index > index) place--
    this.#slots.splice(place, 0, slot)
    this.#open.set(slotKey(kind, index, ''), slot)
    if (id !== '') this.#open.set(slotKey(kind, index, id), slot)
    this.#shown = undefined
    return slot
  }

  /** From now on it is not found. */
  #shut(slot: Slot): void {
    for (const id of ['', slot.callId]) {
      const key = slotKey(slot.kind, slot.index, id)
      if (this.#open.get(key) === slot) this.#open.delete(key)
    }
    if (this.#latest === slot) this.#latest = undefined
  }

  #touch(slot: Slot): void {
    slot.shown = undefined
    this.#shown = undefined
  }
}

function slotKey(kind: Slot['kind'], index: number, id: string): string {
  return `${index} ${kind} ${id}`
}

function kindOf(blockType: string | undefined): Slot['kind'] {
  return blockType === 'text' || blockType === 'reasoning' || blockType === 'tool-call' ? blockType : 'other'
}

function textOf(slot: Slot): string {
  if (slot.rows.length > 0) {
    slot.text += slot.rows.map(runText).join('')
    slot.rows = []
  }
  return slot.text
}

function fill(slot: Slot, block: JsonValue): void {
  slot.block = block
  slot.blockType = textField(block, 'type') ?? ''
  if (slot.kind === 'tool-call') {
    replaceText(slot, argumentsField(block))
    slot.callId = textField(block, 'id') ?? slot.callId
    slot.name = textField(block, 'name') ?? slot.name
  } else if (slot.kind !== 'other') {
    replaceText(slot, textField(block, 'text'))
  }
}

function replaceText(slot: Slot, text: string | undefined): void {
  if (text === undefined) return
  slot.text = text
  slot.rows = []
}

function shown(slot: Slot): Block {
  const { kind, index, callId, name, blockType, block } = slot
  const text = textOf(slot)
  if (kind === 'tool-call') return { type: kind, index, callId, name, argsRaw: text }
  if (kind !== 'other') return { type: kind, index, text }
  return block === undefined ? { type: kind, index, blockType } : { type: kind, index, blockType, block }
}
