// Owns files that are written: one has its name only once it is whole.

import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { getSystemErrorMap } from 'node:util'

export interface LineSink {
  write(text: string): Promise<void>
}

/** Writes beside the file and renames at the end. Nothing is left, and the old file stands, when `write` throws. */
export async function writeWholeFile(name: string, write: (sink: LineSink) => Promise<void>): Promise<void> {
  const temporary = `${name}.${randomUUID().slice(0, 8)}.part`
  const file = await open(temporary, 'wx').catch((error) => {
    throw cannotWrite(name, error)
  })
  try {
    await write({ write: async (text) => void (await file.writeFile(text)) })
    // The name must not reach the disk before the bytes do.
    await file.sync()
    await file.close()
    await rename(temporary, name).catch((error) => {
      throw cannotWrite(name, error)
    })
  } catch (error) {
    await file.close()
    await rm(temporary, { force: true })
    throw error
  }
}

/** The error by the name that was asked for: nobody knows the temporary one. */
function cannotWrite(name: string, error: NodeJS.ErrnoException): Error {
  const [, reason = error.message] = getSystemErrorMap().get(error.errno ?? 0) ?? []
  return new Error(`cannot write ${name}: ${reason}`, { cause: error })
}
