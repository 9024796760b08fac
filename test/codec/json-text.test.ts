import fc from 'fast-check'
import t from 'tap'
import {
  compactJson,
  elementTexts,
  exceedsUtf8,
  jsonStringBytes,
  memberSlice,
  scanObject,
  utf8Bytes,
} from '../../codec/json-text.ts'
import {
  hardKey,
  hardText,
  inTime,
  jsonTokens,
  rawString,
  space,
  spacedJson,
  spacedTokens,
} from '../support/arbitraries.ts'

const objectTokens = fc.array(fc.tuple(rawString(hardKey), jsonTokens), { maxLength: 5 }).map((members) => ({
  members,
  tokens: ['{', ...members.flatMap(([key, value], at) => [...(at === 0 ? [] : [',']), key, ':', ...value]), '}'],
}))

/** Depth and keys, counted on the tokens. */
function counted(tokens: readonly string[]): { depth: number; keys: number } {
  let open = 0
  let depth = 0
  for (const token of tokens) {
    if (token === '{' || token === '[') depth = Math.max(depth, ++open)
    if (token === '}' || token === ']') open--
  }
  return { depth, keys: tokens.filter((token) => token === ':').length }
}

t.test('compacting removes the white space between tokens and nothing else', (t) => {
  fc.assert(
    fc.property(spacedJson, ({ spaced, compact }) => {
      JSON.parse(spaced)
      const result = compactJson(spaced)
      return (
        result.text === compact && compactJson(compact).text === compact && result.depth === compactJson(compact).depth
      )
    }),
    inTime(),
  )
  t.pass()
  t.end()
})

t.test('a scan finds every member, the depth and the keys', (t) => {
  fc.assert(
    fc.property(objectTokens, fc.array(space, { minLength: 1, maxLength: 9 }), ({ members, tokens }, spaces) => {
      const spaced = tokens.map((token, at) => spaces[at % spaces.length] + token).join('') + spaces[0]
      JSON.parse(spaced)
      const { text, ...scan } = scanObject(spaced)
      const { depth, keys } = counted(tokens)
      if (text !== tokens.join('') || scan.depth !== depth || scan.keys !== keys) return false
      const found = scan.members.map(({ key, start, end }) => [key, text.slice(start, end)])
      const given = members.map(([key, value]) => [JSON.parse(key), value.join('')])
      return JSON.stringify(found) === JSON.stringify(given)
    }),
    inTime(),
  )
  t.pass()
  t.end()
})

t.test('text without white space is not copied', (t) => {
  const text = '{"a":[1.0,-0,1e400,9007199254740993],"__proto__":{"b":" x "},"a":"\\u2028\u2028"}'
  t.equal(scanObject(text).text, text)
  t.strictSame(scanObject(text).members, [
    { key: 'a', start: 5, end: 36 },
    { key: '__proto__', start: 49, end: 60 },
    { key: 'a', start: 65, end: 74 },
  ])
  t.strictSame(scanObject('{}'), { text: '{}', members: [], depth: 1, keys: 0 })
  t.strictSame(scanObject(' {\n} '), { text: '{}', members: [], depth: 1, keys: 0 })
  t.end()
})

t.test('white space inside strings and escapes before quotes are left alone', (t) => {
  for (const text of ['"\\\\"', '"\\\\\\" \\\\"', '" { } [ ] , : "', '"\\" : \\""', '{"a\\\\":"b\\\\\\\\"}']) {
    t.equal(compactJson(` ${text}\t`).text, text)
  }
  // Only the four of JSON are white space between tokens; inside strings even they may be (escaped) content.
  t.equal(compactJson('["\u00a0","\ufeff","\u2028"]\r\n').text, '["\u00a0","\ufeff","\u2028"]')
  t.end()
})

t.test('depth is that of the deepest branch, a scalar has none', (t) => {
  for (const [text, depth] of [
    ['1', 0],
    ['"[[["', 0],
    ['[]', 1],
    ['[[],{}]', 2],
    ['{"a":{"b":[]},"c":1}', 3],
    ['[{"a":[1]},[[[[]]]]]', 5],
    [`${'['.repeat(5000)}${']'.repeat(5000)}`, 5000],
  ] as const) {
    t.equal(compactJson(text).depth, depth, text.slice(0, 20))
  }
  t.end()
})

t.test('only an object is scanned', (t) => {
  for (const text of ['[]', '"{}"', '1', 'null', '']) t.throws(() => scanObject(text), SyntaxError)
  t.throws(() => scanObject('{"a'), SyntaxError)
  t.end()
})

