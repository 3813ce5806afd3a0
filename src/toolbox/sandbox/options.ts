import { hosts } from '../web/host-list.js'
import { expandHome, escapeControls } from '../workspace/path-text.js'
import type { ProtectedFiles } from '../workspace/protection.js'
import { invalidOptions } from '#contracts/parse.js'
import type { SandboxMode } from '#core/tools/tool-spec.js'
import { boolean, either, filledString, list, oneOf, optional, partial, string, where } from '#util/validate.js'
import type { Fields } from '#util/validate.js'
import { isAbsolute, resolve } from 'node:path'

/** How the programs that a tool starts are confined; all optional. `docs/sandbox.md` says what each form confines. */
export interface SandboxOptions {
  /**
   * `auto`: in a sandbox if this machine has one (Linux: bubblewrap, else namespaces), otherwise without. `required`: not
   * started without one. `off`: never in one; a program can do whatever the user of this process can. Default: the harness's
   * `sandbox`, which is `auto`.
   */
  readonly sandbox?: SandboxMode | undefined
  /**
   * The network in the sandbox. A list: only these hosts (`example.com`, `*.example.com`, an address), by HTTP and HTTPS
   * through a proxy that the environment names. `true`: everything, this machine included. Default `false`: none.
   */
  readonly network?: boolean | readonly string[] | undefined
  /** Absolute paths that can be read in the sandbox, such as a tool chain in a home folder. Default: none. */
  readonly readPaths?: readonly string[] | undefined
  /** Absolute paths outside the root that can be written in the sandbox. Default: none. */
  readonly writePaths?: readonly string[] | undefined
  /**
   * Files in the root that the sandbox hides (`read`) or makes read-only (`write`), by globs as in `.gitignore`. `.git` is always
   * read-only. `false`: no protection, not of `.git` either. Default: those of `PROTECTED_FILES`.
   */
  readonly protect?: Partial<ProtectedFiles> | false | undefined
  /** A command writes objects, refs, logs, index and HEAD of git, so that it can commit. Default false. */
  readonly gitWrite?: boolean | undefined
  /** The program of bubblewrap. Default: `bwrap` on the `PATH`. */
  readonly bubblewrap?: string | undefined
}

/** The options with their defaults. Paths are absolute. */
export interface SandboxSettings {
  /** Null: that of the harness. */
  readonly sandbox: SandboxMode | null
  readonly network: boolean | readonly string[]
  readonly readPaths: readonly string[]
  readonly writePaths: readonly string[]
  readonly protect: Partial<ProtectedFiles> | false
  readonly gitWrite: boolean
  readonly bubblewrap: string
}

const absolutePaths = list(where(string, 'an absolute path', isAbsolutePath), 'a list of absolute paths')

/** The shapes of the options. */
export const SANDBOX_OPTIONS: Fields<SandboxOptions> = {
  sandbox: optional(oneOf('auto', 'required', 'off')),
  network: optional(either(boolean, hosts)),
  readPaths: optional(absolutePaths),
  writePaths: optional(absolutePaths),
  protect: optional(
    either(
      oneOf(false),
      partial<Partial<ProtectedFiles>>({
        read: list(string, 'a list of globs'),
        write: list(string, 'a list of globs'),
      }),
    ),
  ),
  gitWrite: optional(boolean),
  bubblewrap: optional(filledString),
}

const FOR_SANDBOX = ['network', 'readPaths', 'writePaths', 'protect', 'gitWrite', 'bubblewrap'] as const

/** Parsed options with their defaults. Throws `invalid_options` for rules of a sandbox that is off. */
export function sandboxSettings(given: SandboxOptions, owner: string): SandboxSettings {
  const { sandbox = null, network = false, readPaths = [], writePaths = [] } = given
  const { protect = {}, gitWrite = false, bubblewrap = 'bwrap' } = given
  const idle = sandbox === 'off' ? FOR_SANDBOX.find((key) => given[key] !== undefined) : undefined
  if (idle !== undefined) {
    throw invalidOptions(
      `\`${idle}\` of \`${owner}\` is a rule of the sandbox, which is off: set \`sandbox\` to \`auto\` or \`required\`.`,
    )
  }
  const absolute = (path: string): string => resolve(expandHome(path))
  return {
    sandbox,
    network,
    readPaths: readPaths.map(absolute),
    writePaths: writePaths.map(absolute),
    protect,
    gitWrite,
    bubblewrap,
  }
}

function isAbsolutePath(path: string): boolean {
  return !path.includes('\0') && isAbsolute(expandHome(path))
}

/** The network access of a program in the sandbox, in words for a model. */
export function networkText(network: boolean | readonly string[]): string {
  if (network === true) return 'can use the network'
  if (network === false || network.length === 0) return 'has no network'
  return `can reach these hosts only, by HTTP and HTTPS: ${network.join(', ')}`
}

/** A line about hosts that were refused; empty if there were none. */
export function refusedNote(hosts: readonly string[]): string {
  return hosts.length === 0 ? '' : `The sandbox refused connections to: ${hosts.map(escapeControls).join(', ')}.`
}
