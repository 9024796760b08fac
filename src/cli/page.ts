// Owns `scrollback page`: a page of a session, or all of them, as the records that came.

import { CHUNKS_MODES, EPOCH_LENGTH, PAGE_MESSAGES } from '../../codec/index.ts'
import type { HistoryPage, HistoryReader } from '../client/index.ts'
import type { Surroundings } from './command.ts'
import { command } from './command.ts'
import { flag, integer, oneOf, option, textOf } from './options.ts'
import { sessionId, sessionOperand, urlOption, withClient, withReader } from './service.ts'

export const pageCommand = command({
  shape: {
    name: 'page',
    about: [
      'Writes one page of a session, a record a line in the order of the log: the newest page, or the one before a seq.',
      'Every record is checked before it is written; exits with 1 unless they cover the page without a gap.',
    ].join('\n'),
    operands: [sessionOperand],
    options: {
      before: option('SEQ', integer(0), 'end before this seq; the first seq of a page gives the one before it'),
      through: option('SEQ', integer(-1), 'go no further than this seq'),
      messages: option(
        'N',
        integer(PAGE_MESSAGES.minimum, PAGE_MESSAGES.maximum),
        `messages on a page, ${PAGE_MESSAGES.minimum} to ${PAGE_MESSAGES.maximum} (default ${PAGE_MESSAGES.default})`,
      ),
      chunks: option(
        'MODE',
        oneOf(CHUNKS_MODES),
        'packed (default): tokens in rows; expanded: each on its own line;\nomit: left out where a message of the page holds them',
      ),
      epoch: option('EPOCH', textOf('the epoch of a page', EPOCH_LENGTH), 'fail unless the log is still this one'),
      all: flag('go on with the page before, and so on to the beginning:\nthe newest page comes first'),
      parent: option('ID', sessionId, 'the session is a subagent, read through this parent'),
      url: urlOption,
    },
  },
  async run(values, [id], around) {
    const { before: beforeSeq, through: throughSeq, messages: maxMessages, chunks, epoch, parent } = values
    const { signal } = around
    const read = async (session: HistoryReader) => {
      const pages = session.pages({ beforeSeq, throughSeq, maxMessages, chunks, epoch, signal })
      for await (const page of pages) {
        await writePage(page, around)
        if (!values.all) break
      }
      return 0
    }
    return withClient(values.url, around, (client) => withReader(client, id as string, parent, read))
  },
})

async function writePage(page: HistoryPage, { output }: Surroundings): Promise<void> {
  try {
    for await (const lines of page.lines()) await output.write(lines.map(({ text }) => `${text}\n`).join(''))
  } finally {
    page.cancel()
  }
}
