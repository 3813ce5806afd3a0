import { environmentOf } from '../process/environment.js'
import type { Environment } from '../process/environment.js'
import { findProgram } from '../process/find-program.js'
import { processGroupsProblem } from '../process/process-group.js'
import { runProcess, shellQuoted } from '../process/run-process.js'
import { systemLookup } from '../web/options.js'
import type { Lookup } from '../web/options.js'
import { isSystemError, FileFailure } from '../workspace/file-failure.js'
import { isInside } from '../workspace/paths.js'
import { OWN_FOLDER } from '../workspace/workspace.js'
import { FileGuard, fileIdentity } from './guarded-files.js'
import type { GuardedFile } from './guarded-files.js'
import type { MountPlace, Mount } from './mounts.js'
import { mountsOf, READ_ONLY_IN_PROC, SYSTEM } from './mounts.js'
import { namespacesCommand } from './namespaces.js'
import type { NamespacePrograms } from './namespaces.js'
import type { SandboxSettings } from './options.js'
import { sandboxSettings } from './options.js'
import { SandboxProxy, SOCKET_NAME } from './proxy.js'
import type { SandboxMode } from '#core/tools/tool-spec.js'
import { realpath, readdir, lstat, mkdir } from 'node:fs/promises'
import { tmpdir, homedir } from 'node:os'
import { basename, isAbsolute, delimiter, dirname, join } from 'node:path'

/** How a command is confined. */
export type SandboxForm = 'bubblewrap' | 'namespaces' | 'none'

/** The sandbox of this machine. */
export interface SandboxState {
  readonly form: SandboxForm
  /** Why there is none. */
  readonly problem: string | undefined
}

/** A program as the system starts it. */
export interface SandboxCommand {
  readonly program: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly environment: Environment
}

/** The files of one command. Paths are absolute. */
export interface Room {
  readonly root: string
  /** In the root, and read-only. It exists and is no link. Null if there is none. */
  readonly ownFolder: string | null
  /** Private folders, read-only, outside everything that a command can write. */
  readonly given: readonly string[]
  /** Read-only, in addition to those of the settings. */
  readonly readPaths?: readonly string[]
}

/** The sandbox of one command, open until `close`. */
export interface OpenSandbox extends SandboxState {
  wrap(command: SandboxCommand): SandboxCommand
  /** Hosts that the command asked for and that `network` does not name. */
  readonly refusedHosts: readonly string[]
  close(): Promise<void>
}

/** The home folder in the sandbox: empty, and removed when the command ends. */
export const SANDBOX_HOME = '/tmp'

const PROBE_MS = 5_000

/** A form that works, as the command before a program. */
type Found =
  | { readonly form: 'bubblewrap'; readonly program: string }
  | { readonly form: 'namespaces'; readonly programs: NamespacePrograms }
  | { readonly form: 'none'; readonly problem: string }

/** Makes sandboxes by the same rules; remembers which form works. */
export class Sandbox {
  readonly #settings: SandboxSettings
  readonly #guard: FileGuard
  readonly #lookup: Lookup
  readonly #found = new Map<string, Promise<Found>>()
  /** Those of the user who started this process; they do not change. */
  #toolChains: Promise<ToolChains> | null = null

  constructor(settings: SandboxSettings, lookup: Lookup = systemLookup) {
    this.#settings = settings
    this.#guard = new FileGuard(settings.protect)
    this.#lookup = lookup
  }

  /** The mode of a tool whose harness has `mode`. */
  modeFor(mode: SandboxMode): SandboxMode {
    return this.#settings.sandbox ?? mode
  }

  /** The form that works for commands in `room`; tried once for each root. */
  async state(room: Room): Promise<SandboxState> {
    const found = await this.#find(room)
    return { form: found.form, problem: found.form === 'none' ? found.problem : undefined }
  }

  /** The sandbox of one command. Without a form that works, `wrap` changes nothing. */
  async open(room: Room): Promise<OpenSandbox> {
    const found = await this.#find(room)
    if (found.form === 'none') return { ...UNCONFINED, problem: found.problem }
    const { network } = this.#settings
    if (typeof network === 'boolean') return this.#opened(found, room, null)
    const program = await relayProgram()
    return this.#opened(found, room, { program, proxy: await SandboxProxy.open(network, this.#lookup) })
  }

