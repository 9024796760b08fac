// What every store must do, whatever it is made of. A store's own test calls `storeContract` and adds only what is its own.

import type { Test } from 'tap'
import { appendsContract } from './contract/appends.ts'
import { endsContract } from './contract/ends.ts'
import { importsContract } from './contract/imports.ts'
import { lawsContract } from './contract/laws.ts'
import { pagesContract } from './contract/pages.ts'
import { sessionsContract } from './contract/sessions.ts'
import { type OpenStore, openSubject, SEED } from './contract/subject.ts'

/** Runs the whole contract as subtests of `t`; it closes what it opens. */
export async function storeContract(t: Test, open: OpenStore): Promise<void> {
  const subject = await openSubject(open)
  t.teardown(() => subject.store.close())
  t.comment(`seed ${SEED}`)
  sessionsContract(t, subject)
  appendsContract(t, subject)
  lawsContract(t, subject)
  pagesContract(t, subject)
  endsContract(t, subject)
  importsContract(t, subject)
}
