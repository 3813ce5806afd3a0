import { basename } from 'node:path'
import { commandPrefix } from './shell.js'
import type { Shell } from './shell.js'
import { findProgram } from '../process/find-program.js'
import { environmentOf } from '../process/environment.js'
import { runProcess } from '../process/run-process.js'
import { isInside } from '../workspace/paths.js'

/** The rules of the sandbox. Paths are absolute. */
export interface SandboxRules {
  readonly root: string
  /** Inside the root; read-only. A plain folder: the target of a link would be visible in the sandbox. */
  readonly ownFolder: string
  readonly readPaths: readonly string[]
  readonly writePaths: readonly string[]
  readonly network: boolean
}

/** The state of the sandbox on this machine. */
export type SandboxState =
  { readonly works: true; readonly program: string } | { readonly works: false; readonly reason: string }

/** The default home folder in the sandbox: empty, and removed when the command ends. */
export const SANDBOX_HOME = '/tmp'

/** Files that the system's programs need, without secrets; those that do not exist are skipped. */
const SYSTEM = [
  ...['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'],
  ...[
    'passwd group nsswitch.conf host.conf hosts resolv.conf gai.conf services protocols localtime timezone mime.types',
    'profile profile.d bash.bashrc alternatives os-release ld.so.cache ld.so.conf ld.so.conf.d ssl/certs ssl/openssl.cnf',
    'ca-certificates pki/tls/certs pki/ca-trust fonts python3 java',
  ].flatMap((names) => names.split(' ').map((name) => `/etc/${name}`)),
]

const PROBE_MS = 5_000

/** The arguments of `bwrap` before a program and its arguments. */
export function bubblewrapArguments(rules: SandboxRules, cwd: string): string[] {
  const { root, ownFolder, readPaths, writePaths, network } = rules
  return [
    ...['--unshare-all', '--die-with-parent'],
    ...(network ? ['--share-net'] : []),
    ...['--cap-drop', 'ALL'],
    ...SYSTEM.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...unwritable(readPaths, rules).flatMap((path) => ['--ro-bind-try', path, path]),
    ...unwritable(writePaths, rules).flatMap((path) => ['--bind-try', path, path]),
    ...['--bind', root, root],
    ...['--ro-bind', ownFolder, ownFolder],
    ...['--chdir', cwd],
    '--',
  ]
}

/** Without the paths below writable folders, which are visible with these: a command could replace such a path by a link. */
function unwritable(paths: readonly string[], { root, writePaths }: SandboxRules): readonly string[] {
  const writable = [root, ...writePaths]
  return paths.filter((path) => !writable.some((folder) => isInside(folder, path)))
}

/** Runs an empty command in a sandbox with these rules: containers often forbid the features that it needs. */
export async function probeSandbox(bubblewrap: string, rules: SandboxRules, shell: Shell): Promise<SandboxState> {
  const program = await findProgram(bubblewrap)
  if (program === undefined) return { works: false, reason: `the program \`${basename(bubblewrap)}\` is not installed` }
  const environment = environmentOf()
  const end = await runProcess({
    program,
    args: [...bubblewrapArguments(rules, rules.root), shell.path, '-c', `${commandPrefix(environment)}:`],
    cwd: '/',
    environment,
    timeoutMs: PROBE_MS,
    graceMs: 1,
    maxOutputBytes: 4_096,
    // The result is kept for later calls: aborting one must not affect it.
    signal: new AbortController().signal,
  })
  if (end.kind === 'unstarted')
    return { works: false, reason: `\`${basename(bubblewrap)}\` cannot be started (${end.code})` }
  if (end.exitCode === 0) return { works: true, program }
  const problem = end.stopped === null ? end.stderr.text().trim().slice(0, 300) : `it did not end within ${PROBE_MS} ms`
  return { works: false, reason: `\`${basename(bubblewrap)}\` does not work here: ${problem || 'it failed'}` }
}
