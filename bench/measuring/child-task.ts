// A client under measurement is a process of its own too: it starts with an empty heap and with nothing compiled, as a
// client that opens a page does. It gets its task as JSON and prints what it found as JSON.

import { spawn } from 'node:child_process'

/**
 * Run one of the bench's clients to its end.
 * @param name of the file in `bench/clients`, without its ending
 * @param flags for Node.js
 */
export async function runChild<Result>(name: string, task: object, flags: readonly string[] = []): Promise<Result> {
  const file = new URL(`../clients/${name}.ts`, import.meta.url).pathname
  const args = ['--expose-gc', ...flags, file, JSON.stringify(task)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject))
  let output = ''
  for await (const text of child.stdout.setEncoding('utf8')) output += text
  const code = await closed
  if (code !== 0) throw new Error(`${name} ended with ${code}`)
  return JSON.parse(output) as Result
}

/** The child's side. */
export async function answerTask<Task, Result>(work: (task: Task) => Promise<Result> | Result): Promise<void> {
  const result = await work(JSON.parse(process.argv[2] as string) as Task)
  console.log(JSON.stringify(result))
}
