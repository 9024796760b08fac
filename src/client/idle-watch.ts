// Owns noticing silence: a connection that gives nothing for too long is lost, whatever the system says of it. A laptop
// that slept and a NAT that forgot leave a socket that looks open for hours.

import { NetworkError } from './errors.ts'

/**
 * The pieces of a body. Throws NetworkError `network/timeout` when one takes longer than `silence` milliseconds to come.
 * Only the time in which a piece is waited for counts: a slow reader is no silent service. `discard` must let go of the
 * connection and end the wait; it is called for silence alone, and a body that is left otherwise is the caller's to let go.
 */
export async function* watchSilence(
  body: AsyncGenerator<Uint8Array>,
  silence: number,
  discard: () => void,
): AsyncGenerator<Uint8Array> {
  let silent = false
  const onSilence = () => {
    silent = true
    discard()
  }
  for (;;) {
    const timer = setTimeout(onSilence, silence)
    let piece: IteratorResult<Uint8Array>
    try {
      piece = await body.next()
    } catch (error) {
      throw silent ? silenceError(silence, error) : error
    } finally {
      clearTimeout(timer)
    }
    if (silent) throw silenceError(silence)
    if (piece.done) return
    yield piece.value
  }
}

function silenceError(silence: number, cause?: unknown): NetworkError {
  return new NetworkError('network/timeout', `the service sent nothing for ${silence} ms`, { cause })
}
