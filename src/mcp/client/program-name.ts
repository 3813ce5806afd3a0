import { basename } from 'node:path'

/** The command of a program that runs packages; null if it needs none. */
const RUNNERS: Readonly<Record<string, string | null>> = {
  npx: null,
  pnpx: null,
  bunx: null,
  uvx: null,
  npm: 'exec',
  pnpm: 'dlx',
  yarn: 'dlx',
  bun: 'x',
  pipx: 'run',
}

/** Options of these programs that have no value. */
const FLAGS = ['-y', '--yes', '-q', '--quiet', '--']
const PACKAGE = /^((?:@[\w.-]+\/)?[\w.-]+)(?:@[\w.^~-]*)?$/

/** The name of a command: the package that it runs, or its program. No other argument: those may contain keys. */
export function programName(command: string, args: readonly string[]): string {
  const program = basename(command.replaceAll('\\', '/')) || command
  const runs = RUNNERS[program.replace(/\.(?:cmd|exe)$/i, '')]
  if (runs === undefined) return program
  const rest = runs === null ? args : args[0] === runs ? args.slice(1) : []
  const first = rest.find((arg) => !FLAGS.includes(arg)) ?? ''
  return (first.startsWith('-') ? undefined : PACKAGE.exec(first)?.[1]) ?? program
}
