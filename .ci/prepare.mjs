// Installs what is missing before `npm start` and `npm test`. Plain JavaScript for the Node that is there: the Node 24
// that everything else runs on is one of the packages it installs.

import { spawnSync } from 'node:child_process'
import { existsSync, statSync, writeFileSync } from 'node:fs'

const INSTALLED = 'node_modules/.package-lock.json'
// tap comes built with its default plugins, so its own files do not tell whether it was built with this project's.
const BUILT = 'node_modules/.tap-built'

const modified = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0)

function run(command, ...args) {
  // Standard output belongs to the command that comes after.
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 2, 2], shell: process.platform === 'win32' })
  if (status !== 0) {
    console.error(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`)
    process.exit(status ?? 1)
  }
}

// npm writes the hidden lockfile last, so one newer than the lockfile means a whole install of what it names.
if (modified(INSTALLED) < modified('package-lock.json')) {
  // The Node that runs npm may be older than the packages ask for; the one they run on is not.
  console.error('installing what is missing, which takes about half a minute')
  run('npm', 'ci', '--no-audit', '--no-fund', '--loglevel=error')
}
if (process.argv.includes('--tests') && modified(BUILT) < modified(INSTALLED)) {
  run('npx', '--no-install', 'tap', 'build')
  writeFileSync(BUILT, '')
}
