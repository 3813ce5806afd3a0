import { realpath } from 'node:fs/promises'
import { basename, isAbsolute } from 'node:path'
import type { SandboxMode } from '#core/tools/tool-spec.js'
import { environmentOf } from '../process/environment.js'
import type { Environment } from '../process/environment.js'
import { findProgram } from '../process/find-program.js'
import { processGroupsProblem } from '../process/process-group.js'
import { runProcess } from '../process/run-process.js'
import { systemLookup } from '../web/options.js'
import type { Lookup } from '../web/options.js'
import { isInside } from '../workspace/paths.js'
import { bubblewrapArguments } from './bubblewrap.js'
import { entranceCommand, relayEnvironment } from './entrance.js'
import type { Relay } from './entrance.js'
import { FileGuard, identityOf } from './guarded-files.js'
import type { MountPlace } from './mounts.js'
import { namespacesCommand } from './namespaces.js'
import type { NamespacePrograms } from './namespaces.js'
import type { SandboxSettings } from './options.js'
import { SandboxProxy } from './proxy.js'
import { toolChains } from './tool-chains.js'
import type { ToolChains } from './tool-chains.js'
import { tmpdir } from 'node:os'
import { sandboxSettings } from './options.js'

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
          const [first = '', ...before] = commandOf(found, place)
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
    const own = ownFolder === null ? undefined : await identityOf(ownFolder)
    if (ownFolder !== null && own !== undefined) identities.set(ownFolder, own)
    const guarded: MountPlace['guarded'][number][] = []
    for (const file of found) {
      const identity = file.how === 'hide' ? undefined : await identityOf(file.path)
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
    const first = typeof bubblewrap === 'string' ? bubblewrap : await tried(bubblewrap, place)
    if (typeof first !== 'string') return first
    const programs = await namespacesHere()
    const second = typeof programs === 'string' ? programs : await tried(programs, place)
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

function commandOf(found: Exclude<Found, { form: 'none' }>, place: MountPlace): readonly string[] {
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
async function tried<Form extends Exclude<Found, { form: 'none' }>>(
  found: Form,
  place: MountPlace,
): Promise<Form | string> {
  const [program = '', ...args] = commandOf(found, place)
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
