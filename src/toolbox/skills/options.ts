import { parse } from '#contracts/parse.js'
import { filledString, integer, list, matching, milliseconds, object, optional, record, where } from '#util/validate.js'
import { namedVariables } from '../process/environment.js'
import type { NamedVariables } from '../process/environment.js'
import { SANDBOX_OPTIONS, sandboxSettings } from '../sandbox/options.js'
import type { SandboxOptions } from '../sandbox/options.js'

/** The folders of skills, and how their scripts run. */
export interface SkillsOptions extends SandboxOptions {
  /**
   * Folders that are searched for skills (folders with a `SKILL.md`), at most six levels down. Relative ones are in the
   * harness's root, `~` is the home folder. Skills are instructions and programs: name only folders that you trust.
   */
  readonly dirs: readonly string[]
  /** Only these skills, by name, in this order. Default: all. */
  readonly selected?: readonly string[] | undefined
  /** Variables for scripts in addition to the usual ones (see `bash`). Nothing else of this process's environment is passed on. */
  readonly env?: NamedVariables | undefined
  /**
   * The program, with its first arguments, for files with an ending: `{ '.py': ['python3'] }`. Default: `.py` `uv run`, else
   * `python3`; `.sh`, `.bash` `bash`; `.js`, `.mjs`, `.cjs` `node`; `.ts`, `.mts`, `.cts` `node` if it supports
   * TypeScript, else `tsx` or `bun`; `.go` `go run`; any other file is executed directly.
   */
  readonly runners?: Readonly<Record<string, readonly string[]>> | undefined
  /** The longest time limit that a call may set, in ms. Default 600,000. */
  readonly maxTimeoutMs?: number | undefined
  /** Most bytes of a script's output that are kept: its beginning and its end. Default 10 MiB. */
  readonly maxOutputBytes?: number | undefined
}

const path = where(filledString, 'a string without NUL', (text) => !text.includes('\0'))

const OPTIONS = object<SkillsOptions>({
  ...SANDBOX_OPTIONS,
  dirs: list(path, 'a list of folders'),
  selected: optional(list(path, 'a list of names')),
  env: optional(namedVariables),
  runners: optional(
    record(
      where(list(path), "a program and its arguments, as in `['python3']`", (command) => command.length > 0),
      matching(/^\.\w+$/, 'endings such as `.py`'),
    ),
  ),
  maxTimeoutMs: optional(milliseconds),
  maxOutputBytes: optional(integer(1)),
})

/** Reads the options. Throws `invalid_options`, naming the option, the expected and the given value. */
export function parseSkillsOptions(options: unknown): SkillsOptions {
  const parsed = parse(OPTIONS, options, '`skills`')
  sandboxSettings(parsed, 'skills')
  return parsed
}
