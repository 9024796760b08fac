import t from 'tap'
import type { HistoryClientOptions } from '../../src/client/index.ts'
import { HistoryClient } from '../../src/client/index.ts'

const baseUrl = 'http://127.0.0.1:1'

t.test('a wrong option of the client is named, with what was expected and what came', async (t) => {
  const cases: [object, RegExp][] = [
    [{}, /baseUrl must be a URL/],
    [{ baseUrl: 7 }, /HistoryClient: baseUrl must be a URL, got 7/],
    [{ baseUrl, url: 'x' }, /HistoryClient has no option "url"; it has baseUrl, token, dispatcher/],
    [{ baseUrl, dispatcher: {} }, /dispatcher must be a dispatcher of undici, got an object/],
    [{ baseUrl, timeouts: { body: -1 } }, /timeouts must be an object of milliseconds: connect, headers, body/],
    [{ baseUrl, timeouts: { bodies: 1 } }, /timeouts must be/],
    [{ baseUrl, retry: { tries: 0 } }, /HistoryClient retry: tries must be an integer of at least 1, got 0/],
    [{ baseUrl, retry: 5 }, /retry must be an object, got 5/],
    [{ baseUrl, retry: { onRetry: 'log' } }, /onRetry must be a function, got "log"/],
    [{ baseUrl, reconnect: { silence: 0.5 } }, /reconnect: silence must be an integer from 1 to 2147483647, got 0.5/],
    [{ baseUrl, reconnect: { firstDelay: Number.NaN } }, /firstDelay must be a number of at least 0, got NaN/],
    [{ baseUrl, lineBytes: 0 }, /lineBytes must be an integer of at least 1, got 0/],
  ]
  for (const [options, message] of cases) {
    t.throws(() => new HistoryClient(options as HistoryClientOptions), { name: 'TypeError', message }, `${message}`)
  }
  t.throws(() => new HistoryClient(undefined as unknown as HistoryClientOptions), {
    name: 'TypeError',
    message: /an object of options/,
  })
  for (const token of ['two\nlines', '', 5]) {
    const wrong = () => new HistoryClient({ baseUrl, token: token as string })
    t.throws(
      wrong,
      { name: 'TypeError', message: /token must be a function, or a text .*, got something else/ },
      'never repeated',
    )
  }
  for (const good of [{ token: undefined }, { retry: { tries: undefined } }, { timeouts: { body: undefined } }]) {
    await new HistoryClient({ baseUrl, ...good } as HistoryClientOptions).close()
  }
})

t.test('a wrong option of a call is named before anything is sent', async (t) => {
  const client = new HistoryClient({ baseUrl })
  t.teardown(() => client.close())
  const session = client.session('s')
  const cases: [string, () => unknown, RegExp][] = [
    ['page', () => session.page({ maxMessages: 0 }), /page\(\): maxMessages must be an integer from 1 to 500, got 0/],
    ['page', () => session.page({ beforeSeq: -1 }), /beforeSeq must be an integer of at least 0, got -1/],
    [
      'page',
      () => session.page({ chunks: 'all' as 'omit' }),
      /chunks must be one of packed, expanded, omit, got "all"/,
    ],
    ['page', () => session.page({ signal: {} as AbortSignal }), /signal must be an AbortSignal, got an object/],
    ['page', () => session.page({ epoch: '' }), /epoch must be a text of 1 to 200 characters, got ""/],
    ['page', () => session.page({ limit: 5 } as object), /page\(\) has no option "limit"/],
    ['range', () => session.range({ fromSeq: 0.5 }), /fromSeq must be an integer/],
    ['events', () => session.events({ toSeq: Number.NaN }).next(), /toSeq must be an integer of at least 0, got NaN/],
    ['follow', () => session.follow({ afterSeq: -2 }), /afterSeq must be an integer of at least -1, got -2/],
    ['journal', () => session.journal({ maxMessages: 501 }), /maxMessages must be an integer from 1 to 500, got 501/],
    ['append', () => session.append([], { expectedSeq: -1 }), /expectedSeq must be/],
    ['export', () => session.export({ layout: 'rows' as 'packed' }), /layout must be one of packed, events/],
    ['list', () => client.sessions.list({ limit: 501 }), /limit must be an integer from 1 to 500, got 501/],
    ['id', () => client.session('..'), /a session id is 1 to 128 of .*, got "\.\."/],
    ['id', () => client.session('a/b'), /a session id/],
    ['id', () => client.subagent('p', ''), /a session id/],
    ['id', () => client.sessions.get('?'), /a session id/],
    ['id', () => client.sessions.delete('x'.repeat(129)), /got "x{60}…"/],
  ]
  for (const [name, call, message] of cases) {
    await t.rejects(async () => call(), { name: 'TypeError', message }, `${name} ${message}`)
  }
})
