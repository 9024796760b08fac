// What a page costs the one who packs it: the events are in memory already.

import type { PackPageResult, PackPageTask } from '../clients/pack-page.ts'
import type { PageFixtureName } from '../fixtures/index.ts'
import { runChild } from '../measuring/child-task.ts'

export type HostTimes = PackPageResult

export function measureHost(fixture: PageFixtureName, rounds: number): Promise<HostTimes> {
  return runChild<PackPageResult>('pack-page', { fixture, rounds } satisfies PackPageTask)
}
