// The command line's door.

export type { Surroundings, Terminal } from './command.ts'
export { runCommandLine } from './commands.ts'
export { Output } from './output.ts'
