import t from 'tap'
import { isProblemDocument, PROBLEM_STATUS, Problem, type ProblemCode, problemDocument } from '../../codec/problem.ts'

const CODES = Object.keys(PROBLEM_STATUS) as ProblemCode[]

t.test('every code has its status', (t) => {
  t.strictSame(PROBLEM_STATUS, {
    'request/invalid': 400,
    'auth/missing': 401,
    'auth/forbidden': 403,
    'session/not-found': 404,
    'subagent/not-found': 404,
    'route/not-found': 404,
    'request/method': 405,
    'request/not-acceptable': 406,
    'request/timeout': 408,
    'session/exists': 409,
    'session/replaced': 409,
    'append/gap': 409,
    'append/conflict': 409,
    'history/ahead': 409,
    'request/too-large': 413,
    'request/unsupported-media-type': 415,
    'event/invalid': 422,
    'record/malformed': 422,
    'log/invalid': 422,
    'rate/limited': 429,
    'request/headers-too-large': 431,
    internal: 500,
    'server/draining': 503,
    'server/busy': 503,
    'store/unavailable': 503,
    'store/full': 507,
  })
  t.end()
})

t.test('every code makes a document with a sentence as its title', (t) => {
  for (const code of CODES) {
    const document = problemDocument(new Problem(code, 'what happened'))
    t.match(document.title, /^[A-Z].*\.$/)
    t.strictSame(document, {
      type: `urn:scrollback:problem:${code}`,
      title: document.title,
      status: PROBLEM_STATUS[code],
      detail: 'what happened',
      code,
    })
    t.ok(isProblemDocument(JSON.parse(JSON.stringify(document))))
  }
  t.end()
})

t.test('facts stand beside the members, never in their place', (t) => {
  const problem = new Problem('append/gap', 'a hole', {
    head: 4,
    expectedSeq: 5,
    path: undefined,
    status: 200,
    code: 'other',
    ...JSON.parse('{"__proto__": 1}'),
  })
  const document = problemDocument(problem)
  t.equal(document.status, 409)
  t.equal(document.code, 'append/gap')
  t.equal(document.head, 4)
  t.equal(document.expectedSeq, 5)
  t.notOk(Object.hasOwn(document, 'path'))
  t.equal(Object.getPrototypeOf(document), Object.prototype)
  t.end()
})

t.test('a fact named __proto__ is a fact', (t) => {
  const document = problemDocument(new Problem('internal', 'x', JSON.parse('{"__proto__": {"polluted": true}}')))
  t.equal(JSON.stringify(document).includes('"__proto__":{"polluted":true}'), true)
  t.notOk('polluted' in document)
  t.end()
})

t.test('a caller adds the line that it knows', (t) => {
  const cause = new SyntaxError('why')
  const problem = new Problem('event/invalid', 'bad', { path: '/seq', line: 1 }, { cause })
  const placed = problem.withFacts({ line: 7 })
  t.ok(placed instanceof Problem)
  t.ok(placed instanceof Error)
  t.equal(placed.name, 'Problem')
  t.equal(placed.message, 'bad')
  t.equal(placed.status, 422)
  t.equal(placed.cause, cause)
  t.strictSame(placed.facts, { path: '/seq', line: 7 })
  t.strictSame(problem.facts, { path: '/seq', line: 1 })
  t.notOk(Object.hasOwn(new Problem('internal', 'x').withFacts({}), 'cause'))
  t.end()
})

t.test('what is no problem document is told apart', (t) => {
  const document = { type: 'about:blank', title: 'T', status: 418, detail: 'd', code: 'of/a-later-version' }
  t.ok(isProblemDocument(document))
  for (const other of [null, undefined, 'x', 1, [], [document], {}]) t.notOk(isProblemDocument(other))
  for (const key of Object.keys(document)) t.notOk(isProblemDocument({ ...document, [key]: null }), `without ${key}`)
  t.end()
})
