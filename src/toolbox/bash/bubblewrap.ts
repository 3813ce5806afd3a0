import { basename } from 'node:path'
import { commandPrefix } from './shell.js'
import type { Shell } from './shell.js'
import { findProgram } from '../process/find-program.js'
import { environmentOf } from '../process/environment.js'
import { runProcess } from '../process/run-process.js'

/** What a command in the sandbox may touch. Paths are absolute. */
export interface SandboxRules {
  readonly root: string
  /** Inside the root; can be read, not written. */
  readonly ownFolder: string
  readonly readPaths: readonly string[]
  readonly writePaths: readonly string[]
  readonly network: boolean
}

/** Whether the sandbox works on this machine. */
export type SandboxState =
  { readonly works: true; readonly program: string } | { readonly works: false; readonly reason: string }

/** The home folder in the sandbox, unless one is named: empty, and gone when the command ends. */
export const SANDBOX_HOME = '/tmp'

/** What the system's programs need to run; secrets are not among it. What a machine has not is passed over. */
const SYSTEM = [
  ...['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store'],
  ...['passwd', 'group', 'nsswitch.conf', 'host.conf', 'hosts', 'resolv.conf', 'gai.conf', 'services', 'protocols'].map(
    inEtc,
  ),
  ...['localtime', 'timezone', 'mime.types', 'profile', 'profile.d', 'bash.bashrc', 'alternatives', 'os-release'].map(
    inEtc,
  ),
  ...['ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'ssl/certs', 'ssl/openssl.cnf', 'ca-certificates'].map(inEtc),
  ...['pki/tls/certs', 'pki/ca-trust', 'fonts', 'python3', 'java'].map(inEtc),
]

const PROBE_MS = 5_000

/** The arguments of `bwrap` in front of a program and its arguments. */
export function bubblewrapArguments(rules: SandboxRules, cwd: string): string[] {
  const { root, ownFolder, readPaths, writePaths, network } = rules
  return [
    '--unshare-all',
    ...(network ? ['--share-net'] : []),
    ...['--cap-drop', 'ALL'],
    ...SYSTEM.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp'],
    ...readPaths.flatMap((path) => ['--ro-bind-try', path, path]),
    ...writePaths.flatMap((path) => ['--bind-try', path, path]),
    ...['--bind', root, root],
    ...['--ro-bind-try', ownFolder, ownFolder],
    ...['--chdir', cwd],
    '--',
  ]
}

/** Runs nothing in a sandbox with these rules: containers often forbid what it is made of. */
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
    // Its answer is kept for calls to come: one of them cannot take it back.
    signal: new AbortController().signal,
  })
  if (end.kind === 'unstarted')
    return { works: false, reason: `\`${basename(bubblewrap)}\` cannot be started (${end.code})` }
  if (end.exitCode === 0) return { works: true, program }
  const said = end.stopped === null ? end.stderr.text().trim().slice(0, 300) : `it did not end within ${PROBE_MS} ms`
  return { works: false, reason: `\`${basename(bubblewrap)}\` does not work here: ${said || 'it failed'}` }
}

function inEtc(name: string): string {
  return `/etc/${name}`
}
