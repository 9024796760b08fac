// A backup of the store that a server uses, made beside it.

import { backupSqliteStore } from '../stores/index.ts'
import type { Config } from './config.ts'
import { databaseFile } from './main.ts'

/** Copy the store under `config.data` to a new file. @throws Problem `store/unavailable`, `store/full` */
export function backupStore(config: Pick<Config, 'data'>, file: string): Promise<void> {
  return backupSqliteStore(databaseFile(config), file)
}
