import { isAbsolute, resolve } from 'node:path'
import { invalidOptions, parse } from '../../contracts/parse.js'
import { boolean, filledString, integer, list, milliseconds, oneOf, partial, string, where } from '../../util/shape.js'
import type { Complete } from '../../util/shape.js'
import { expandHome } from '../workspace/path-text.js'
import { namedVariables } from '../process/environment.js'
import type { NamedVariables } from '../process/environment.js'
import { processGroupsProblem } from '../process/process-group.js'

/** Options of the shell tool; all optional. */
export interface BashOptions {
  /** Folder in which commands run; their `cwd` cannot leave it. Default: the harness's root. */
  readonly root?: string | undefined
  /** Folder inside the root for the full text of outputs that are too long for a model. Default `.thinharness/outputs`. */
  readonly outputDir?: string | undefined
  /**
   * Variables for commands in addition to `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `LANGUAGE`, `LC_ALL`, `LC_CTYPE`, `TZ` and
   * `TMPDIR`. Nothing else of this process's environment is passed on. Default: none.
   */
  readonly env?: NamedVariables | undefined
  /** Time after which a command is asked to end unless its call sets another, in ms. Default 120,000. */
  readonly timeoutMs?: number | undefined
  /** Time after which any command is killed, in ms. Default 600,000. */
  readonly hardTimeoutMs?: number | undefined
  /** Time between asking a command to end and killing it, in ms. Default 5,000. */
  readonly graceMs?: number | undefined
  /** Most characters of each stream that the model gets. Default 30,000. */
  readonly maxOutputChars?: number | undefined
  /** Most bytes of each stream that are kept in memory and in its file: its beginning and its end. Default 10 MiB. */
  readonly maxOutputBytes?: number | undefined
  /**
   * True if commands run in a sandbox of bubblewrap (`bwrap`, Linux). `off`: never; a command can do whatever the user of
   * this process can. `auto`: if it works; otherwise the result says that it does not. `required`: a command is refused
   * if it does not work. Default `off`.
   *
   * In the sandbox a command can write to the root (except the harness's own folder) and to `writePaths`, read these,
   * `readPaths` and the system's own programs and settings (`/usr`, `/bin`, `/lib` and the like, and public parts of
   * `/etc`), has an empty `/tmp` and home folder, sees no other process, has no privileges, and no network unless
   * `network` is set. It does not limit memory, processor time, the number of processes, or the size of files.
   */
  readonly sandbox?: 'off' | 'auto' | 'required' | undefined
  /** True if commands in the sandbox may use the network, that of this machine included. Default false. */
  readonly network?: boolean | undefined
  /** Absolute paths that commands in the sandbox may read, such as the folder of a tool chain in a home folder. Default none. */
  readonly readPaths?: readonly string[] | undefined
  /** Absolute paths outside the root that commands in the sandbox may write. Default none. */
  readonly writePaths?: readonly string[] | undefined
  /** The program of bubblewrap. Default: `bwrap` on the `PATH`. */
  readonly bubblewrap?: string | undefined
}

export type BashSettings = typeof DEFAULTS & Pick<BashOptions, 'root' | 'outputDir'>

const DEFAULTS: Complete<Omit<BashOptions, 'root' | 'outputDir'>> = {
  env: {},
  timeoutMs: 120_000,
  hardTimeoutMs: 600_000,
  graceMs: 5_000,
  maxOutputChars: 30_000,
  maxOutputBytes: 10_485_760,
  sandbox: 'off',
  network: false,
  readPaths: [],
  writePaths: [],
  bubblewrap: 'bwrap',
}

const absolutePaths = list(where(string, 'an absolute path', isAbsolutePath), 'a list of absolute paths')

const OPTIONS = partial<BashOptions>({
  root: string,
  outputDir: string,
  env: namedVariables,
  timeoutMs: milliseconds,
  hardTimeoutMs: milliseconds,
  graceMs: milliseconds,
  maxOutputChars: integer(1),
  maxOutputBytes: integer(1),
  sandbox: oneOf('off', 'auto', 'required'),
  network: boolean,
  readPaths: absolutePaths,
  writePaths: absolutePaths,
  bubblewrap: filledString,
})

const FOR_SANDBOX = ['network', 'readPaths', 'writePaths', 'bubblewrap'] as const

/** The options with their defaults. Throws `invalid_options`, also on systems that cannot run the tool. */
export function bashSettings(options: BashOptions): BashSettings {
  const unsupported = processGroupsProblem()
  if (unsupported !== undefined) throw invalidOptions(`\`bash\` cannot run on this system: ${unsupported}.`)
  const given = parse(OPTIONS, options, '`bash`')
  const settings = { ...DEFAULTS, ...given }
  const idle = settings.sandbox === 'off' ? FOR_SANDBOX.find((key) => given[key] !== undefined) : undefined
  if (idle !== undefined) {
    throw invalidOptions(
      `\`${idle}\` of \`bash\` is a rule of the sandbox, which is off: set \`sandbox\` to \`auto\` or \`required\`.`,
    )
  }
  const { readPaths, writePaths } = settings
  const absolute = (path: string): string => resolve(expandHome(path))
  return { ...settings, readPaths: readPaths.map(absolute), writePaths: writePaths.map(absolute) }
}

function isAbsolutePath(path: string): boolean {
  return !path.includes('\0') && isAbsolute(expandHome(path))
}
