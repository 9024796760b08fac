// The stores' door.

export type { SqliteStoreOptions } from './sqlite-store.ts'
export { openSqliteStore } from './sqlite-store.ts'
