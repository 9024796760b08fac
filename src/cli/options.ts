// Owns the shape of a command: its operands and options, how they are read from the command line, and the help that is
// made from the same table.

import { parseArgs } from 'node:util'

/** What was typed is wrong: one sentence that names the option and what was expected. */
export class UsageError extends Error {}

/** Turns the text of a value into the value, or throws UsageError with what was expected, such as `an integer`. */
export type Reader<Value> = (text: string) => Value

export interface ValueOption<Value> {
  readonly placeholder: string
  readonly help: string
  readonly short: string | undefined
  readonly read: Reader<Value>
}

export interface Flag {
  readonly help: string
  readonly short: string | undefined
}

export type OptionTable = Readonly<Record<string, ValueOption<unknown> | Flag>>

/** The value of each option by its name; undefined when it was not given. */
export type OptionValues<Table extends OptionTable> = {
  readonly [Name in keyof Table]: (Table[Name] extends ValueOption<infer Value> ? Value : true) | undefined
}

export interface Operand {
  /** as the usage shows it, such as `ID` */
  readonly name: string
  readonly help: string
  /** takes all that follow; only the last one may */
  readonly many?: boolean
  readonly read?: Reader<string>
}

export interface CommandShape<Table extends OptionTable> {
  readonly name: string
  /** one or more short sentences */
  readonly about: string
  readonly operands: readonly Operand[]
  readonly options: Table
  /** environment variables that it reads, each with what it means */
  readonly variables?: readonly (readonly [name: string, help: string])[]
}

export function option<Value>(
  placeholder: string,
  read: Reader<Value>,
  help: string,
  short?: string,
): ValueOption<Value> {
  return { placeholder, help, short, read }
}

export function flag(help: string, short?: string): Flag {
  return { help, short }
}

// ---------------------------------------------------------------------------------------------------------------
// Readers
// ---------------------------------------------------------------------------------------------------------------

