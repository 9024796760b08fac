// The server's door.

export type { AppOptions } from './app.ts'
export { buildApp } from './app.ts'
export { backupStore } from './backup.ts'
export type { Config } from './config.ts'
export { DEFAULT_CONFIG, readConfig, SETTINGS } from './config.ts'
export type { RunningServer } from './main.ts'
export { startServer } from './main.ts'
