import { invalidOptions, parse } from '#contracts/parse.js'
import { integer, milliseconds, object, optional, string } from '#util/validate.js'
import type { Complete } from '#util/validate.js'
import { namedVariables } from '../process/environment.js'
import type { NamedVariables } from '../process/environment.js'
import { processGroupsProblem } from '../process/process-group.js'
import { SANDBOX_OPTIONS, sandboxSettings } from '../sandbox/options.js'
import type { SandboxOptions, SandboxSettings } from '../sandbox/options.js'

/** Options of the shell tool; all optional. */
export interface BashOptions extends SandboxOptions {
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
}

export type BashSettings = typeof DEFAULTS & Pick<BashOptions, 'root' | 'outputDir'> & SandboxSettings

const DEFAULTS: Complete<Omit<BashOptions, 'root' | 'outputDir' | keyof SandboxOptions>> = {
  env: {},
  timeoutMs: 120_000,
  hardTimeoutMs: 600_000,
  graceMs: 5_000,
  maxOutputChars: 30_000,
  maxOutputBytes: 10_485_760,
}

const OPTIONS = object<BashOptions>({
  ...SANDBOX_OPTIONS,
  root: optional(string),
  outputDir: optional(string),
  env: optional(namedVariables),
  timeoutMs: optional(milliseconds),
  hardTimeoutMs: optional(milliseconds),
  graceMs: optional(milliseconds),
  maxOutputChars: optional(integer(1)),
  maxOutputBytes: optional(integer(1)),
})

/** The options with their defaults. Throws `invalid_options`, also on systems that cannot run the tool. */
export function bashSettings(options: BashOptions): BashSettings {
  const unsupported = processGroupsProblem()
  if (unsupported !== undefined) throw invalidOptions(`\`bash\` cannot run on this system: ${unsupported}.`)
  const given = parse(OPTIONS, options, '`bash`')
  return { ...DEFAULTS, ...given, ...sandboxSettings(given, 'bash') }
}
