import { lstat, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { HarnessError } from '#contracts/errors.js'
import { Sandbox, SANDBOX_HOME } from '#toolbox/sandbox/sandbox.js'
import type { SandboxSettings } from '#toolbox/sandbox/options.js'
import type { Confine } from './connection.js'

/** Puts the process of a server into a sandbox whose root is its working directory. */
export function confineWith(settings: SandboxSettings, named: readonly string[]): Confine {
  const sandbox = new Sandbox(settings)
  return async ({ command: program, args, env, cwd }) => {
    const root = await realpath(cwd ?? '.')
    const own = join(root, '.thinharness')
    const hasOwn = await lstat(own).then(
      (stats) => stats.isDirectory(),
      () => false,
    )
    const opened = await sandbox.open({ root, ownFolder: hasOwn ? own : null, given: [] })
    if (opened.form === 'none') {
      const problem = `This machine has no sandbox (${opened.problem ?? 'it does not work'})`
      if (settings.sandbox === 'required') {
        throw new HarnessError('error', `${problem}, and the server requires one.`, { retryable: false })
      }
      process.emitWarning(
        `${problem}: the MCP server \`${program}\` runs with all rights of this process.`,
        'SandboxWarning',
      )
      return { command: { command: program, args, env, cwd }, uncovered: null, close: () => opened.close() }
    }
    const home = { HOME: SANDBOX_HOME, TMPDIR: '/tmp' }
    const kept = Object.fromEntries(Object.entries(env).filter(([name]) => named.includes(name) || !(name in home)))
    const wrapped = opened.wrap({ program, args, cwd: root, environment: { ...home, ...kept } })
    const { program: command, args: all, environment, cwd: start } = wrapped
    const { uncovered } = opened
    return { command: { command, args: all, env: environment, cwd: start }, uncovered, close: () => opened.close() }
  }
}