  async #opened(found: Exclude<Found, { form: 'none' }>, room: Room, way: WayOut | null): Promise<OpenSandbox> {
    try {
      const { network } = this.#settings
      const sh = (await findProgram('sh', '/bin:/usr/bin')) ?? '/bin/sh'
      const { root, ownFolder } = room
      const { guarded, identities } = await this.#guarded(root, ownFolder)
      const relay = way && { ...way.program, folder: way.proxy.folder }
      const given = [...room.given, ...(way === null ? [] : [way.proxy.folder])]
      const entrance = entranceCommand({ sh, identities, relay })
      const chains = await (this.#toolChains ??= toolChains())
      const added = typeof network === 'boolean' ? {} : relayEnvironment(network)
      return {
        form: found.form,
        problem: undefined,
        wrap: ({ program, args, cwd, environment }) => {
          const readPaths = [...chains.paths, ...(room.readPaths ?? []), ...(isAbsolute(program) ? [program] : [])]
          const visible = { ...room, readPaths, given: [...given, ...relayFiles(relay)] }
          const place = this.#place(visible, cwd, [...chains.hidden, ...guarded])
          const [first = '', ...before] = sandboxCommand(found, place)
          const inside = [...entrance, program, ...args]
          return { program: first, args: [...before, ...inside], cwd: '/', environment: { ...environment, ...added } }
        },
        get refusedHosts() {
          return way?.proxy.refused ?? []
        },
        close: async () => way?.proxy.close(),
      }
    } catch (error) {
      await way?.proxy.close()
      throw error
    }
  }

  /** Those that can be identified: a file that was replaced in between is found by the next command. */
  async #guarded(
    root: string,
    ownFolder: string | null,
  ): Promise<Pick<MountPlace, 'guarded'> & { identities: Map<string, string> }> {
    const found = await this.#guard.filesIn(root)
    const identities = new Map<string, string>()
    const own = ownFolder === null ? undefined : await fileIdentity(ownFolder)
    if (ownFolder !== null && own !== undefined) identities.set(ownFolder, own)
    const guarded: MountPlace['guarded'][number][] = []
    for (const file of found) {
      const identity = file.how === 'hide' ? undefined : await fileIdentity(file.path)
      if (file.how === 'read' && identity === undefined) continue
      if (identity !== undefined) identities.set(file.path, identity)
      guarded.push(file)
    }
    return { guarded, identities }
  }

  #place(
    { root, ownFolder, given, readPaths: more = [] }: Room,
    cwd: string,
    guarded: MountPlace['guarded'],
  ): MountPlace {
    const { readPaths, writePaths, network } = this.#settings
    return {
      root,
      ownFolder,
      guarded,
      readPaths: [...readPaths, ...more],
      writePaths,
      given,
      sharesNetwork: network === true,
      cwd,
    }
  }

  #find(room: Room): Promise<Found> {
    let found = this.#found.get(room.root)
    if (found === undefined) {
      if (this.#found.size >= MOST_ROOTS) this.#found.clear()
      this.#found.set(room.root, (found = this.#probe(room)))
    }
    return found
  }

  async #probe(room: Room): Promise<Found> {
    if (process.platform !== 'linux') return { form: 'none', problem: processGroupsProblem() ?? NOT_LINUX }
    const place = this.#place({ ...room, given: [] }, room.root, [])
    const bubblewrap = await bubblewrapHere(this.#settings.bubblewrap)
    const first = typeof bubblewrap === 'string' ? bubblewrap : await trySandbox(bubblewrap, place)
    if (typeof first !== 'string') return first
    const programs = await namespacesHere()
    const second = typeof programs === 'string' ? programs : await trySandbox(programs, place)
    return typeof second === 'string' ? { form: 'none', problem: `${first}; ${second}` } : second
  }
}

interface WayOut {
  readonly proxy: SandboxProxy
  readonly program: Pick<Relay, 'program' | 'path'>
}

const MOST_ROOTS = 64
const NOT_LINUX = 'only Linux has the namespaces that it is made of'

/** No sandbox, on purpose. */
export const UNCONFINED: OpenSandbox = {
  form: 'none',
  problem: undefined,
  wrap: (command) => command,
  refusedHosts: [],
  close: () => Promise.resolve(),
}

function sandboxCommand(found: Exclude<Found, { form: 'none' }>, place: MountPlace): readonly string[] {
  if (found.form === 'bubblewrap') return [found.program, ...bubblewrapArguments(place)]
  return namespacesCommand(found.programs, place)
}

/** Node may be anywhere. */
function relayFiles(relay: Relay | null): readonly string[] {
  return relay === null || isInside('/usr', relay.path) ? [] : [relay.path]
}

async function relayProgram(): Promise<WayOut['program']> {
  const socat = await findProgram('socat')
  return socat === undefined
    ? { program: 'node', path: process.execPath }
    : { program: 'socat', path: await realpath(socat) }
}

