import { isAbsolute } from 'node:path'
import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'
import { expandHome } from '../workspace/path-text.js'
import { checkNamedVariables } from '../process/environment.js'
import type { NamedVariables } from '../process/environment.js'
import { processGroupsProblem } from '../process/process-group.js'

/** What the shell tool can be told; every field is optional. */
export interface BashOptions {
  /** Folder in which commands run; their `cwd` cannot leave it. Default: the harness's root. */
  readonly root?: string
  /** Folder, inside the root, for the full text of outputs that are too long for a model. Default `.thinharness/outputs`. */
  readonly outputDir?: string
  /**
   * Variables for commands beside `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `LANGUAGE`, `LC_ALL`, `LC_CTYPE`, `TZ` and
   * `TMPDIR`. Of this process's environment nothing else is passed on. Default none.
   */
  readonly env?: NamedVariables
  /** When a command is asked to end unless its call says otherwise, in ms. Default 120,000. */
  readonly timeoutMs?: number
  /** When a command is killed, whatever its call says, in ms. Default 600,000. */
  readonly hardTimeoutMs?: number
  /** Time that a command gets between being asked to end and being killed, in ms. Default 5,000. */
  readonly graceMs?: number
  /** Longest text that the model gets of each stream, in characters. Default 30,000. */
  readonly maxOutputChars?: number
  /** Kept of each stream in memory and in its file, in bytes; of more, the beginning and the end. Default 10 MiB. */
  readonly maxOutputBytes?: number
  /**
   * Whether commands run in a sandbox of bubblewrap (`bwrap`, Linux). `off`: never; a command can do whatever the user of
   * this process can. `auto`: where it works, and the result says so when it does not. `required`: a command is refused
   * where it does not work. Default `off`.
   *
   * In the sandbox a command can write to the root (but for the harness's own folder) and to `writePaths`, read these,
   * `readPaths` and the system's own programs and settings (`/usr`, `/bin`, `/lib` and the like, and public parts of
   * `/etc`), has an empty `/tmp` and home folder, sees no other process, has no privileges, and no network unless
   * `network` is set. It does not limit memory, processor time, the number of processes, or the size of files.
   */
  readonly sandbox?: 'off' | 'auto' | 'required'
  /** Whether commands in the sandbox may use the network, that of this machine included. Default false. */
  readonly network?: boolean
  /** Absolute paths that commands in the sandbox may read, such as the folder of a tool chain in a home folder. Default none. */
  readonly readPaths?: readonly string[]
  /** Absolute paths outside the root that commands in the sandbox may write. Default none. */
  readonly writePaths?: readonly string[]
  /** The program of bubblewrap. Default: `bwrap` on the `PATH`. */
  readonly bubblewrap?: string
}

export interface BashSettings {
  readonly env: NamedVariables
  readonly timeoutMs: number
  readonly hardTimeoutMs: number
  readonly graceMs: number
  readonly maxOutputChars: number
  readonly maxOutputBytes: number
  readonly sandbox: 'off' | 'auto' | 'required'
  readonly network: boolean
  readonly readPaths: readonly string[]
  readonly writePaths: readonly string[]
  readonly bubblewrap: string
}

const TIMES = ['timeoutMs', 'hardTimeoutMs', 'graceMs'] as const
const COUNTS = ['maxOutputChars', 'maxOutputBytes'] as const
const FOR_SANDBOX = ['network', 'readPaths', 'writePaths', 'bubblewrap'] as const
const KNOWN = ['root', 'outputDir', 'env', 'sandbox', ...TIMES, ...COUNTS, ...FOR_SANDBOX]

/** The longest that a timer can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** @throws HarnessError `invalid_options`, naming the option, what was expected and what came. */
export function checkBashOptions(options: BashOptions): BashSettings {
  const unsupported = processGroupsProblem()
  if (unsupported !== undefined) throw invalid(`\`bash\` cannot run on this system: ${unsupported}.`)
  requireObject(options)
  const unknown = unknownKey(options, KNOWN, 'option of `bash`')
  if (unknown !== undefined) throw invalid(unknown)
  checkNamedVariables(options.env, '`bash`')
  for (const key of TIMES) checkWhole(key, options[key], MAX_TIMER_MS)
  for (const key of COUNTS) checkWhole(key, options[key], Number.MAX_SAFE_INTEGER)
  const { sandbox = 'off', network = false, readPaths = [], writePaths = [], bubblewrap = 'bwrap' } = options
  checkSandbox(options, sandbox, network)
  if (typeof bubblewrap !== 'string' || bubblewrap === '')
    throw expected('bubblewrap', 'the path of a program', bubblewrap)
  return {
    env: options.env ?? {},
    timeoutMs: options.timeoutMs ?? 120_000,
    hardTimeoutMs: options.hardTimeoutMs ?? 600_000,
    graceMs: options.graceMs ?? 5_000,
    maxOutputChars: options.maxOutputChars ?? 30_000,
    maxOutputBytes: options.maxOutputBytes ?? 10_485_760,
    sandbox,
    network,
    readPaths: checkedPaths('readPaths', readPaths),
    writePaths: checkedPaths('writePaths', writePaths),
    bubblewrap,
  }
}

function requireObject(options: unknown): void {
  if (!isObject(options)) throw invalid('Expected `bash` to be given an object of options.')
}

function checkSandbox(options: BashOptions, sandbox: unknown, network: unknown): void {
  if (sandbox !== 'off' && sandbox !== 'auto' && sandbox !== 'required') {
    throw expected('sandbox', '`off`, `auto` or `required`', sandbox)
  }
  if (typeof network !== 'boolean') throw expected('network', 'a boolean', network)
  const idle = sandbox === 'off' ? FOR_SANDBOX.find((key) => options[key] !== undefined) : undefined
  if (idle !== undefined) {
    throw invalid(
      `\`${idle}\` of \`bash\` is a rule of the sandbox, which is off: set \`sandbox\` to \`auto\` or \`required\`.`,
    )
  }
}

function checkWhole(key: string, value: unknown, most: number): void {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= most)) return
  throw expected(key, `a whole number from 1 to ${most}`, value)
}

function checkedPaths(key: string, value: unknown): string[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [undefined]
  return items.map((item) => {
    const path = typeof item === 'string' && !item.includes('\0') ? expandHome(item) : ''
    if (isAbsolute(path)) return path
    throw expected(key, 'a list of absolute paths', item ?? value)
  })
}

function expected(key: string, what: string, got: unknown): HarnessError {
  const shown = ['string', 'number', 'boolean'].includes(typeof got)
    ? `\`${String(got)}\``
    : `a value of type ${typeof got}`
  return invalid(`Expected \`${key}\` of \`bash\` to be ${what}, got ${shown}.`)
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
