// Owns waiting for what cannot be aborted itself, and leaving what is being waited for.

/** The promise's outcome, or the signal's reason as soon as it is aborted. Nothing keeps listening afterwards. */
export async function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  // Whoever lost interest must not be the one who leaves a rejection unheard.
  promise.catch(() => {})
  if (!signal) return promise
  signal.throwIfAborted()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** A generator that runs until it is left takes no notice of `return` before it yields: `leave` makes it stop waiting. */
export function leavable<Value>(generator: AsyncGenerator<Value>, leave: () => void): AsyncGenerator<Value> {
  const end = generator.return.bind(generator)
  generator.return = (value) => {
    leave()
    return end(value)
  }
  return generator
}
