// One page in three representations: bytes, what it costs the host and the client, and how long it takes to be on screen.

import { rmSync } from 'node:fs'
import type { PageFixtureName } from '../fixtures/index.ts'
import { PAGE_FIXTURE_NAMES, REPRESENTATIONS } from '../fixtures/index.ts'
import { writeBodies } from '../inventory/bodies.ts'
import type { ClientRounds } from '../inventory/client.ts'
import { measureClient } from '../inventory/client.ts'
import { inventoryFigures } from '../inventory/figures.ts'
import { measureHost } from '../inventory/host.ts'
import { measureLoopback } from '../inventory/loopback.ts'
import type { FixtureSamples, InventoryResult } from '../inventory/result.ts'
import { inventoryResult } from '../inventory/result.ts'
import type { Section } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'

const ROUNDS: ClientRounds = { fresh: 5, same: 5, sameWarmUp: 2, heap: 3 }
const QUICK_ROUNDS: ClientRounds = { fresh: 2, same: 2, sameWarmUp: 1, heap: 1 }

/** The page whose figures are also taken over loopback, and drawn. */
export const MAIN_FIXTURE: PageFixtureName = 'huge-words'

export async function measureInventory(bench: Bench): Promise<Section & { readonly result: InventoryResult }> {
  const samples: Partial<Record<PageFixtureName, FixtureSamples>> = {}
  for (const fixture of PAGE_FIXTURE_NAMES) samples[fixture] = await measureFixture(bench, fixture)
  const result = inventoryResult(samples)
  const figures = PAGE_FIXTURE_NAMES.flatMap((fixture) => {
    const found = result.fixtures[fixture]
    return found ? inventoryFigures(fixture, found) : []
  })
  return { title: 'One page in three representations', figures, label: 'HISTORY_TRANSPORT_PERF_RESULT', result }
}

async function measureFixture(bench: Bench, fixture: PageFixtureName): Promise<FixtureSamples> {
  const { progress, quick } = bench
  const bodies = writeBodies(bench, fixture)
  try {
    progress(`${fixture}: pack and serialise`)
    const host = await measureHost(fixture, quick ? 3 : 5)
    progress(`${fixture}: parse, validate, retain, fold`)
    const client = await measureClient(bodies, quick ? QUICK_ROUNDS : ROUNDS)
    if (fixture !== MAIN_FIXTURE) return { bodies, host, client, loopback: undefined }
    progress(`${fixture}: loopback`)
    return { bodies, host, client, loopback: await measureLoopback(bench, fixture, bodies, client, quick ? 2 : 5) }
  } finally {
    for (const as of REPRESENTATIONS) rmSync(bodies.bodies[as].file)
  }
}
