// Which methods a path takes, for the answers 404 and 405. The router has one tree for each method and cannot tell.

import type { RouteOptions } from 'fastify'
import { Problem } from '../../codec/index.ts'

export class KnownRoutes {
  readonly #routes: { readonly pattern: RegExp; readonly methods: readonly string[] }[] = []

  add({ url, method }: RouteOptions): void {
    const pattern = url.split('/').map((part) => {
      if (part === '*') return '.*'
      return part.startsWith(':') ? '[^/]+' : part.replaceAll('.', '\\.')
    })
    this.#routes.push({ pattern: new RegExp(`^${pattern.join('/')}$`), methods: [method].flat() })
  }

  /** What is wrong with a request that no route took. */
  problem(method: string, url: string): Problem {
    const path = url.split('?', 1)[0]!
    const allow = new Set(this.#routes.flatMap(({ pattern, methods }) => (pattern.test(path) ? methods : [])))
    // A file that is not there is missing for the method that its route takes.
    if (allow.size === 0 || allow.has(method)) return new Problem('route/not-found', `there is nothing at ${path}`)
    const sorted = [...allow].sort()
    return new Problem('request/method', `${path} takes ${sorted.join(', ')}; got ${method}`, { allow: sorted })
  }
}
