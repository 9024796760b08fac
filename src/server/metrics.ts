// What the service tells of itself in figures, as text that Prometheus reads.

import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** Seconds, from a page that lay in memory to the export of a long session. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** Of the whole process; begun when it is asked for, since watching the event loop and the collector costs a little. */
let ofProcess: Registry | undefined

/** The figures of one application, and of the process that it runs in. */
export class Metrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE
  readonly #registry = new Registry()
  readonly #requests = new Histogram({
    name: 'scrollback_http_request_duration_seconds',
    help: 'From a request to the end of its answer. Followed streams are not among them.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: BUCKETS,
    registers: [this.#registry],
  })

  /** Measure every request. A route that stays open says so with `config.staysOpen`. */
  watch(app: FastifyInstance): void {
    app.addHook('onResponse', (request, reply, done) => {
      const { url: route = 'none', config } = request.routeOptions
      if (!config.staysOpen) {
        this.#requests.observe({ method: request.method, route, status: reply.statusCode }, reply.elapsedTime / 1000)
      }
      done()
    })
  }

  /** @param read called when the figures are asked for */
  gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read())
      },
    })
  }

  async text(): Promise<string> {
    if (!ofProcess) {
      ofProcess = new Registry()
      collectDefaultMetrics({ register: ofProcess })
    }
    return `${await this.#registry.metrics()}${await ofProcess.metrics()}`
  }
}
