import t from 'tap'
import { AnswerError, mayRepeat, NetworkError, RETRY_DEFAULTS, ServiceError } from '../../src/client/index.ts'
import { RECONNECT_DEFAULTS, reconnectDelay, retryDelay, withRetries } from '../../src/client/retry.ts'

function answered(status: number, retryAfter?: number): ServiceError {
  return new ServiceError(status, `http/${status}`, 'detail', {}, retryAfter)
}

const lost = new NetworkError('network/lost', 'x')
const timeout = new NetworkError('network/timeout', 'x')
const unreachable = new NetworkError('network/unreachable', 'x')

t.test('one function says whether a request may be repeated', async (t) => {
  const passing = [lost, timeout, ...[408, 425, 429, 500, 502, 503, 507].map((status) => answered(status))]
  const final = [
    ...[302, 400, 401, 403, 404, 409, 413, 422, 431].map((status) => answered(status)),
    new AnswerError('answer/incomplete', 'x'),
    new AnswerError('answer/malformed', 'x'),
    new TypeError('x'),
    undefined,
  ]
  for (const method of ['GET', 'HEAD', 'PUT']) {
    for (const error of passing) t.equal(mayRepeat({ method }, error), true, `${method} ${error}`)
    for (const error of final) t.equal(mayRepeat({ method }, error), false, `${method} ${error}`)
  }
  for (const method of ['POST', 'DELETE']) {
    for (const error of [...passing, ...final]) t.equal(mayRepeat({ method }, error), false, `${method} ${error}`)
    for (const error of passing) t.equal(mayRepeat({ method, repeatable: true }, error), true, `repeatable ${method}`)
    for (const error of final) t.equal(mayRepeat({ method, repeatable: true }, error), false, `repeatable ${method}`)
    t.equal(mayRepeat({ method }, unreachable), true, 'nothing was sent')
  }
})

t.test(
  'the wait grows up to a bound, is spread over all of it, and comes on top of what the service asks for',
  async (t) => {
    const options = { ...RETRY_DEFAULTS, firstDelay: 100, longestDelay: 1000, longestRetryAfter: 60 }
    const longest = (n: number, error: unknown) => retryDelay(n, error, options, () => 1)
    t.strictSame(
      [1, 2, 3, 4, 5, 50, 5000].map((n) => longest(n, lost)),
      [100, 200, 400, 800, 1000, 1000, 1000],
    )
    t.equal(
      retryDelay(3, lost, options, () => 0),
      0,
    )
    t.equal(
      retryDelay(3, lost, options, () => 0.5),
      200,
    )
    t.equal(
      retryDelay(1, answered(503, 2), options, () => 0),
      2000,
    )
    t.equal(longest(1, answered(503, 60)), 60_100)
    t.equal(longest(1, answered(503, 61)), undefined, 'too long to wait for')
  },
)

t.test('a follower waits as long as it is asked to', async (t) => {
  t.equal(
    reconnectDelay(1, answered(503, 1000), RECONNECT_DEFAULTS, () => 0),
    1_000_000,
  )
  t.strictSame(
    [1, 2, 5, 6, 50, 5000].map((n) => reconnectDelay(n, lost, RECONNECT_DEFAULTS, () => 1)),
    [500, 1000, 8000, 10_000, 10_000, 10_000],
  )
  t.equal(
    reconnectDelay(2, answered(503, 3), RECONNECT_DEFAULTS, () => 0.5),
    3500,
  )
})

t.test('tries are bounded, and the last error is thrown', async (t) => {
  let tries = 0
  const told: number[] = []
  const options = { ...RETRY_DEFAULTS, tries: 4, firstDelay: 1, onRetry: (_: Error, delay: number) => told.push(delay) }
  const attempt = async () => {
    tries++
    throw tries === 4 ? timeout : lost
  }
  await t.rejects(withRetries({ method: 'GET' }, attempt, options), timeout)
  t.equal(tries, 4)
  t.equal(told.length, 3)
})

t.test('what may not be repeated is tried once', async (t) => {
  let tries = 0
  const attempt = async () => {
    tries++
    throw lost
  }
  await t.rejects(withRetries({ method: 'POST' }, attempt, RETRY_DEFAULTS), lost)
  t.equal(tries, 1)
})

t.test('a wait ends at once when it is aborted', async (t) => {
  const stop = new AbortController()
  const options = { ...RETRY_DEFAULTS, longestRetryAfter: 1e6, onRetry: () => stop.abort(new Error('enough')) }
  const attempt = async () => {
    throw answered(503, 10_000)
  }
  await t.rejects(withRetries({ method: 'GET' }, attempt, options, stop.signal), { message: 'enough' })
})
