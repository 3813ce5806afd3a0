import { execFileSync } from 'node:child_process'

/** Before all tests: the package is built, for the tests that use it as its users do. */
export function setup(): void {
  execFileSync(process.execPath, ['node_modules/tsup/dist/cli-default.js', '--silent'], { stdio: 'inherit' })
}
