import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import { unknownKey } from '../../util/unknown-key.js'
import { checkNamedVariables } from '../process/environment.js'
import type { NamedVariables } from '../process/environment.js'

/** Which skills there are, and how their scripts run. */
export interface SkillsOptions {
  /**
   * Folders in which skills are looked for: folders with a `SKILL.md`, at most six levels down. Relative ones are in the
   * harness's root, `~` is the home folder. Skills are instructions and programs: name only folders that you trust.
   */
  readonly dirs: readonly string[]
  /** Only these skills, by name, in this order. Default: all. */
  readonly selected?: readonly string[]
  /** Variables for scripts beside the usual ones (see `bash`). Of this process's environment nothing else is passed on. */
  readonly env?: NamedVariables
  /**
   * The program, with its first arguments, for files that end so: `{ '.py': ['python3'] }`. Default: `.py` `uv run`, else
   * `python3`; `.sh`, `.bash` `bash`; `.js`, `.mjs`, `.cjs` `node`; `.ts`, `.mts`, `.cts` `node` where it knows
   * TypeScript, else `tsx` or `bun`; `.go` `go run`; any other is run itself.
   */
  readonly runners?: Readonly<Record<string, readonly string[]>>
  /** Most time that a script may be given by its call, in ms. Default 600,000. */
  readonly maxTimeoutMs?: number
  /** Kept of what a script prints, in bytes; of more, the beginning and the end. Default 10 MiB. */
  readonly maxOutputBytes?: number
}

const KNOWN = ['dirs', 'selected', 'env', 'runners', 'maxTimeoutMs', 'maxOutputBytes']

/** @throws HarnessError `invalid_options`, naming the option, what was expected and what came. */
export function checkSkillsOptions(options: unknown): asserts options is SkillsOptions {
  if (!isObject(options)) throw invalid('Expected `skills` to be an object of options.')
  const unknown = unknownKey(options, KNOWN, 'option of `skills`')
  if (unknown !== undefined) throw invalid(unknown)
  const { dirs, selected, env, runners } = options
  if (!isTexts(dirs)) throw invalid('Expected `dirs` of `skills` to be a list of folders.')
  if (selected !== undefined && !isTexts(selected))
    throw invalid('Expected `selected` of `skills` to be a list of names.')
  checkNamedVariables(env, '`skills`')
  if (runners !== undefined && !isObject(runners)) throw invalid('Expected `runners` of `skills` to be an object.')
  for (const [ending, command] of Object.entries(runners ?? {})) checkRunner(ending, command)
  for (const key of ['maxTimeoutMs', 'maxOutputBytes']) checkWhole(key, options[key])
}

function checkRunner(ending: string, command: unknown): void {
  if (/^\.\w+$/.test(ending) && isTexts(command) && command.length > 0) return
  throw invalid(
    `Expected \`runners\` of \`skills\` to be as \`{ '.py': ['python3'] }\`, got something else for \`${ending}\`.`,
  )
}

function checkWhole(key: string, value: unknown): void {
  if (value === undefined || (Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) < 2 ** 31)) return
  throw invalid(`Expected \`${key}\` of \`skills\` to be a whole number from 1 to ${2 ** 31 - 1}.`)
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '' && !item.includes('\0'))
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
