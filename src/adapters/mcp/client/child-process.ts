import { basename } from 'node:path'

/** Variables that a process needs to run and that hold no secrets. */
const PASSED_ON = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'TERM',
  'LANG',
  'TZ',
  'TMPDIR',
  // Windows
  'APPDATA',
  'COMSPEC',
  'HOMEDRIVE',
  'HOMEPATH',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROCESSOR_ARCHITECTURE',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'USERNAME',
  'USERPROFILE',
  'WINDIR',
]

/**
 * The environment of a server's process: the variables that any program needs, `LC_*`, and those named for this server.
 * Nothing else of the host's, so that a key reaches only the server that it was named for.
 */
export function childEnvironment(
  named: Readonly<Record<string, string>>,
  host: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const passed = Object.entries(host).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isPassedOn(entry[0]) && !entry[1].startsWith('()'),
  )
  return { ...Object.fromEntries(passed), ...named }
}

function isPassedOn(name: string): boolean {
  const upper = name.toUpperCase()
  return PASSED_ON.includes(upper) || upper.startsWith('LC_')
}

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
