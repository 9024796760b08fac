import type { Test } from 'tap'
import { assistantMessage, bodyOfEvents, bytesOf, textDelta, textDeltas, userMessage } from '../../support/logs.ts'
import { pieces, type Subject } from './subject.ts'

export function importsContract(t: Test, subject: Subject): void {
  const { store, history, created, importText } = subject
  const HEADER = (id: string, version = '0'): string =>
    `{"type":"session","version":${version},"id":"${id}","createdAt":5}`
  const EVENTS = [userMessage(0), ...textDeltas(1, 5), assistantMessage(5, [1, 2, 3, 4])].map((event) =>
    JSON.stringify(event),
  )
  const file = (id: string, lines: readonly string[] = EVENTS): string => [HEADER(id), ...lines, ''].join('\n')

  t.test('an import makes the session of the file, or finds it', async (t) => {
    const { epoch, ...rest } = await importText(file('imported'), { expectedHead: 5 })
    t.strictSame(rest, { id: 'imported', head: 5, created: true })
    t.match(await history.describe('imported'), { epoch, head: 5, messages: 2, createdAt: 5 })
    t.strictSame(await importText(file('imported')), { id: 'imported', epoch, head: 5, created: false })
    // Packed or not, with other white space, a BOM and other line ends: the same session.
    const row =
      '{"type":"text-chunks","seq0":1,"time0":1785000000001,"data":{"turn":0,"step":0,"index":0,"dt":[1,1,1],"texts":["x","x","x","x"]}}'
    const packed = file('imported', [EVENTS[0] as string, row, EVENTS[5] as string])
    t.match(await importText(packed), { created: false, epoch })
    t.match(await importText(`\ufeff${packed.replaceAll('\n', '\r\n\n')}`), { created: false, epoch }, 'case D9')
    t.match(await importText(packed.slice(0, -1)), { created: false, epoch }, 'no newline at the end')
    const others = {
      shorter: file('imported', EVENTS.slice(0, 5)),
      longer: file('imported', [...EVENTS, JSON.stringify(userMessage(6))]),
      'of other events': file('imported', [...EVENTS.slice(0, 5), JSON.stringify(userMessage(5))]),
      'of other deltas': file('imported', EVENTS.with(2, JSON.stringify(textDelta(2, 'y')))),
      'of another header': file('imported').replace('"createdAt":5', '"createdAt":6'),
    }
    for (const [name, text] of Object.entries(others)) {
      await t.rejects(importText(text), { code: 'session/exists', facts: { epoch, head: 5 } }, name)
    }
    t.match(await history.describe('imported'), { epoch, head: 5 })
    t.match(await importText(`${HEADER('headed')}\n`), { id: 'headed', head: -1, created: true })
    t.match(
      await history.append('imported', bodyOfEvents([userMessage(6)]), {}),
      { head: 6 },
      'it goes on like any other',
    )
  })

  t.test('a file that is not whole is refused with its last good line, and leaves nothing', async (t) => {
    // Case H17, of a file; D5, of a line over the limit.
    const hole = EVENTS.toSpliced(2, 1)
    const table: [name: string, text: string, code: string, facts: object][] = [
      ['empty', '', 'log/invalid', { line: 1 }],
      ['blank', '\n\r\n \n', 'log/invalid', { line: 1 }],
      ['no header', `${EVENTS.join('\n')}\n`, 'log/invalid', { line: 1, lastGoodLine: 0 }],
      ['another version', [HEADER('bad', '1'), ...EVENTS].join('\n'), 'log/invalid', { line: 1, path: '/version' }],
      ['a header twice', file('bad', [HEADER('bad'), ...EVENTS]), 'log/invalid', { line: 2, lastGoodLine: 1 }],
      ['a hole', file('bad', hole), 'log/invalid', { line: 4, lastGoodLine: 3, expectedSeq: 2 }],
      [
        'a hole at the start',
        file('bad', EVENTS.slice(1)),
        'log/invalid',
        { line: 2, lastGoodLine: 1, expectedSeq: 0 },
      ],
      [
        'a line twice',
        file('bad', [...EVENTS.slice(0, 2), EVENTS[1] as string]),
        'log/invalid',
        { line: 4, lastGoodLine: 3 },
      ],
      ['cut inside a line', file('bad').slice(0, -4), 'log/invalid', { line: 7, lastGoodLine: 6 }],
      ['cut inside the header', HEADER('bad').slice(0, 30), 'log/invalid', { line: 1, lastGoodLine: 0 }],
      ['damaged', file('bad').replace('"seq":3', '"seq":x'), 'log/invalid', { line: 5, lastGoodLine: 4 }],
      ['not numbered', file('bad', ['{"type":"x","data":1}']), 'log/invalid', { line: 2, path: '/seq' }],
      ['a record, not an event', file('bad', [`{"type":"event","event":${EVENTS[0]}}`]), 'log/invalid', { line: 2 }],
      [
        'a bad replacement',
        file('bad', [JSON.stringify({ ...userMessage(0), surfaceOp: { op: 'replace', start: 0, end: 0 } })]),
        'log/invalid',
        { line: 2 },
      ],
    ]
    for (const size of [1, 50, 100_000]) {
      for (const [name, text, code, facts] of table) {
        await t.rejects(importText(text, { size }), { code, facts }, `${name}, ${size} bytes at a time`)
      }
    }
    const invalidUtf8 = Buffer.concat([bytesOf(file('bad')), Uint8Array.of(0x22, 0xc3)])
    await t.rejects(history.importLog(pieces(invalidUtf8, 10), {}), {
      code: 'log/invalid',
      facts: { line: 8, lastGoodLine: 7 },
    })
    // A cut at a line's edge leaves a valid file: only its expected head tells.
    await t.rejects(importText(file('bad', EVENTS.slice(0, 3)), { expectedHead: 5 }), {
      code: 'log/invalid',
      facts: { head: 2 },
    })
    await t.rejects(importText(file('bad'), { expectedHead: 4 }), { code: 'log/invalid', facts: { head: 5 } })
    t.equal(await store.describe('bad'), undefined)
    t.match(await importText(file('bad')), { created: true, head: 5 }, 'the id is still free')
  })

  t.test('an import is seen only whole, and one that breaks off leaves nothing', async (t) => {
    async function* slow(): AsyncGenerator<Uint8Array> {
      yield bytesOf(`${HEADER('slow')}\n`)
      for (let seq = 0; seq < 40; seq++)
        yield bytesOf(`${JSON.stringify({ ...userMessage(seq), data: 'x'.repeat(60_000) })}\n`)
      t.equal(await store.describe('slow'), undefined, 'not yet')
      t.notOk((await history.list({ limit: 500 })).sessions.some(({ id }) => id === 'slow'))
    }
    t.match(await history.importLog(slow(), {}), { head: 39, created: true })
    t.equal((await history.describe('slow')).messages, 40)

    async function* breaking(): AsyncGenerator<Uint8Array> {
      yield bytesOf(file('broken'))
      throw new Error('the socket closed')
    }
    await t.rejects(history.importLog(breaking(), {}), { message: 'the socket closed' })
    t.equal(await store.describe('broken'), undefined)
    t.match(await importText(file('broken')), { created: true })
  })

  t.test('imports of one file at the same time end as one session', async (t) => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => importText(file('together'))))
    t.equal(answers.filter(({ created }) => created).length, 1)
    t.equal(new Set(answers.map(({ epoch }) => epoch)).size, 1)
  })

  t.test('appends go on while a file is imported', async (t) => {
    const id = await created()
    let appended = 0
    async function* source(): AsyncGenerator<Uint8Array> {
      yield bytesOf(`${HEADER('beside')}\n`)
      for (let seq = 0; seq < 30; seq++) {
        yield bytesOf(`${JSON.stringify({ ...userMessage(seq), data: 'x'.repeat(100_000) })}\n`)
        await history.append(id, bodyOfEvents([userMessage(appended++)]), {})
      }
    }
    t.match(await history.importLog(source(), {}), { head: 29 })
    t.equal((await history.describe(id)).head, 29)
  })
}
