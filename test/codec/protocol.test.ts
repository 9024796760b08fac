// The wire: every parameter is text with a pattern, the schemas fit what the codec makes, and none hides a default.

import { readFileSync } from 'node:fs'
import t from 'tap'
import type { TSchema } from 'typebox'
import Value from 'typebox/value'
import { Problem, problemDocument } from '../../codec/problem.ts'
import {
  AppendLineSchema,
  AppendQuery,
  AppendResult,
  ChildPath,
  CreateSession,
  END_REASONS,
  EndSchema,
  EventsQuery,
  ExportQuery,
  FollowQuery,
  HistoryQuery,
  ImportQuery,
  ImportResult,
  MessageLine,
  MessagesQuery,
  PageDocument,
  ParentPath,
  ProblemSchema,
  queryInteger,
  RecordSchema,
  SessionDescription,
  SessionList,
  SessionListQuery,
  SessionPath,
  SubagentListQuery,
} from '../../codec/protocol.ts'
import { isSessionId } from '../../codec/session-log.ts'

const QUERIES: Record<string, TSchema> = {
  AppendQuery,
  EventsQuery,
  ExportQuery,
  FollowQuery,
  HistoryQuery,
  ImportQuery,
  MessagesQuery,
  SessionListQuery,
  SubagentListQuery,
}
const PATHS: Record<string, TSchema> = { ChildPath, ParentPath, SessionPath }

t.test('parameters are text, described, and no others are taken', (t) => {
  for (const [name, schema] of Object.entries({ ...QUERIES, ...PATHS })) {
    const { properties, additionalProperties } = schema as unknown as {
      properties: Record<string, { type: string; description?: string }>
      additionalProperties: boolean
    }
    t.equal(additionalProperties, false, name)
    for (const [key, property] of Object.entries(properties)) {
      t.equal(property.type, 'string', `${name}.${key}`)
      t.ok(property.description, `${name}.${key} is described`)
      t.notOk('default' in property, `${name}.${key} has no default that a validator would write in`)
    }
  }
  for (const schema of Object.values(QUERIES)) {
    t.ok(Value.Check(schema, {}), 'every parameter of a query may be left out')
    t.notOk(Value.Check(schema, { unknown: '1' }))
  }
  t.notOk(Value.Check(SubagentListQuery, { parent: 'a' }), 'the parent of a list of children is in its path')
  t.ok(Value.Check(SubagentListQuery, { limit: '1', cursor: 'c' }))
  t.end()
})

t.test('what a parameter takes, and what it does not', (t) => {
  const seq = {
    good: ['0', '1', '10', '9007199254740991'],
    bad: [
      '',
      '-1',
      '00',
      '01',
      '+1',
      '1.0',
      '1e3',
      '1e400',
      ' 1',
      '1 ',
      '0x10',
      '1\n',
      'NaN',
      '٣',
      '12345678901234567',
    ],
  }
  const inclusive = { good: ['-1', ...seq.good], bad: [...seq.bad.filter((text) => text !== '-1'), '-0', '-2', '-10'] }
  const messages = {
    good: ['1', '9', '10', '50', '99', '100', '499', '500'],
    bad: ['0', '501', '599', '1000', '-1', '01', '5.0', ''],
  }
  const chunks = { good: ['packed', 'expanded', 'omit'], bad: ['', 'Packed', 'packed ', 'all'] }
  const epoch = { good: ['a', 'a'.repeat(200)], bad: ['', 'a'.repeat(201)] }
  const table: [TSchema, string, { good: string[]; bad: string[] }][] = [
    [HistoryQuery, 'beforeSeq', seq],
    [HistoryQuery, 'throughSeq', inclusive],
    [HistoryQuery, 'maxMessages', messages],
    [HistoryQuery, 'chunks', chunks],
    [HistoryQuery, 'epoch', epoch],
    [EventsQuery, 'fromSeq', seq],
    [EventsQuery, 'toSeq', seq],
    [FollowQuery, 'afterSeq', inclusive],
    [FollowQuery, 'maxMessages', messages],
    [AppendQuery, 'expectedSeq', seq],
    [ImportQuery, 'expectedHead', inclusive],
    [SessionListQuery, 'limit', messages],
    [ExportQuery, 'layout', { good: ['packed', 'events'], bad: ['', 'rows'] }],
    [SessionListQuery, 'cursor', { good: ['c', 'c'.repeat(1024)], bad: ['', 'c'.repeat(1025)] }],
  ]
  for (const [schema, key, { good, bad }] of table) {
    for (const text of good) t.ok(Value.Check(schema, { [key]: text }), `${key} ${JSON.stringify(text.slice(0, 30))}`)
    for (const text of bad) t.notOk(Value.Check(schema, { [key]: text }), `${key} ${JSON.stringify(text.slice(0, 30))}`)
    t.notOk(Value.Check(schema, { [key]: 1 }), `${key} is not a number`)
  }
  t.end()
})

