import { execFileSync } from 'node:child_process'

/** Before all tests: the package is built, for the tests that use it as its users do. Not by `npm run test:long`, which has built it. */
export function setup(): void {
  if (process.env['THINHARNESS_BUILT'] !== undefined) return
  execFileSync(process.execPath, ['node_modules/tsup/dist/cli-default.js', '--silent'], { stdio: 'inherit' })
}
