// The inventory of one page as a picture: grouped horizontal bars, each with its number. Plain SVG text that reads well
// on light and on dark pages and to those who do not see it.

import type { Representation } from '../fixtures/index.ts'
import { REPRESENTATIONS } from '../fixtures/index.ts'
import type { FixtureResult, RepresentationResult } from './result.ts'

interface Group {
  readonly title: string
  readonly value: (of: RepresentationResult) => number | undefined
  readonly shown: (value: number) => string
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(2)} MB`
const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`
const milliseconds = (time: number) => `${time < 10 ? time.toFixed(1) : Math.round(time).toLocaleString('en')} ms`

const GROUPS: readonly Group[] = [
  { title: 'JSON on the wire', value: ({ jsonBytes }) => jsonBytes, shown: megabytes },
  { title: 'gzip', value: ({ gzipBytes }) => gzipBytes, shown: megabytes },
  { title: 'brotli', value: ({ brotliBytes }) => brotliBytes, shown: megabytes },
  { title: 'Bytes to folded views', value: ({ clientMs }) => clientMs.fresh.total.median, shown: milliseconds },
  { title: 'Request to folded views', value: ({ loopbackMs }) => loopbackMs?.uiReady.median, shown: milliseconds },
  { title: 'Heap kept', value: ({ heapBytes }) => heapBytes.kept.median, shown: mebibytes },
]

const NAMES: Readonly<Record<Representation, string>> = {
  raw: 'every event',
  projected: 'settled chunks left out',
  packed: 'packed, nothing left out',
}

const WIDTH = 720
const LABELS = 176
const NUMBERS = 88
const BAR = 14
const STEP = 18
const GROUP_GAP = 14
const HEAD = 76
const LONGEST = WIDTH - LABELS - NUMBERS

const STYLE = `
    text { font-family: system-ui, sans-serif; font-size: 12px; fill: #24292f; }
    .title { font-size: 15px; font-weight: 600; }
    .quiet { fill: #57606a; }
    .group { text-anchor: end; }
    .raw { fill: #b35900; } .projected { fill: #8b949e; } .packed { fill: #0969da; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; } .quiet { fill: #9198a1; }
      .raw { fill: #db8a2f; } .projected { fill: #6e7681; } .packed { fill: #4493f8; }
    }
  `

/**
 * @param title what the page is
 * @param machine where it was measured, in a few words
 */
export function inventoryChart(title: string, machine: string, { representations }: FixtureResult): string {
  const groups = GROUPS.flatMap(({ title, value, shown }) => {
    const bars = REPRESENTATIONS.flatMap((as) => {
      const measured = value(representations[as])
      return measured === undefined || !Number.isFinite(measured) ? [] : [{ as, measured, text: shown(measured) }]
    })
    return bars.length === 0 ? [] : [{ title, bars }]
  })
  const lines: string[] = []
  let y = HEAD
  for (const group of groups) {
    const most = Math.max(...group.bars.map(({ measured }) => measured))
    lines.push(text('group', LABELS - 10, y + BAR - 2, group.title))
    for (const { as, measured, text: number } of group.bars) {
      const width = most > 0 ? Math.max(1, (measured / most) * LONGEST) : 1
      lines.push(`<rect class="${as}" x="${LABELS}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>`)
      lines.push(text('', LABELS + width + 6, y + BAR - 3, number))
      y += STEP
    }
    y += GROUP_GAP
  }
  lines.push(text('quiet', 16, y + 6, 'Each group has its own scale. Medians; a fresh client process each time.'))
  lines.push(text('quiet', 16, y + 22, machine))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y + 36}" role="img" aria-labelledby="title desc">`,
    `  <title id="title">${escaped(title)}</title>`,
    `  <desc id="desc">${escaped(groups.map(({ title, bars }) => `${title}: ${spoken(bars)}.`).join(' '))}</desc>`,
    `  <style>${STYLE}</style>`,
    ...[text('title', 16, 28, title), ...legend(), ...lines].map((line) => `  ${line}`),
    '</svg>',
    '',
  ].join('\n')
}

function spoken(bars: readonly { readonly as: Representation; readonly text: string }[]): string {
  return bars.map(({ as, text }) => `${text} for ${NAMES[as]}`).join(', ')
}

function legend(): string[] {
  const places = [LABELS, LABELS + 110, LABELS + 280]
  return REPRESENTATIONS.flatMap((as, place) => {
    const x = places[place] as number
    return [
      `<rect class="${as}" x="${x}" y="44" width="${BAR}" height="${BAR}" rx="2"/>`,
      text('quiet', x + BAR + 6, 55, NAMES[as]),
    ]
  })
}

function text(kind: string, x: number, y: number, content: string): string {
  const attribute = kind === '' ? '' : ` class="${kind}"`
  return `<text${attribute} x="${Number(x.toFixed(1))}" y="${y}">${escaped(content)}</text>`
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