t.test('a path takes exactly the session ids', (t) => {
  for (const id of [
    'a',
    '...',
    '.a',
    'a.',
    '..a',
    'a'.repeat(128),
    '',
    '.',
    '..',
    'a'.repeat(129),
    'a/b',
    'a\n',
    'é',
    'A:~@_-.9',
  ]) {
    t.equal(Value.Check(SessionPath, { id }), isSessionId(id), JSON.stringify(id))
  }
  t.end()
})

t.test('a query integer is plain and safe', (t) => {
  t.equal(queryInteger('toSeq', undefined), undefined)
  t.equal(queryInteger('toSeq', '0'), 0)
  t.equal(queryInteger('toSeq', '9007199254740991'), Number.MAX_SAFE_INTEGER)
  t.equal(queryInteger('afterSeq', '-1', -1), -1)
  for (const text of ['-1', '-0', '', '1.0', '1e3', '1e400', '0x1', ' 1', '01', '9007199254740992', '9'.repeat(400)]) {
    t.throws(() => queryInteger('toSeq', text), { code: 'request/invalid', facts: { path: 'toSeq' } })
  }
  t.throws(() => queryInteger('afterSeq', '-2', -1), { code: 'request/invalid' })
  t.end()
})

t.test('the schemas of lines take every fixture, and an end', (t) => {
  for (const name of ['text-row', 'reasoning-row', 'tool-call-row', 'tool-call-row-unnamed', 'others']) {
    const file = new URL(`../fixtures/records/${name}.ndjson`, import.meta.url)
    for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
      const value = JSON.parse(line)
      for (const record of value.records ?? [value]) {
        t.ok(Value.Check(RecordSchema, record), name)
        t.equal(Value.Check(AppendLineSchema, record), record.type !== 'omitted', name)
      }
    }
  }
  t.ok(Value.Check(AppendLineSchema, { type: 'x', data: 1 }), 'an event to be numbered')
  t.notOk(
    Value.Check(RecordSchema, { type: 'event', event: { type: 'x', data: 1 } }),
    'an event of the log has its place',
  )
  for (const reason of END_REASONS) t.ok(Value.Check(EndSchema, { type: 'end', reason }))
  t.notOk(Value.Check(EndSchema, { type: 'end', reason: 'other' }))
  t.end()
})

t.test('answers', (t) => {
  const description = {
    id: 's',
    epoch: 'e',
    head: -1,
    messages: 0,
    bytes: 0,
    createdAt: 1,
    updatedAt: 1,
    header: { type: 'session', version: 0, id: 's', createdAt: 1, agentPreset: null },
  }
  const good: [TSchema, unknown][] = [
    [SessionDescription, description],
    [SessionList, { sessions: [description], nextCursor: 'c' }],
    [SessionList, { sessions: [] }],
    [AppendResult, { head: 3, appended: 4, duplicates: 0, epoch: 'e' }],
    [ImportResult, { id: 's', epoch: 'e', head: -1 }],
    [CreateSession, {}],
    [CreateSession, { cwd: '/w', createdAt: -5, agentPreset: [1], more: {} }],
    [PageDocument, { epoch: 'e', from: 0, to: 0, hasMore: false, records: [] }],
    [MessageLine, { seq: 0, message: 'a' }],
    [ProblemSchema, problemDocument(new Problem('append/gap', 'a hole', { head: 3, expectedSeq: 4, allow: ['GET'] }))],
  ]
  for (const [schema, value] of good)
    t.ok(Value.Check(schema, value), JSON.stringify(value).slice(0, 60).replaceAll('{', '('))
  t.notOk(Value.Check(SessionDescription, { ...description, head: -2 }))
  t.notOk(Value.Check(CreateSession, { createdAt: 1.5 }))
  t.notOk(Value.Check(CreateSession, { version: 1 }))
  t.end()
})
