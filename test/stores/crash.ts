// Rounds of kill -9: a process appends to several sessions, prints what was acknowledged, and is killed at any moment; the
// next one finds every acknowledged event, none half, and goes on. Run by itself it does many rounds:
//
//   node crash.ts [rounds]                   default 500
//   node crash.ts child <store>              what a round runs; the last acknowledged seqs come as a line of input

import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { SessionEvent } from '../../codec/index.ts'
import { History } from '../../src/history/index.ts'
import { openSqliteStore } from '../../src/stores/index.ts'
import { assistantMessage, bodyOf, bodyOfEvents, collect, pageText, textDelta } from '../support/logs.ts'

const SESSIONS = 3
/** Each round reads the whole log and compares it, so a store that grew for hundreds of rounds would take most of the time. */
const ROUNDS_A_STORE = 50

/** What stands at a seq, whoever writes it: runs of deltas of many lengths, each settled by a message. */
function eventAt(seq: number): SessionEvent {
  const place = seq % 97
  if (place === 3 || place === 40 || place === 96) return assistantMessage(seq, [seq - 1, seq - 2])
  return textDelta(seq, `${seq} é `.repeat(1 + (seq % 13)), place % 2 === 0 && place > 60 ? 1 : 0)
}

function events(from: number, to: number): SessionEvent[] {
  return Array.from({ length: to - from }, (_, at) => eventAt(from + at))
}

/** Checks what the process before left, then appends until it is killed. `heads` are the last acknowledged seqs. */
async function child(path: string, heads: readonly number[]): Promise<void> {
  // A process that is killed leaves the next one nothing of what it compiled, unless it does so at once.
  flushCompileCache()
  const store = await openSqliteStore(path)
  const history = new History(store)
  const tell = (line: string) => writeSync(1, `${line}\n`)
  const found = await Promise.all(
    heads.map(async (acknowledged, at) => {
      const id = `s${at}`
      await history.create(id, undefined)
      const { head, bytes, messages } = await history.describe(id)
      assert(head >= acknowledged, `${id}: ${acknowledged} was acknowledged, ${head} is stored`)
      const expected = events(0, head + 1)
      for (const chunks of ['packed', 'expanded'] as const) {
        const text = await collect((await history.range({ id }, { chunks })).bytes('ndjson'))
        assert(text === pageText(expected, 0, head + 1, chunks), `${id}: the ${chunks} log is another one`)
      }
      const texts = expected.map((event) => JSON.stringify(event))
      assert.equal(bytes, Buffer.byteLength(texts.join('')))
      assert.equal(messages, expected.filter(({ type }) => type === 'assistant/message').length)
      const surface = await collect((await history.messages({ id }, {})).bytes())
      assert.equal(surface.split('\n').length - 1, messages)
      return head
    }),
  )
  tell(`found ${found.join(' ')}`)
  // An import that never ends, so that a hidden life is there to be killed as well.
  void history.importLog(endless(), {})
  await Promise.all(
    found.map(async (last, at) => {
      for (let head = last, turn = 1; ; turn++) {
        const batch = events(head + 1, head + 1 + ((turn * 7 + at) % 30) + 1)
        ;({ head } = await history.append(`s${at}`, bodyOfEvents(batch), {}))
        tell(`${at} ${head}`)
      }
    }),
  )
}

async function* endless(): AsyncGenerator<Uint8Array> {
  yield* bodyOf('{"type":"session","version":0,"id":"imported","createdAt":0}').bytes
  for (let seq = 0; ; seq += 500) yield* bodyOfEvents(events(seq, seq + 500)).bytes
}

class Victim {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #ended: Promise<NodeJS.Signals | null>
  #errors = ''

  constructor(path: string) {
    // Without what a test runner adds to every process that it starts: it takes longer than the rest.
    const env = { ...process.env, NODE_OPTIONS: '' }
    this.#process = spawn(process.execPath, [import.meta.filename, 'child', path], { stdio: 'pipe', env })
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text
    })
    this.#ended = new Promise((resolve) => this.#process.on('close', (_code, signal) => resolve(signal)))
  }

  /** Let it begin, kill it after so many acknowledgements, and give back the last acknowledged seqs. */
  async run(heads: readonly number[], acknowledgements: number): Promise<number[]> {
    this.#process.stdin.end(`${heads.join(' ')}\n`)
    const after = [...heads]
    let found = false
    let left = acknowledgements
    for await (const line of createInterface(this.#process.stdout)) {
      const [first = '', ...rest] = line.split(' ')
      if (first === 'found') {
        found = true
        for (const [at, head] of rest.entries()) after[at] = Number(head)
      } else {
        after[Number(first)] = Number(rest[0])
      }
      // Lines that come after the kill were acknowledged before it.
      if (--left === 0) this.kill()
    }
    assert.equal(await this.#ended, 'SIGKILL', this.#errors)
    assert(found, this.#errors)
    return after
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}

/** @returns the heads that stood at the end; throws when a round finds anything wrong */
export async function crashRounds(directory: string, rounds: number): Promise<number[]> {
  const path = join(directory, 'crash.db')
  let heads = Array.from({ length: SESSIONS }, () => -1)
  let next = new Victim(path)
  try {
    // One more than asked for, which only looks at what the last one left.
    for (let at = 0; at <= rounds; at++) {
      const victim = next
      // Starting a process takes longer than most of its life here.
      next = new Victim(path)
      // From at once after the opening to well into checkpoints; the same sequence each time.
      heads = await victim.run(heads, at === rounds ? 1 : 1 + ((at * 29) % 61))
    }
  } finally {
    next.kill()
  }
  return heads
}

const [first, ...rest] = process.argv.slice(2)
if (first === 'child') {
  const [path = ''] = rest
  const { value: heads } = await createInterface(process.stdin)[Symbol.asyncIterator]().next()
  await child(path, String(heads).split(' ').map(Number))
} else if (import.meta.main) {
  const rounds = Number(first ?? 500)
  for (let done = 0; done < rounds; done += ROUNDS_A_STORE) {
    const directory = mkdtempSync(join(tmpdir(), 'scrollback-crash-'))
    process.env.NODE_COMPILE_CACHE = join(directory, 'cache')
    const these = Math.min(ROUNDS_A_STORE, rounds - done)
    const heads = await crashRounds(directory, these)
    rmSync(directory, { recursive: true })
    console.log(`${done + these} of ${rounds} rounds, heads ${heads.join(', ')}: every acknowledged event is there`)
  }
}
