// The configuration: defaults, variables, and messages that say what was expected and what came.

import t from 'tap'
import { DEFAULT_CONFIG, readConfig, SETTINGS } from '../../src/server/index.ts'

t.test('the defaults are those of the contract', (t) => {
  t.match(DEFAULT_CONFIG, {
    host: '127.0.0.1',
    port: 7411,
    data: './data',
    logLevel: 'info',
    graceMs: 10_000,
    lineBytes: 8 * 1024 ** 2,
    appendBytes: 64 * 1024 ** 2,
    heldBytes: 256 * 1024 ** 2,
    importBytes: 8 * 1024 ** 3,
    idleMs: 60_000,
    stallMs: 60_000,
    heartbeatMs: 15_000,
    followers: 10_000,
    compressedFollowers: 100,
  })
  t.same(readConfig({ UNRELATED: 'x', PORT: '', LOG_LEVEL: undefined }), DEFAULT_CONFIG)
  t.end()
})

t.test('each variable sets its own value', (t) => {
  const config = readConfig({
    HOST: '::1',
    PORT: '0',
    SCROLLBACK_DATA: '/data',
    LOG_LEVEL: 'silent',
    SCROLLBACK_GRACE: '0',
    SCROLLBACK_LINE_BYTES: '1',
    SCROLLBACK_APPEND_BYTES: '2',
    SCROLLBACK_HELD_BYTES: '3',
    SCROLLBACK_IMPORT_BYTES: '9007199254740991',
    SCROLLBACK_IMPORTS: '4',
    SCROLLBACK_BODY_IDLE: '5',
    SCROLLBACK_STALL: '86400',
    SCROLLBACK_HEARTBEAT: '1',
    SCROLLBACK_FOLLOWERS: '0',
    SCROLLBACK_COMPRESSED_FOLLOWERS: '1000000',
  })
  t.same(config, {
    host: '::1',
    port: 0,
    data: '/data',
    logLevel: 'silent',
    graceMs: 0,
    lineBytes: 1,
    appendBytes: 2,
    heldBytes: 3,
    importBytes: 9007199254740991,
    imports: 4,
    idleMs: 5000,
    stallMs: 86_400_000,
    heartbeatMs: 1_000,
    followers: 0,
    compressedFollowers: 1_000_000,
  })
  const variables = Object.values(SETTINGS).map(({ variable }) => variable)
  t.equal(new Set(variables).size, variables.length)
  t.end()
})

t.test('what is wrong is said', (t) => {
  for (const [variable, came, expected] of [
    ['PORT', '65536', 'a whole number from 0 to 65535'],
    ['PORT', '-1', 'a whole number from 0 to 65535'],
    ['PORT', '80.5', 'a whole number from 0 to 65535'],
    ['PORT', '1e3', 'a whole number from 0 to 65535'],
    ['PORT', ' 80', 'a whole number from 0 to 65535'],
    ['SCROLLBACK_LINE_BYTES', '0', 'a whole number from 1 to 9007199254740991'],
    ['SCROLLBACK_LINE_BYTES', '9007199254740993', 'a whole number from 1 to 9007199254740991'],
    ['SCROLLBACK_APPEND_BYTES', '64MiB', 'a whole number from 1 to 9007199254740991'],
    ['SCROLLBACK_BODY_IDLE', '0', 'a whole number from 1 to 86400'],
    ['SCROLLBACK_HEARTBEAT', '0', 'a whole number from 1 to 86400'],
    ['SCROLLBACK_FOLLOWERS', '1000001', 'a whole number from 0 to 1000000'],
    ['SCROLLBACK_COMPRESSED_FOLLOWERS', 'all', 'a whole number from 0 to 1000000'],
    ['SCROLLBACK_GRACE', '86401', 'a whole number from 0 to 86400'],
    ['LOG_LEVEL', 'loud', 'fatal, error, warn, info, debug, trace, silent'],
  ] as const) {
    t.throws(() => readConfig({ [variable]: came }), {
      message: new RegExp(`^${variable} \\(.+\\): expected ${expected}, got "${came}"$`),
    })
  }
  t.end()
})
