// The measures by name, in the order in which they run.

import type { Section } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'
import { measureAppends } from './appends.ts'
import { measureDeepPages } from './deep-pages.ts'
import { measureIncremental } from './incremental.ts'
import { measureInventory } from './inventory.ts'
import { measureLength } from './length.ts'
import { measureLive } from './live.ts'
import { measureOmit } from './omit.ts'
import { measurePages } from './pages.ts'
import { measureWhiteSpace } from './white-space.ts'

export const MEASURES: Readonly<Record<string, (bench: Bench) => Promise<Section>>> = {
  inventory: measureInventory,
  'white-space': measureWhiteSpace,
  incremental: measureIncremental,
  pages: measurePages,
  length: measureLength,
  deep: measureDeepPages,
  omit: measureOmit,
  appends: measureAppends,
  live: measureLive,
}