async function bubblewrapHere(name: string): Promise<string | (Found & { readonly form: 'bubblewrap' })> {
  const program = await findProgram(name)
  if (program === undefined) return `the program \`${basename(name)}\` is not installed`
  return { form: 'bubblewrap', program }
}

async function namespacesHere(): Promise<string | (Found & { readonly form: 'namespaces' })> {
  const [setpriv, unshare, sh] = await Promise.all(['setpriv', 'unshare', 'sh'].map((name) => findProgram(name)))
  if (setpriv === undefined || unshare === undefined || sh === undefined) {
    return `the program \`${unshare === undefined ? 'unshare' : 'setpriv'}\` is not installed`
  }
  const [realSetpriv, realUnshare] = await Promise.all([realpath(setpriv), realpath(unshare)])
  return { form: 'namespaces', programs: { setpriv: realSetpriv, unshare: realUnshare, sh } }
}

/** Runs an empty command: containers often forbid the features that a sandbox needs. Gives the problem if it fails. */
async function trySandbox<Form extends Exclude<Found, { form: 'none' }>>(
  found: Form,
  place: MountPlace,
): Promise<Form | string> {
  const [program = '', ...args] = sandboxCommand(found, place)
  const name = found.form === 'bubblewrap' ? basename(found.program) : 'unshare'
  const end = await runProcess({
    program,
    args: [...args, '/bin/sh', '-c', ':'],
    cwd: '/',
    environment: environmentOf(),
    timeoutMs: PROBE_MS,
    graceMs: 1,
    maxOutputBytes: 4_096,
    // The result is kept for later calls: aborting one must not affect it.
    signal: new AbortController().signal,
  })
  if (end.kind === 'unstarted') return `\`${name}\` cannot be started (${end.code})`
  if (end.exitCode === 0) return found
  const problem = end.stopped === null ? end.stderr.text().trim().slice(0, 300) : `it did not end within ${PROBE_MS} ms`
  return `\`${name}\` does not work here: ${problem || 'it failed'}`
}

/** The sandbox that tools without rules of their own have on this machine. Runs an empty command in it. */
export async function sandboxHere(): Promise<SandboxState> {
  return new Sandbox(sandboxSettings({}, 'bash')).state({ root: await realpath(tmpdir()), ownFolder: null, given: [] })
}

/** The arguments of `bwrap` before a program and its arguments. */
export function bubblewrapArguments(place: MountPlace): string[] {
  return [
    ...['--unshare-all', '--die-with-parent'],
    ...(place.sharesNetwork ? ['--share-net'] : []),
    ...['--cap-drop', 'ALL'],
    ...SYSTEM.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc'],
    ...READ_ONLY_IN_PROC.flatMap((name) => ['--ro-bind-try', `/proc/${name}`, `/proc/${name}`]),
    ...['--dev', '/dev', '--tmpfs', '/tmp'],
    ...mountsOf(place).flatMap(mountArguments),
    ...['--chdir', place.cwd],
    '--',
  ]
}

function mountArguments(mount: Mount): readonly string[] {
  const { how, path } = mount
  switch (how) {
    case 'read':
      return [mount.optional ? '--ro-bind-try' : '--ro-bind', path, path]
    case 'write':
      return [mount.optional ? '--bind-try' : '--bind', path, path]
    case 'hide':
      return mount.isFolder ? ['--tmpfs', path, '--remount-ro', path] : ['--ro-bind', '/dev/null', path]
  }
}

/** The port of the relay on the loopback device of the sandbox, which no other process has. */
const PORT = 31_280

/** The work in the sandbox before the program begins. */
export interface Entrance {
  /** Absolute path of the shell. */
  readonly sh: string
  /** The file that must be at a path, as device and number: a path that another command has replaced is noticed. */
  readonly identities: ReadonlyMap<string, string>
  readonly relay: Relay | null
}

/** Connects the loopback device of the sandbox with the proxy. */
export interface Relay {
  /** The folder of the proxy's socket. */
  readonly folder: string
  readonly program: 'socat' | 'node'
  /** Absolute. */
  readonly path: string
}

/** Exit code and message of a command whose files were replaced while its sandbox was made. */
const REPLACED = `{ echo 'The sandbox was not entered: a protected file was replaced meanwhile. Try again.' >&2; exit 126; }`

/** The programs of the system are found, whatever the search path of the command. */
const SEARCH = 'path=${PATH-} PATH=${PATH-}:/usr/bin:/bin\n'

