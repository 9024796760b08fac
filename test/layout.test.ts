// The layout is the architecture: imports go one way, and neighbours use each other's doors. This reads every import of
// the source and holds it against the table.

import { readdirSync, readFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import t from 'tap'

const ROOT = join(import.meta.dirname, '..')

/** Each part, and the parts and packages that it may import. */
const TABLE: Record<string, { parts: string[]; packages: string[] }> = {
  codec: { parts: [], packages: ['typebox'] },
  'src/history': { parts: ['codec'], packages: ['node:'] },
  'src/stores': { parts: ['codec', 'src/history'], packages: ['node:'] },
  routes: {
    parts: ['codec', 'src/history'],
    packages: ['node:', 'fastify', '@fastify/', 'typebox'],
  },
  'src/server': {
    parts: ['codec', 'src/history', 'src/stores', 'routes'],
    packages: ['node:', 'fastify', '@fastify/', 'typebox', 'prom-client'],
  },
  'src/client': { parts: ['codec'], packages: ['node:', 'undici'] },
  // `serve` starts the server; the other commands are clients.
  'src/cli': { parts: ['codec', 'src/client', 'src/server'], packages: ['node:'] },
}

interface Import {
  file: string
  part: string
  specifier: string
}

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s[^'"]*?from\s+'([^']+)'|(?:^|\n)\s*import\s+'([^']+)'|import\(\s*'([^']+)'\s*\)/g

function importsOf(part: string): Import[] {
  return readdirSync(join(ROOT, part), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => {
      const file = join(part, name)
      const source = readFileSync(join(ROOT, file), 'utf8')
      return [...source.matchAll(IMPORT)].map((match) => ({
        file,
        part,
        specifier: (match[1] ?? match[2] ?? match[3]) as string,
      }))
    })
}

/** What is wrong with an import, or nothing. */
function fault({ file, part, specifier }: Import): string | undefined {
  const row = TABLE[part]
  if (!row) return 'a part that the table does not name'
  if (!specifier.startsWith('.')) {
    const allowed = row.packages.some(
      (name) => specifier === name || (/[:/]$/.test(name) && specifier.startsWith(name)),
    )
    return allowed ? undefined : `package ${specifier} is not for ${part}`
  }
  if (!specifier.endsWith('.ts')) return `${specifier} does not name its file`
  const target = normalize(join(file, '..', specifier))
  if (target.startsWith(`${part}/`)) return undefined
  const other = row.parts.find((each) => target.startsWith(`${each}/`))
  if (!other) return `${part} must not import ${target}`
  return target === `${other}/index.ts` ? undefined : `${target} lies behind the door of ${other}`
}

const imports = Object.keys(TABLE).flatMap(importsOf)

t.test('every import goes one way and through a door', async (t) => {
  t.ok(imports.length > 100, 'the imports were found')
  t.same(
    imports.map((each) => ({ file: each.file, fault: fault(each) })).filter((each) => each.fault !== undefined),
    [],
  )
})

t.test('the table catches what it should', async (t) => {
  const cases: [string, string, string][] = [
    ['codec', 'codec/pack.ts', 'node:fs'],
    ['codec', 'codec/pack.ts', '../src/history/index.ts'],
    ['src/history', 'src/history/page.ts', '../stores/index.ts'],
    ['src/history', 'src/history/page.ts', '../../codec/pack.ts'],
    ['src/history', 'src/history/page.ts', 'fastify'],
    ['src/stores', 'src/stores/a.ts', '../server/index.ts'],
    ['routes', 'routes/events.ts', '../src/stores/index.ts'],
    ['routes', 'routes/events.ts', 'undici'],
    ['src/client', 'src/client/a.ts', '../history/index.ts'],
    ['src/client', 'src/client/conversation/a.ts', '../../server/index.ts'],
    ['src/cli', 'src/cli/page.ts', '../stores/index.ts'],
    ['src/cli', 'src/cli/page.ts', './options'],
  ]
  for (const [part, file, specifier] of cases)
    t.type(fault({ part, file, specifier }), 'string', `${file} → ${specifier}`)
  t.equal(fault({ part: 'src/cli', file: 'src/cli/serve.ts', specifier: '../server/index.ts' }), undefined)
  t.equal(fault({ part: 'src/client', file: 'src/client/conversation/a.ts', specifier: '../journal.ts' }), undefined)
})

t.test('the codec and the conversation run in a browser as they are', async (t) => {
  const reached = new Set<string>()
  const packages = new Set<string>()
  const visit = (file: string): void => {
    if (reached.has(file)) return
    reached.add(file)
    // What is imported for its types alone is not there when it runs.
    const source = readFileSync(join(ROOT, file), 'utf8').replaceAll(/(?:import|export) type [^'"]*'[^']+'/g, '')
    for (const [, one, two, three] of source.matchAll(IMPORT)) {
      const specifier = (one ?? two ?? three) as string
      if (specifier.startsWith('.')) visit(normalize(join(file, '..', specifier)))
      else packages.add(specifier)
    }
  }
  for (const door of ['codec/index.ts', 'src/client/conversation/index.ts']) visit(door)
  t.ok(reached.size > 20, 'the files were found')
  t.same(
    [...packages].filter((name) => name !== 'typebox' && !name.startsWith('typebox/')),
    [],
  )
})

t.test('every source file belongs to a part of the table', async (t) => {
  const stray = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join('src', name))
    .filter((file) => !Object.keys(TABLE).some((part) => file.startsWith(`${part}/`)))
  t.same(stray, [])
})

t.test('no two parts import each other in a circle, nor do files of one part', async (t) => {
  const edges = new Map<string, Set<string>>()
  for (const { file, specifier } of imports) {
    if (!specifier.startsWith('.')) continue
    const target = normalize(join(file, '..', specifier))
    edges.set(file, (edges.get(file) ?? new Set()).add(target))
  }
  const circles: string[] = []
  const done = new Set<string>()
  const visit = (file: string, path: string[]): void => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file) || path.includes(file)) return
    for (const next of edges.get(file) ?? []) visit(next, [...path, file])
    done.add(file)
  }
  for (const file of edges.keys()) visit(file, [])
  t.same(circles, [])
})
