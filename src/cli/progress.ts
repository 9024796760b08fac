// Owns the progress bar: drawn on a terminal, only when the work takes long, and gone afterwards.

import type { Terminal } from './command.ts'

/** Milliseconds: what is done sooner needs no bar. */
const PATIENCE = 1000
const REDRAW = 100
const NARROW = 40
const BAR = 24

export interface ProgressOptions {
  readonly terminal: Terminal
  readonly label: string
  /** bytes; undefined when nobody knows */
  readonly total: number | undefined
  /** milliseconds of any clock that does not step back */
  readonly now?: () => number
}

export class Progress {
  readonly #terminal: Terminal
  readonly #label: string
  readonly #total: number | undefined
  readonly #now: () => number
  #done = 0
  #next: number
  #drawn = false

  constructor({ terminal, label, total, now = () => performance.now() }: ProgressOptions) {
    this.#terminal = terminal
    this.#label = label
    this.#total = total
    this.#now = now
    this.#next = now() + PATIENCE
  }

  add(bytes: number): void {
    this.#done += bytes
    if (!this.#terminal.isTTY) return
    const now = this.#now()
    if (now < this.#next) return
    this.#next = now + REDRAW
    this.#draw()
  }

  /** Takes the bar away. */
  clear(): void {
    if (this.#drawn) this.#terminal.write(CLEAR)
    this.#drawn = false
  }

  #draw(): void {
    this.#drawn = true
    const width = Math.max(0, (this.#terminal.columns ?? 80) - 1)
    this.#terminal.write(`${CLEAR}${progressLine(this.#label, this.#done, this.#total, width)}`)
  }
}

const CLEAR = '\r\u001b[2K'

/** The bar in at most `width` columns. */
export function progressLine(label: string, done: number, total: number | undefined, width: number): string {
  // A file that grows while it is read has more than it said.
  const part = total === undefined ? undefined : total === 0 ? 1 : Math.min(1, done / total)
  const amount = total === undefined ? bytesText(done) : `${bytesText(done)} of ${bytesText(total)}`
  if (part === undefined) return `${label}  ${amount}`.slice(0, width)
  const percent = `${Math.floor(part * 100)} %`.padStart(5)
  if (width < NARROW + BAR) return `${percent}  ${amount}`.slice(0, width)
  const filled = Math.round(part * BAR)
  const bar = `[${'#'.repeat(filled)}${'.'.repeat(BAR - filled)}]`
  const rest = `${bar}${percent}  ${amount}`
  const room = width - rest.length - 2
  return `${label.length > room ? `…${label.slice(label.length - room + 1)}` : label}  ${rest}`.slice(0, width)
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000
    unit++
  }
  return `${unit === 0 ? value : value.toFixed(value < 9.95 ? 1 : 0)} ${UNITS[unit]}`
}
