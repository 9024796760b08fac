// What is kept in memory of many things: those that were used last, up to a number.

export class LastUsed<Key, Value extends object> {
  readonly #most: number
  /** A Map keeps the order of insertion, so its first entry is the one not used for longest. */
  readonly #values = new Map<Key, Value>()

  constructor(most: number) {
    this.#most = most
  }

  /** What is kept for the key, which is used by that. */
  get(key: Key): Value | undefined {
    const value = this.#values.get(key)
    if (value) this.#use(key, value)
    return value
  }

  set(key: Key, value: Value): void {
    this.#use(key, value)
    if (this.#values.size <= this.#most) return
    const [unused] = this.#values.keys()
    this.#values.delete(unused as Key)
  }

  delete(key: Key): void {
    this.#values.delete(key)
  }

  clear(): void {
    this.#values.clear()
  }

  #use(key: Key, value: Value): void {
    this.#values.delete(key)
    this.#values.set(key, value)
  }
}
