// Owns reading files and standard input.

import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Surroundings } from './command.ts'

export interface InputFile {
  readonly bytes: AsyncIterable<Uint8Array>
  /** undefined when it is not known beforehand */
  readonly size: number | undefined
  close(): void
}

/** Opens a file, or standard input for `-`. What is wrong with a file is thrown when its bytes are read. */
export async function openInput(name: string, around: Surroundings): Promise<InputFile> {
  if (name === '-') return standardInput(around)
  const stats = await stat(name)
  const stream = createReadStream(name, { highWaterMark: 256 * 1024, signal: around.signal })
  return { bytes: stream, size: stats.isFile() ? stats.size : undefined, close: () => void stream.destroy() }
}

/** It is closed as a file is: open, it would keep the process from ending. */
function standardInput({ input, signal }: Surroundings): InputFile {
  const stream = input()
  const close = () => void stream.destroy()
  signal.addEventListener('abort', close, { once: true })
  return { bytes: stream, size: undefined, close }
}
