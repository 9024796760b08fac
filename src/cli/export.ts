// Owns `scrollback export`: a whole session as a session log, or an error.

import { EXPORT_LAYOUTS } from '../../codec/index.ts'
import { command } from './command.ts'
import { oneOf, option, textOf } from './options.ts'
import type { LineSink } from './output-file.ts'
import { writeWholeFile } from './output-file.ts'
import { sessionOperand, urlOption, withClient } from './service.ts'

export const exportCommand = command({
  shape: {
    name: 'export',
    about: [
      'Writes the log of a session: a header line, then its events, runs of tokens packed into rows.',
      'Exits with 1 unless the log came whole, up to the last event that the service announced.',
    ].join('\n'),
    operands: [sessionOperand],
    options: {
      layout: option('LAYOUT', oneOf(EXPORT_LAYOUTS), 'packed (default), or events: each event on its own line'),
      output: option('FILE', textOf('the name of a file'), 'write to FILE, which appears once it is whole', 'o'),
      url: urlOption,
    },
  },
  async run({ layout, output, url }, [id], around) {
    const { signal } = around
    return withClient(url, around, async (client) => {
      const log = await client.session(id as string).export({ layout, signal })
      const write = async (sink: LineSink) => {
        for await (const lines of log.lines()) await sink.write(`${lines.join('\n')}\n`)
      }
      try {
        await (output === undefined ? write(around.output) : writeWholeFile(output, write))
      } finally {
        log.cancel()
      }
      return 0
    })
  },
})
