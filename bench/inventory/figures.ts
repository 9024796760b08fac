// The inventory as rows of the table.

import type { PageFixtureName, Representation } from '../fixtures/index.ts'
import { REPRESENTATIONS } from '../fixtures/index.ts'
import { STAGES } from '../measuring/page-fold.ts'
import type { Figure, Unit } from '../measuring/report.ts'
import { single } from '../measuring/report.ts'
import type { Summary } from '../measuring/statistics.ts'
import { BROTLI_QUALITY, fewer, GZIP_LEVEL } from './bodies.ts'
import type { FixtureResult, RepresentationResult } from './result.ts'

export function inventoryFigures(name: PageFixtureName, result: FixtureResult): Figure[] {
  const { representations } = result
  // What is to be compared stands together.
  const each = (figures: (what: RepresentationResult) => Figure[]): Figure[] => {
    const lists = REPRESENTATIONS.map((as) => figures(representations[as]).map((figure) => named(figure, as)))
    return (lists[0] ?? []).flatMap((_, place) => lists.flatMap((list) => list[place] ?? []))
  }
  const figures = [
    ...each(sizeFigures),
    single('JSON, raw without the frame of a record', 'bytes', result.bareEventBytes, percentNote(result)),
    single(
      'JSON, projected with omitted records',
      'bytes',
      representations.projected.foldedBytes,
      'what a client folds: chunks=omit',
    ),
    ...hostFigures(result),
    ...(['fresh', 'same'] as const).flatMap((process) =>
      each(({ clientMs }) =>
        ([...STAGES, 'total'] as const).map((stage) =>
          summed(`${process} process, ${stage}`, 'ms', clientMs[process][stage]),
        ),
      ),
    ),
    ratioOf(result, 'fresh process, total', 'clientFresh'),
    ratioOf(result, 'same process, total', 'clientSame'),
    ...each(({ heapBytes }) => [
      summed('heap', 'MiB', mebibytes(heapBytes.kept), 'kept, after a forced collection'),
      summed('heap, highest', 'MiB', mebibytes(heapBytes.highest), 'sampled on the way, garbage included'),
    ]),
    ratioOf(result, 'heap', 'heapKept'),
    ratioOf(result, 'heap, highest', 'heapHighest'),
    ...each(loopbackFigures),
    ...(result.ratios.transfer
      ? [
          ratioOf(result, 'transfer', 'transfer'),
          ratioOf(result, 'UI ready', 'uiReady'),
          ratioOf(result, 'service, UI ready', 'serviceReady'),
        ]
      : []),
    ...each(viewFigures),
  ]
  return figures.map((figure) => ({ ...figure, name: `${name}: ${figure.name}` }))
}

function named(figure: Figure, as: Representation): Figure {
  return { ...figure, name: `${figure.name}, ${as}` }
}

function percentNote({ bareEventBytes, representations: { packed } }: FixtureResult): string {
  return `packed is ${fewer(packed.jsonBytes, bareEventBytes).toFixed(1)} % fewer than these`
}

function sizeFigures({ records, jsonBytes, gzipBytes, brotliBytes, fewerPercent }: RepresentationResult): Figure[] {
  const noted = (figure: Figure, percent: number): Figure =>
    percent === 0 ? figure : { ...figure, note: `${percent.toFixed(1)} % fewer than raw` }
  return [
    single('records', '', records),
    noted(single('JSON', 'bytes', jsonBytes), fewerPercent.json),
    noted(single(`gzip ${GZIP_LEVEL}`, 'bytes', gzipBytes), fewerPercent.gzip),
    noted(single(`brotli ${BROTLI_QUALITY}`, 'bytes', brotliBytes), fewerPercent.brotli),
  ]
}

function hostFigures({ hostMs }: FixtureResult): Figure[] {
  return [
    summed('host, pack', 'ms', hostMs.pack, 'warm process'),
    summed('host, serialise packed', 'ms', hostMs.serialise, 'warm process'),
    summed('host, pack and serialise', 'ms', hostMs.total, 'warm process'),
    summed('host, serialise raw', 'ms', hostMs.serialiseRaw, 'warm process, nothing packed'),
  ]
}

function loopbackFigures({ loopbackMs }: RepresentationResult): Figure[] {
  if (!loopbackMs) return []
  return [
    summed('transfer', 'ms', loopbackMs.transfer, 'bytes from memory, only read'),
    summed('API wait', 'ms', loopbackMs.apiWait, 'last byte, folded as they arrive'),
    summed('UI ready', 'ms', loopbackMs.uiReady, 'views read'),
    summed('service, API wait', 'ms', loopbackMs.serviceWait, 'the real service, through the SDK'),
    summed('service, UI ready', 'ms', loopbackMs.serviceReady, 'the real service, through the SDK'),
  ]
}

function viewFigures({ views, tokens }: RepresentationResult): Figure[] {
  const tokensNote = tokens.deltas === 0 ? '' : `, last delta ${tokens.lastDeltaSeq.toLocaleString('en')}`
  return [
    single('inputs of the assembler', '', views.inputs, 'one a record'),
    single('items of the views', '', views.items, `checksum ${views.checksum}`),
    single('deltas counted by the views', '', tokens.deltas, `of the tokens in the window${tokensNote}`),
  ]
}

function summed(name: string, unit: Unit, { median, least, most, count }: Summary, note?: string): Figure {
  return { name, value: median, unit, least, most, count, ...(note === undefined ? {} : { note }) }
}

function ratioOf({ ratios }: FixtureResult, name: string, of: string): Figure {
  return summed(`${name}, raw / packed`, 'x', ratios[of] as Summary)
}

function mebibytes({ median, least, most, count }: Summary): Summary {
  return { median: median / 2 ** 20, least: least / 2 ** 20, most: most / 2 ** 20, count }
}
