// The newest page of the session of 416,756 events: the service against a server that has the bytes in memory, against one
// that reads them as lines from SQLite, and against one that decodes the session and packs it again.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { encodeRecords, packEvents } from '../../codec/index.ts'
import { eventsOf, HUGE_PAGE, hugePageHeader, hugePagePieces } from '../fixtures/index.ts'
import { getBody } from '../measuring/http-get.ts'
import { MeasuredProcess } from '../measuring/measured-process.ts'
import type { PageCost } from '../measuring/page-probe.ts'
import { inTurns, probeFresh, probePage, START_SETTLE_MS } from '../measuring/page-probe.ts'
import type { Figure, Section } from '../measuring/report.ts'
import { average, ratio, single, spread } from '../measuring/report.ts'
import type { Bench } from '../measuring/service.ts'
import { fillStore, newestPage, startService } from '../measuring/service.ts'
import { mean } from '../measuring/statistics.ts'
import { linesOf, writeLinesTable } from '../references/lines-file.ts'

const ID = 'huge'
const PAGE = newestPage(ID)
const WARM_UP_PAGES = 5

export async function measurePages(bench: Bench): Promise<Section> {
  const { body, files } = writeReferences(bench)
  bench.progress('import of 416,756 events')
  const seconds = await fillStore(bench, 'pages', hugePageHeader(ID), hugePagePieces('words'))

  const service = () => startService(bench, 'pages')
  const memory = () => startReference('memory-server', files.body)
  const sqlite = () => startReference('sqlite-server', files.lines)
  const repack = () => startReference('repack-server', files.events)
  await compareBodies([service, memory, sqlite, repack], body)

  bench.progress('first page of a fresh process')
  const fresh = await inTurns(
    bench.quick ? 3 : 7,
    [service, memory, sqlite].map((start) => () => probeFresh(start, PAGE)),
  )
  const [repacked = []] = await inTurns(bench.quick ? 1 : 3, [() => probeFresh(repack, PAGE)])

  bench.progress('later pages of one process')
  const servers = await Promise.all([service(), memory(), sqlite()])
  try {
    await delay(START_SETTLE_MS)
    const idle = servers.map((server) => server.memory())
    for (const server of servers) server.resetPeakMemory()
    const probes = servers.map((server) => () => probePage(server, PAGE))
    await inTurns(WARM_UP_PAGES, probes)
    const warm = await inTurns(bench.quick ? 10 : 30, probes)
    const peaks = servers.map((server, place) => server.peakMemory() - (idle[place] as number))
    return {
      title: `Newest page of ${HUGE_PAGE.events.toLocaleString('en')} events, ${body.length.toLocaleString('en')} bytes packed`,
      figures: [
        single('import', '/s', HUGE_PAGE.events / seconds, `events of packed rows, ${seconds.toFixed(2)} s`),
        ...pageFigures('fresh process', fresh),
        ...NAMES.map((name, place) =>
          spread(`fresh process, memory, ${name}`, 'MiB', memoryOf(fresh[place]), 'peak above idle'),
        ),
        ...pageFigures('same process', warm),
        ...NAMES.map((name, place) =>
          single(`same process, memory, ${name}`, 'MiB', peaks[place] as number, 'peak above idle, over all pages'),
        ),
        spread(
          'decode and repack, last byte',
          'ms',
          repacked.map(({ last }) => last),
        ),
        average('decode and repack, processor', 'ms', cpuOf(repacked), 'mean'),
        spread('decode and repack, memory', 'MiB', memoryOf(repacked), 'peak above idle'),
        ...[fresh, warm].map(([service], place) =>
          single(
            `decode and repack / service, processor, ${place === 0 ? 'fresh' : 'same'} process`,
            'x',
            mean(cpuOf(repacked)) / mean(cpuOf(service)),
            "means; the service's process",
          ),
        ),
      ],
    }
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}

const NAMES = ['service', 'memory limit', 'SQLite limit'] as const

/** @param costs of the service, the memory limit and the SQLite limit, taken in turns */
function pageFigures(where: string, costs: readonly (readonly PageCost[])[]): Figure[] {
  const [service = [], memory = [], sqlite = []] = costs
  const all = [service, memory, sqlite]
  return [
    ...NAMES.map((name, place) => spread(`${where}, first byte, ${name}`, 'ms', firstOf(all[place]))),
    ...NAMES.map((name, place) => spread(`${where}, last byte, ${name}`, 'ms', lastOf(all[place]))),
    ratio(`${where}, last byte, service / memory limit`, lastOf(service), lastOf(memory)),
    ratio(`${where}, last byte, service / SQLite limit`, lastOf(service), lastOf(sqlite)),
    ...NAMES.map((name, place) => average(`${where}, processor, ${name}`, 'ms', cpuOf(all[place]), 'mean')),
  ]
}

const firstOf = (costs: readonly PageCost[] = []) => costs.map(({ first }) => first)
const lastOf = (costs: readonly PageCost[] = []) => costs.map(({ last }) => last)
const cpuOf = (costs: readonly PageCost[] = []) => costs.map(({ cpu }) => cpu)
const memoryOf = (costs: readonly { readonly memory: number }[] = []) => costs.map(({ memory }) => memory)

function writeReferences({ directory, progress }: Bench) {
  progress('references of 416,756 events')
  const files = {
    body: join(directory, 'page.ndjson'),
    lines: join(directory, 'lines.db'),
    events: join(directory, 'events.db'),
  }
  const body = Buffer.from(encodeRecords(packEvents(eventsOf(hugePagePieces('words')))))
  writeFileSync(files.body, body)
  writeLinesTable(files.lines, linesOf(body))
  writeLinesTable(files.events, eventTexts())
  return { body, files }
}

function* eventTexts(): Generator<Uint8Array> {
  const encoder = new TextEncoder()
  for (const event of eventsOf(hugePagePieces('words'))) yield encoder.encode(JSON.stringify(event))
}

function startReference(name: string, file: string): Promise<MeasuredProcess> {
  return MeasuredProcess.startReference(new URL(`../references/${name}.ts`, import.meta.url), [file])
}

/** All four must send the same bytes, or there is nothing to compare. */
async function compareBodies(starts: readonly (() => Promise<MeasuredProcess>)[], body: Buffer): Promise<void> {
  for (const start of starts) {
    const server = await start()
    try {
      const { bytes } = await getBody(server.port, PAGE)
      if (!bytes.equals(body)) throw new Error(`a server sent ${bytes.length} bytes that are not the page's`)
    } finally {
      await server.stop()
    }
  }
}
