// Owns `scrollback backup`: a copy of the store, made while a service uses it.

import { resolve } from 'node:path'
import { backupStore, readConfig } from '../server/index.ts'
import { command } from './command.ts'
import { option, textOf } from './options.ts'

export const backupCommand = command({
  shape: {
    name: 'backup',
    about: [
      'Copies the store to FILE, all of it as of one moment, while a service may be using it. FILE must not exist yet.',
      'To restore, put FILE into an empty data folder as scrollback.db. The first start over it begins a new generation:',
      'readers that hold a place in the original are told to start over.',
    ].join('\n'),
    operands: [{ name: 'FILE', help: 'the copy' }],
    options: {
      data: option('DIR', textOf('the name of a folder'), 'folder of the database ($SCROLLBACK_DATA, ./data)'),
    },
  },
  async run({ data }, [file], { environment, output }) {
    const config = readConfig(data === undefined ? environment : { ...environment, SCROLLBACK_DATA: data })
    const target = resolve(file as string)
    await backupStore(config, target)
    await output.write(`${JSON.stringify({ backup: target })}\n`)
    return 0
  },
})
