// A session as a user interface needs it: a journal and the views of what it holds, kept up to date together.

import { JournalError } from '../errors.ts'
import type { Journal, JournalOptions } from '../journal.ts'
import type { JournalChange, JournalStatus } from '../journal-window.ts'
import { ConversationAssembler, type ViewDefinitions } from './assembler.ts'
import type { ItemOf } from './definition.ts'

export interface ConversationOptions<Definitions extends ViewDefinitions> extends JournalOptions {
  /** the definitions of each view, by its name (default: the views `chat` and `trajectory`) */
  definitions?: Definitions | undefined
}

/**
 * Begins to follow at once, and goes on until it is closed, the session is deleted, or it fails; see the journal for
 * what it does about losses. Nothing throws for a lost connection: `status` and `error` say how it stands.
 */
export class Conversation<Definitions extends ViewDefinitions> {
  readonly #journal: Journal
  readonly #changes: AsyncIterator<JournalChange, undefined>
  readonly #assembler: ConversationAssembler<Definitions>
  readonly #listeners = new Set<() => void>()
  /** called once after the next change */
  #waiting: (() => void)[] = []
  #from = 0
  #failure: Error | undefined
  #isOver = false

  /** Made by `session.conversation()`. */
  constructor(journal: Journal, definitions: Definitions) {
    this.#journal = journal
    this.#assembler = new ConversationAssembler(definitions)
    this.#changes = journal[Symbol.asyncIterator]()
    void this.#run()
  }

  /** As ConversationAssembler.view: the same array as long as nothing in it changes. Throws TypeError for an unknown name. */
  view<Name extends keyof Definitions & string>(name: Name): readonly ItemOf<Definitions[Name]>[] {
    return this.#assembler.view(name)
  }

  get status(): JournalStatus {
    return this.#failure ? 'failed' : this.#journal.status
  }

  /** why it is `reconnecting` or `failed` */
  get error(): Error | undefined {
    return this.#failure ?? this.#journal.error
  }

  /** whether the session has events before those of the views */
  get hasMore(): boolean {
    return this.#journal.hasMore
  }

  /**
   * Resolves once the views hold the newest page and are live. Throws the error of a session that cannot be followed,
   * JournalError `journal/closed` when it was closed before, or deleted.
   */
  async ready(): Promise<void> {
    while (this.status !== 'live') {
      if (this.#isOver)
        throw this.error ?? new JournalError('journal/closed', 'the conversation ended before it was live')
      await this.#nextChange()
    }
  }

  /**
   * `listener` is called after each change of a view or of the status, until the function that this gives is called.
   * What it throws is thrown where nothing catches it, and holds up nobody else.
   */
  subscribe(listener: () => void): () => void {
    // The same function subscribed twice is called twice, and each is ended by its own.
    const own = () => listener()
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  /**
   * Adds the page before the window, once that is open; the views have it when this resolves, also after the conversation
   * has failed. Resolves to whether there is more. Throws as `journal.loadOlder()` does, or what a definition has thrown.
   */
  async loadOlder(): Promise<boolean> {
    while (!this.#isOver && this.#journal.epoch === undefined) await this.#nextChange()
    const hasMore = await this.#journal.loadOlder()
    while (!this.#isOver && this.#from !== this.#journal.from) await this.#nextChange()
    // Nobody waits for changes any more, and there is this one.
    if (this.#from !== this.#journal.from) await this.#read()
    if (this.#failure) throw this.#failure
    return hasMore
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Ends it. The views stay readable. */
  close(): void {
    this.#journal.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  async #run(): Promise<void> {
    await this.#read()
    this.#isOver = true
    this.#tell()
    this.#wake()
  }

  /** Takes changes until there are no more. */
  async #read(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#changes.next()
        if (done) return
        this.#take(value)
      }
    } catch (error) {
      this.#failure = error as Error
      this.close()
    }
  }

  #take(change: JournalChange): void {
    this.#assembler.apply(change)
    if (change.type === 'replace' || change.type === 'prepend') this.#from = change.from
    this.#tell()
    this.#wake()
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) {
      if (!this.#listeners.has(listener)) continue
      try {
        listener()
      } catch (error) {
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}