t.test('the last of the members with a key is sliced', (t) => {
  const text = '{"a":1,"b":{"a":2},"\\u0061":[3],"__proto__":null}'
  const slice = (key: string) => {
    const found = memberSlice(text, key)
    return found && text.slice(found.start, found.end)
  }
  t.equal(slice('a'), '[3]')
  t.equal(slice('b'), '{"a":2}')
  t.equal(slice('__proto__'), 'null')
  t.equal(slice('c'), undefined)
  t.equal(slice('constructor'), undefined)
  for (const other of ['[{"a":1}]', '"a"', '1']) t.equal(memberSlice(other, 'a'), undefined)
  t.end()
})

t.test('the elements of an array are split without being parsed', (t) => {
  fc.assert(
    fc.property(fc.array(spacedTokens(jsonTokens), { maxLength: 5 }), space, (elements, around) => {
      const text = `${around}[${around}${elements.map(({ spaced }) => spaced).join(',')}${around}]${around}`
      JSON.parse(text)
      const found = [...elementTexts(text)].map((element) => compactJson(element).text)
      return JSON.stringify(found) === JSON.stringify(elements.map(({ compact }) => compact))
    }),
    inTime(500),
  )
  t.pass()
  t.end()
})

t.test('anything but an array is one element', (t) => {
  for (const text of ['{"a":[1,2]}', '"x"', '12', '{"broken"']) t.strictSame([...elementTexts(` ${text}\n`)], [text])
  t.end()
})

t.test('an array that is not JSON is refused, or its element is left for the parser to refuse', (t) => {
  for (const text of [
    '',
    ' \n',
    '[',
    '[1',
    '[1,',
    '[1,]',
    '[1, ]',
    '[1]]',
    '[1] x',
    '[{"a":1}',
    '[1}',
    '["a',
    '["a]',
    '[{}',
    '[1],[2]',
  ]) {
    t.throws(() => [...elementTexts(text)], SyntaxError, text)
  }
  for (const text of ['[,]', '[,1]', '[1,,2]', '[1 2]', '[{]}]', '[nul]', '[1,{"a":}]', '[\u00a0]', '[\\"]"]']) {
    t.throws(() => Array.from(elementTexts(text), (element) => JSON.parse(element)), SyntaxError, text)
  }
  t.strictSame([...elementTexts('[]')], [])
  t.strictSame([...elementTexts(' [ \n ] ')], [])
  t.end()
})

t.test('arbitrary text never passes as an array that it is not', (t) => {
  const pieces = fc.array(fc.constantFrom('[', ']', '{', '}', ',', '"', '\\', ':', '1', ' ', 'null', '"a"'), {
    maxLength: 12,
  })
  fc.assert(
    fc.property(pieces, (drawn) => {
      const text = drawn.join('')
      let valid = true
      let elements: unknown[] = []
      try {
        const value = JSON.parse(text)
        elements = Array.isArray(value) ? value : [value]
      } catch {
        valid = false
      }
      let taken: unknown[] | undefined
      try {
        taken = Array.from(elementTexts(text), (element) => JSON.parse(element))
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error
      }
      return valid ? JSON.stringify(taken) === JSON.stringify(elements) : taken === undefined
    }),
    inTime(5000),
  )
  t.pass()
  t.end()
})

t.test('bytes are counted as an encoder writes them', (t) => {
  const encoder = new TextEncoder()
  fc.assert(
    fc.property(hardText, (text) => {
      if (utf8Bytes(text) !== encoder.encode(text).length) return false
      return jsonStringBytes(text) === encoder.encode(JSON.stringify(text)).length
    }),
    inTime(3000),
  )
  for (let code = 0; code <= 0xffff; code++) {
    const text = String.fromCharCode(code)
    if (jsonStringBytes(text) !== encoder.encode(JSON.stringify(text)).length) t.fail(`U+${code.toString(16)}`)
    if (utf8Bytes(text) !== encoder.encode(text).length) t.fail(`U+${code.toString(16)}`)
  }
  for (const text of ['\ud83d\ud83d\ude00', '\ude00\ud83d', '\ud83d', 'a\ud83dz', '\u{10ffff}']) {
    t.equal(jsonStringBytes(text), encoder.encode(JSON.stringify(text)).length)
    t.equal(utf8Bytes(text), encoder.encode(text).length)
  }
  t.end()
})

t.test('a limit in bytes is judged exactly', (t) => {
  for (const [text, bytes] of [
    ['', 0],
    ['abc', 3],
    ['éé', 4],
    ['漢漢', 6],
    ['😀', 4],
  ] as const) {
    t.equal(exceedsUtf8(text, bytes), false)
    if (bytes > 0) t.equal(exceedsUtf8(text, bytes - 1), true)
  }
  t.end()
})
