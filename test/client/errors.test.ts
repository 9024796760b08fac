import t from 'tap'
import { errorOfAnswer, errorOfConnection } from '../../src/client/errors.ts'
import { ClientError, NetworkError, ServiceError } from '../../src/client/index.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')

function answer(status: number, body: string, headers: Record<string, string> = {}): ServiceError {
  return errorOfAnswer(status, (name) => headers[name], body, NOW)
}

function document(code: string, facts: object = {}): string {
  return JSON.stringify({ type: `urn:x:${code}`, title: 'T.', status: 409, detail: 'what happened', code, ...facts })
}

t.test('a problem document becomes its code, its detail and its facts', async (t) => {
  const error = answer(409, document('append/gap', { expectedSeq: 7, head: 6 }))
  t.ok(error instanceof ServiceError)
  t.ok(error instanceof ClientError)
  t.match(error, { name: 'ServiceError', code: 'append/gap', message: 'what happened', status: 409 })
  t.strictSame(error.facts, { expectedSeq: 7, head: 6 })
})

t.test('a code of a later version is kept beside its status', async (t) => {
  t.match(answer(418, document('tea/pot')), { code: 'tea/pot', status: 418 })
})

t.test('an answer that is no problem document is named for its status', async (t) => {
  for (const body of ['', '<html>Bad gateway</html>', '{"code":"append/gap"}', '[]', 'null']) {
    t.match(answer(502, body), { code: 'http/502', status: 502, facts: {} }, body)
  }
})

t.test('Retry-After is seconds or a date', async (t) => {
  const cases: [string, number | undefined][] = [
    ['0', 0],
    ['7', 7],
    ['Thu, 01 Jan 2026 00:00:30 GMT', 30],
    ['Wed, 31 Dec 2025 23:59:00 GMT', 0],
    ['-1', undefined],
    ['soon', undefined],
    ['', undefined],
    ['99999999999999999999', undefined],
  ]
  for (const [header, seconds] of cases) {
    t.equal(answer(503, '', { 'retry-after': header }).retryAfter, seconds, JSON.stringify(header))
  }
  t.equal(answer(503, document('server/busy', { retryAfter: 3 })).retryAfter, 3, 'the document says so too')
  t.equal(answer(503, document('server/busy', { retryAfter: 3 }), { 'retry-after': '9' }).retryAfter, 9)
  t.equal(answer(503, document('server/busy', { retryAfter: -3 })).retryAfter, undefined)
})

t.test('a failed connection is told apart by what may have happened', async (t) => {
  const cases: [string, string][] = [
    ['ECONNREFUSED', 'network/unreachable'],
    ['ENOTFOUND', 'network/unreachable'],
    ['EAI_AGAIN', 'network/unreachable'],
    ['UND_ERR_CONNECT_TIMEOUT', 'network/unreachable'],
    ['CERT_HAS_EXPIRED', 'network/unreachable'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'network/unreachable'],
    ['UND_ERR_HEADERS_TIMEOUT', 'network/timeout'],
    ['UND_ERR_BODY_TIMEOUT', 'network/timeout'],
    ['ETIMEDOUT', 'network/timeout'],
    ['ECONNRESET', 'network/lost'],
    ['EPIPE', 'network/lost'],
    ['UND_ERR_SOCKET', 'network/lost'],
    ['HPE_INVALID_CONSTANT', 'network/lost'],
    ['something new', 'network/lost'],
  ]
  for (const [cause, code] of cases) {
    const error = errorOfConnection(Object.assign(new Error('x'), { code: cause }), 'http://host')
    t.ok(error instanceof NetworkError)
    t.equal(error.code, code, cause)
    t.match(error.message, /http:\/\/host/)
  }
  const both = [1, 2].map(() => Object.assign(new Error('x'), { code: 'ECONNREFUSED' }))
  t.equal(
    errorOfConnection(new AggregateError(both), 'http://host').code,
    'network/unreachable',
    'both addresses of a name',
  )
})
