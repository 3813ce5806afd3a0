import { environmentOf } from '../process/environment.js'
import type { Environment } from '../process/environment.js'
import { findProgram } from '../process/find-program.js'
import { processGroupsProblem } from '../process/process-group.js'
import { runProcess } from '../process/run-process.js'
import type { ProcessEnd, ProcessRequest } from '../process/run-process.js'
import { systemLookup } from '../web/options.js'
import type { Lookup } from '../web/options.js'
import { isSystemError, FileFailure } from '../workspace/file-failure.js'
import { isInside } from '../workspace/path-policy.js'
import { OWN_FOLDER } from '../workspace/workspace.js'
import { entranceCommand } from './entrance.js'
import { ReplacedFiles } from './file-watch.js'
import { GitFolder } from './git-folder.js'
import { FileGuard, fileIdentity } from './guarded-files.js'
import type { MountPlace, Mount } from './mounts.js'
import { mountsOf, READ_ONLY_IN_PROC, SYSTEM } from './mounts.js'
import { namespacesCommand } from './namespaces.js'
import type { NamespacePrograms } from './namespaces.js'
import type { SandboxSettings } from './options.js'
import { sandboxSettings } from './options.js'
import { relayEnvironment, SandboxProxy } from './proxy.js'
import type { Relay } from './proxy.js'
import { withoutKeyring } from './system-calls.js'
import { enterable, toolChains } from './tool-chains.js'
import type { SandboxMode } from '#core/tools/tool-spec.js'
import { realpath, lstat, mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, isAbsolute, join } from 'node:path'

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
  /** Aborted, with its path, when a protected file is replaced: the command could read it then. */
  readonly uncovered: AbortSignal | null
  /** The sandbox could not be entered: the next command looks again for a form that works. */
  forget(): void
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
  /** For `writePaths`: only `.git` is protected there. */
  readonly #gitGuard: FileGuard
  readonly #lookup: Lookup
  readonly #found = new Map<string, Promise<Found>>()
  /** Read-only paths outside the root: those of the user who started this process do not change. */
  #readPaths: Promise<readonly string[]> | null = null

  constructor(settings: SandboxSettings, lookup: Lookup = systemLookup) {
    this.#settings = settings
    this.#guard = new FileGuard(settings.protect)
    this.#gitGuard = new FileGuard(settings.protect && { read: [], write: [] })
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
    const closes: (() => Promise<void>)[] = way === null ? [] : [() => way.proxy.close()]
    const close = async (): Promise<void> => {
      for (const each of closes.splice(0).reverse()) await each()
    }
    try {
      const { network } = this.#settings
      const sh = (await findProgram('sh', '/bin:/usr/bin')) ?? '/bin/sh'
      const { guarded, identities, replaced } = await this.#guarded(room, closes)
      const relay = way && { ...way.program, folder: way.proxy.folder }
      const given = [...room.given, ...(way === null ? [] : [way.proxy.folder])]
      const entrance = entranceCommand({ sh, identities, relay })
      const shared = await this.#sharedPaths()
      const added = typeof network === 'boolean' ? {} : relayEnvironment(network)
      return {
        form: found.form,
        problem: undefined,
        wrap: ({ program, args, cwd, environment }) => {
          const readPaths = [...shared, ...(room.readPaths ?? []), ...(isAbsolute(program) ? [program] : [])]
          const visible = { ...room, readPaths, given: [...given, ...relayFiles(relay)] }
          const [first = '', ...before] = sandboxCommand(found, this.#place(visible, cwd, guarded))
          const inside = [...entrance, program, ...args]
          return { program: first, args: [...before, ...inside], cwd: '/', environment: { ...environment, ...added } }
        },
        get refusedHosts() {
          return way?.proxy.refused ?? []
        },
        uncovered: replaced.signal,
        forget: () => void this.#found.delete(room.root),
        close,
      }
    } catch (error) {
      await close()
      throw error
    }
  }

  /** Read-only ones that can be identified: one that was replaced in between is found by the next command. */
  async #guarded({ root, ownFolder }: Room, closes: (() => Promise<void>)[]): Promise<Guarded> {
    const writable = this.#settings.writePaths.filter((path) => path !== root && !isInside(root, path))
    const others = await Promise.all(writable.map((path) => this.#gitGuard.filesIn(path)))
    const found = [...(await this.#guard.filesIn(root)), ...others.flat()]
    const replaced = new ReplacedFiles(found.map(({ path }) => path))
    closes.push(async () => replaced.close())
    const identities = new Map<string, string>()
    const own = ownFolder === null ? undefined : await fileIdentity(ownFolder)
    if (ownFolder !== null && own !== undefined) identities.set(ownFolder, own)
    const guarded: MountPlace['guarded'][number][] = []
    for (const file of found) {
      if (this.#settings.gitWrite && file.isFolder && basename(file.path) === '.git') {
        const git = await GitFolder.open(file.path)
        closes.push(() => git.close())
        guarded.push(...git.mounts)
        continue
      }
      const identity = file.how === 'hide' ? undefined : await fileIdentity(file.path)
      if (file.how === 'read' && identity === undefined) continue
      if (identity !== undefined) identities.set(file.path, identity)
      guarded.push(file)
    }
    return { guarded, identities, replaced }
  }

  /** Those that this user cannot enter are left out: mounting them would fail. */
  #sharedPaths(): Promise<readonly string[]> {
    return (this.#readPaths ??= (async () => {
      const own = await Promise.all(this.#settings.readPaths.map(enterable))
      return [...(await toolChains()), ...own.filter((path) => path !== null)]
    })())
  }

  #place({ root, ownFolder, given, readPaths = [] }: Room, cwd: string, guarded: MountPlace['guarded']): MountPlace {
    const { writePaths, network } = this.#settings
    return { root, ownFolder, guarded, readPaths, writePaths, given, sharesNetwork: network === true, cwd }
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
    const place = this.#place({ ...room, given: [], readPaths: await this.#sharedPaths() }, room.root, [])
    const bubblewrap = await bubblewrapHere(this.#settings.bubblewrap)
    const first = typeof bubblewrap === 'string' ? bubblewrap : await trySandbox(bubblewrap, place)
    if (typeof first !== 'string') return first
    const programs = await namespacesHere()
    const second = typeof programs === 'string' ? programs : await trySandbox(programs, place)
    return typeof second === 'string' ? { form: 'none', problem: `${first}; ${second}` } : second
  }
}

interface Guarded extends Pick<MountPlace, 'guarded'> {
  readonly identities: ReadonlyMap<string, string>
  readonly replaced: ReplacedFiles
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
  uncovered: null,
  forget: () => undefined,
  close: () => Promise.resolve(),
}

function sandboxCommand(found: Exclude<Found, { form: 'none' }>, place: MountPlace): readonly string[] {
  if (found.form === 'bubblewrap') return withoutKeyring([found.program, ...bubblewrapArguments(place)])
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

const ATTEMPTS = 3

/**
 * Opens a sandbox and runs a program in it, again if it could not be entered, as a file was replaced while it was made.
 * @throws FileFailure `SandboxFailed`, `ProtectedFileReplaced`, and those of `attempt`.
 */
export async function inSandbox<T>(attempt: () => Promise<T>): Promise<T> {
  for (let left = ATTEMPTS - 1; ; left--) {
    try {
      return await attempt()
    } catch (error) {
      if (left === 0 || !(error instanceof FileFailure && error.errorType === 'SandboxFailed')) throw error
    }
  }
}

/** Runs a command that its sandbox has wrapped; a failure of the sandbox is none of the command. */
export async function runWithin(sandbox: OpenSandbox, request: ProcessRequest): Promise<ProcessEnd> {
  const { uncovered } = sandbox
  const isConfined = sandbox.form !== 'none'
  const signal = uncovered === null ? request.signal : AbortSignal.any([request.signal, uncovered])
  const end = await runProcess({ ...request, signal, endsAll: !isConfined, hasEntrance: isConfined })
  if (uncovered?.aborted === true && !request.signal.aborted) {
    const message = `The command was ended: \`${basename(String(uncovered.reason))}\`, which is protected, was replaced by another program while it ran. Run it again.`
    throw new FileFailure('ProtectedFileReplaced', message)
  }
  const problem = isConfined ? entryProblem(end) : null
  if (problem === null) return end
  sandbox.forget()
  throw new FileFailure('SandboxFailed', `The command was not executed: its sandbox could not be made: ${problem}`)
}

/** Why a program was not reached in its sandbox; null if it was. */
function entryProblem(end: ProcessEnd): string | null {
  if (end.kind === 'unstarted') return end.code === 'E2BIG' ? null : `the program cannot be started (${end.code})`
  if (end.isEntered === true || end.stopped !== null) return null
  return end.stderr.text().trim().slice(0, 300) || 'it ended without a message'
}

/** The sandbox that tools without rules of their own have on this machine. Runs an empty command in it. */
export async function sandboxHere(): Promise<SandboxState> {
  return new Sandbox(sandboxSettings({}, 'bash')).state({ root: await realpath(tmpdir()), ownFolder: null, given: [] })
}

/** The arguments of `bwrap` before a program and its arguments. */
export function bubblewrapArguments(place: MountPlace): string[] {
  return [
    // A session of its own has no terminal that the command could type into.
    ...['--unshare-all', '--die-with-parent', '--new-session'],
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
      return [mount.optional ? '--bind-try' : '--bind', mount.from ?? path, path]
    case 'hide':
      return mount.isFolder ? ['--tmpfs', path, '--remount-ro', path] : ['--ro-bind', '/dev/null', path]
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