export function integer(minimum: number, maximum: number = Number.MAX_SAFE_INTEGER): Reader<number> {
  const bounds = maximum === Number.MAX_SAFE_INTEGER ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`
  return (text) => {
    const value = /^(0|-?[1-9]\d{0,15})$/.test(text) ? Number(text) : Number.NaN
    if (Number.isSafeInteger(value) && value >= minimum && value <= maximum) return value
    throw new UsageError(`an integer ${bounds}`)
  }
}

export function oneOf<const Words extends readonly string[]>(words: Words): Reader<Words[number]> {
  return (text) => {
    if (words.includes(text)) return text
    throw new UsageError(`one of ${words.join(', ')}`)
  }
}

export function textOf(what: string, maximum: number = Number.POSITIVE_INFINITY): Reader<string> {
  return (text) => {
    if (text !== '' && text.length <= maximum) return text
    throw new UsageError(what)
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------------------------------------------

export interface ParsedCommand<Table extends OptionTable> {
  readonly help: boolean
  readonly values: OptionValues<Table>
  readonly operands: readonly string[]
}

/** Throws UsageError. With `help` set nothing else was looked at. */
export function parseCommand<Table extends OptionTable>(
  shape: CommandShape<Table>,
  args: readonly string[],
): ParsedCommand<Table> {
  const { tokens } = parseArgs({
    args: [...args],
    options: parserOptions(shape.options),
    // Its own errors say too little; what it lets pass is checked here.
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const values: Record<string, unknown> = {}
  const operands: string[] = []
  if (tokens.some((token) => token.kind === 'option' && token.name === 'help')) {
    return { help: true, values: values as OptionValues<Table>, operands }
  }
  for (const token of tokens) {
    if (token.kind === 'positional') operands.push(token.value)
    if (token.kind === 'option') values[token.name] = readOption(shape, token)
  }
  return { help: false, values: values as OptionValues<Table>, operands: readOperands(shape, operands) }
}

function takesValue(spec: ValueOption<unknown> | Flag): spec is ValueOption<unknown> {
  return 'read' in spec
}

function parserOptions(table: OptionTable): NonNullable<Parameters<typeof parseArgs>[0]>['options'] {
  const entries = Object.entries(table).map(([name, spec]) => {
    const { short } = spec
    const type = takesValue(spec) ? ('string' as const) : ('boolean' as const)
    return [name, short === undefined ? { type } : { type, short }] as const
  })
  return { ...Object.fromEntries(entries), help: { type: 'boolean', short: 'h' } }
}

interface OptionToken {
  readonly name: string
  readonly rawName: string
  readonly value?: string | undefined
  readonly inlineValue?: boolean | undefined
}

function readOption(shape: CommandShape<OptionTable>, token: OptionToken): unknown {
  const { rawName, value } = token
  const spec = Object.hasOwn(shape.options, token.name) ? shape.options[token.name] : undefined
  if (spec === undefined) {
    throw new UsageError(`${rawName} is not an option here; "scrollback ${shape.name} --help" lists them`)
  }
  if (!takesValue(spec)) {
    if (value === undefined) return true
    throw new UsageError(`${rawName} takes no value, got ${quoted(value)}`)
  }
  // Another option in its place means that the value was forgotten; with `=` it can be said all the same.
  if (value === undefined || (!token.inlineValue && value.startsWith('--'))) {
    throw new UsageError(`${rawName} expects ${spec.placeholder}, got nothing`)
  }
  return readValue(rawName, spec.read, value)
}

function readOperands(shape: CommandShape<OptionTable>, given: string[]): string[] {
  const { name, operands } = shape
  const missing = operands[given.length]
  if (missing) throw new UsageError(`${missing.name} is missing; expected "${usageOf(shape)}"`)
  const last = operands.at(-1)
  if (given.length > operands.length && !last?.many) {
    throw new UsageError(`${quoted(given[operands.length] as string)} is one operand too many for "${name}"`)
  }
  return given.map((text, at) => {
    const operand = operands[Math.min(at, operands.length - 1)] as Operand
    return operand.read ? readValue(operand.name, operand.read, text) : text
  })
}

function readValue<Value>(name: string, read: Reader<Value>, text: string): Value {
  try {
    return read(text)
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${name} expects ${error.message}, got ${quoted(text)}`)
    throw error
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text)
}

// ---------------------------------------------------------------------------------------------------------------
// Help
// ---------------------------------------------------------------------------------------------------------------

export function usageOf({ name, operands }: CommandShape<OptionTable>): string {
  return ['scrollback', name, ...operands.map((operand) => (operand.many ? `${operand.name}...` : operand.name))].join(
    ' ',
  )
}

export function helpOf(shape: CommandShape<OptionTable>): string {
  const rows: [string, string][] = Object.entries(shape.options).map(([name, spec]) => {
    const short = spec.short === undefined ? '    ' : `-${spec.short}, `
    return [`${short}--${name}${takesValue(spec) ? ` ${spec.placeholder}` : ''}`, spec.help]
  })
  const options: [string, string][] = [...rows, ['-h, --help', 'show this help']]
  const operands: [string, string][] = shape.operands.map(({ name, help }) => [name, help])
  const width = Math.max(...[...options, ...operands].map(([left]) => left.length))
  const sections = [`Usage: ${usageOf(shape)} [OPTIONS]`, shape.about]
  if (operands.length > 0) sections.push(columns(operands, width))
  sections.push(columns(options, width))
  if (shape.variables) {
    const longest = Math.max(...shape.variables.map(([name]) => name.length))
    sections.push(`Environment variables:\n${columns(shape.variables, longest)}`)
  }
  return `${sections.join('\n\n')}\n`
}

/** Two columns; a line of the right one that is broken goes on below itself. */
export function columns(rows: readonly (readonly [string, string])[], width: number): string {
  const indent = ' '.repeat(width + 4)
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right.replaceAll('\n', `\n${indent}`)}`).join('\n')
}
