// The stores' door.

export { backupSqliteStore } from './sqlite-backup.ts'
export type { SqliteStoreOptions } from './sqlite-store.ts'
export { openSqliteStore } from './sqlite-store.ts'
