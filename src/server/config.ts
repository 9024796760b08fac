// Configuration: for each setting its variable, its default, its bounds and what it means, in one table; the type is made
// from it.

import { LIMITS } from '../../codec/index.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB

interface TextSetting {
  readonly variable: string
  readonly default: string
  readonly about: string
  readonly oneOf?: readonly string[]
}

interface NumberSetting {
  readonly variable: string
  readonly default: number
  readonly minimum: number
  readonly maximum: number
  /** What one of it is worth in the configuration: a variable in seconds is kept in milliseconds. */
  readonly scale: number
  readonly about: string
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

export const SETTINGS = {
  host: text('HOST', '127.0.0.1', 'address to listen on'),
  port: number('PORT', 7411, 0, 65_535, 'port to listen on, 0 for any free one'),
  data: text('SCROLLBACK_DATA', './data', 'folder of the database, made when it is not there'),
  logLevel: { ...text('LOG_LEVEL', 'info', 'least important log line written'), oneOf: LOG_LEVELS },
  graceMs: seconds('SCROLLBACK_GRACE', 10, 0, 'how long running answers may take to end at shutdown'),
  lineBytes: bytes('SCROLLBACK_LINE_BYTES', LIMITS.lineBytes, 'most bytes of one line of input'),
  appendBytes: bytes('SCROLLBACK_APPEND_BYTES', 64 * MIB, 'most bytes of one append, decoded'),
  heldBytes: bytes('SCROLLBACK_HELD_BYTES', 256 * MIB, 'most bytes of append bodies held at one time'),
  importBytes: bytes('SCROLLBACK_IMPORT_BYTES', 8 * GIB, 'most bytes of one import, decoded'),
  imports: number('SCROLLBACK_IMPORTS', 8, 1, 1_000, 'most imports at one time'),
  idleMs: seconds('SCROLLBACK_BODY_IDLE', 60, 1, 'how long a client may send nothing of its body'),
  stallMs: seconds('SCROLLBACK_STALL', 60, 1, 'how long a client may take nothing of its answer'),
  heartbeatMs: seconds('SCROLLBACK_HEARTBEAT', 15, 1, 'silence on a followed stream after which a blank line is sent'),
  followers: number('SCROLLBACK_FOLLOWERS', 10_000, 0, 1_000_000, 'most followers at one time'),
  compressedFollowers: number(
    'SCROLLBACK_COMPRESSED_FOLLOWERS',
    100,
    0,
    1_000_000,
    'most followers with compression; more get none',
  ),
} as const satisfies Record<string, TextSetting | NumberSetting>

/** Times in milliseconds, sizes in bytes. */
export type Config = {
  readonly [Name in keyof typeof SETTINGS]: (typeof SETTINGS)[Name]['default'] extends number ? number : string
}

/** The defaults. */
export const DEFAULT_CONFIG: Config = readConfig({})

/**
 * The configuration from environment variables; an empty one counts as not given.
 * @throws Error that names the variable, what was expected and what came
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const entries = Object.entries(SETTINGS).map(([name, setting]) => {
    const given = environment[setting.variable]
    const value = given === undefined || given === '' ? undefined : given
    return [name, 'minimum' in setting ? readNumber(setting, value) : readText(setting, value)]
  })
  return Object.fromEntries(entries) as Config
}

function readText(setting: TextSetting, value: string | undefined): string {
  if (value === undefined) return setting.default
  if (setting.oneOf && !setting.oneOf.includes(value)) throw unexpected(setting, setting.oneOf.join(', '), value)
  return value
}

function readNumber(setting: NumberSetting, value: string | undefined): number {
  if (value === undefined) return setting.default * setting.scale
  const { minimum, maximum, scale } = setting
  const amount = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
  if (amount >= minimum && amount <= maximum) return amount * scale
  throw unexpected(setting, `a whole number from ${minimum} to ${maximum}`, value)
}

function unexpected({ variable, about }: { variable: string; about: string }, expected: string, came: string): Error {
  return new Error(`${variable} (${about}): expected ${expected}, got ${JSON.stringify(came)}`)
}

function text(variable: string, byDefault: string, about: string): TextSetting {
  return { variable, default: byDefault, about }
}

function number(variable: string, byDefault: number, minimum: number, maximum: number, about: string): NumberSetting {
  return { variable, default: byDefault, minimum, maximum, scale: 1, about }
}

function bytes(variable: string, byDefault: number, about: string): NumberSetting {
  return number(variable, byDefault, 1, Number.MAX_SAFE_INTEGER, about)
}

/** Given in seconds, kept in milliseconds; a day at most, which timers can hold. */
function seconds(variable: string, byDefault: number, minimum: number, about: string): NumberSetting {
  return { ...number(variable, byDefault, minimum, 86_400, `${about}, seconds`), scale: 1000 }
}