/** The program and the arguments before a program and its arguments; none if there is nothing to do. */
export function entranceCommand({ sh, identities, relay }: Entrance): readonly string[] {
  const paths = [...identities.keys()].map(shellQuoted).join(' ')
  const expected = shellQuoted([...identities.values()].join('\n'))
  const checks = identities.size === 0 ? '' : `[ "$(stat -c %d:%i -- ${paths})" = ${expected} ] || ${REPLACED}\n`
  const script = checks + (relay === null ? '' : relayScript(relay))
  return script === '' ? [] : [sh, '-c', `${SEARCH}${script}PATH=$path\nexec "$@"`, 'sandbox']
}

/** Variables that make programs use the relay. */
export function relayEnvironment(hosts: readonly string[]): Environment {
  const address = `http://127.0.0.1:${PORT}`
  const proxies = ['http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'all_proxy']
  const direct = ['localhost', '127.0.0.1', '::1'].filter((host) => !hosts.includes(host)).join(',')
  return {
    ...Object.fromEntries(proxies.map((name) => [name, address])),
    no_proxy: direct,
    NO_PROXY: direct,
    // For `fetch` of Node, from version 24 on.
    NODE_USE_ENV_PROXY: '1',
  }
}

/** Begins the relay as an orphan, so that no \`wait\` of the command waits for it, and waits until it listens. */
function relayScript({ folder, program, path }: Relay): string {
  const socket = `${folder}/${SOCKET_NAME}`
  const listen =
    program === 'socat'
      ? `${shellQuoted(path)} TCP-LISTEN:${PORT},bind=127.0.0.1,fork,reuseaddr ${shellQuoted(`UNIX-CONNECT:${socket}`)}`
      : `${shellQuoted(path)} -e ${shellQuoted(NODE_RELAY)} ${shellQuoted(socket)}`
  const hex = PORT.toString(16).toUpperCase().padStart(4, '0')
  return `(${listen} >/dev/null 2>&1 &)
n=0; until grep -q ':${hex} ' /proc/net/tcp || [ $n = 300 ]; do n=$((n + 1)); sleep 0.01; done
`
}

const NODE_RELAY = `const net = require('node:net')
net.createServer((inner) => {
  const outer = net.connect(process.argv[1])
  inner.pipe(outer).pipe(inner)
  inner.on('error', () => outer.destroy()).on('close', () => outer.destroy())
  outer.on('error', () => inner.destroy()).on('close', () => inner.destroy())
}).listen(${PORT}, '127.0.0.1')`

/** The programs of the user that commands can run. */
export interface ToolChains {
  readonly paths: readonly string[]
  readonly hidden: readonly GuardedFile[]
}

/** Contain more than one program. */
const SHARED = new Set(['.local', '.config', '.cache'])
const CREDENTIALS = /^(?:credentials.*|\.npmrc|\.netrc|\.pypirc|\.env.*)$/i

/**
 * The folders of the search path, read-only. A folder `bin` or `shims` of a tool chain in a hidden folder, such as `~/.nvm/…/bin`,
 * brings the rest of that tool chain, without its credentials.
 */
export async function toolChains(path = process.env['PATH'] ?? ''): Promise<ToolChains> {
  const folders = [...new Set(path.split(delimiter).filter((folder) => isAbsolute(folder) && folder !== '/'))]
  const paths = folders.map((folder) => (isOfToolChain(folder) ? dirname(folder) : folder))
  const inside = paths.filter((folder) => folder !== homedir() && !folders.includes(folder))
  const hidden = await Promise.all(inside.map(credentialFiles))
  return { paths: [...new Set(paths)], hidden: hidden.flat() }
}

function isOfToolChain(folder: string): boolean {
  const parent = dirname(folder)
  if (!/^(?:s?bin|shims)$/.test(basename(folder)) || SHARED.has(basename(parent)) || parent === homedir()) return false
  return parent.split('/').some((name) => name.startsWith('.')) || /^\/(?:opt|snap|home\/linuxbrew)\/./.test(parent)
}

async function credentialFiles(folder: string): Promise<readonly GuardedFile[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile() && CREDENTIALS.test(entry.name))
      .map(({ name }) => ({ path: join(folder, name), how: 'hide', isFolder: false }))
  } catch (error) {
    if (isSystemError(error)) return []
    throw error
  }
}

/**
 * The harness's own folder in a root. It exists, so that no command can create it, and is no link, whose target would be visible
 * in the sandbox.
 * @throws FileFailure `PathTypeError`
 */
export async function ownFolderIn(root: string): Promise<string> {
  const path = join(root, OWN_FOLDER)
  await mkdir(path).catch((error: unknown) => {
    if (!isSystemError(error, 'EEXIST')) throw error
  })
  if ((await lstat(path)).isDirectory()) return path
  const message = `The command was not executed: \`${OWN_FOLDER}\` in the workspace root is not a plain folder, and a person must remove it.`
  throw new FileFailure('PathTypeError', message)
}
