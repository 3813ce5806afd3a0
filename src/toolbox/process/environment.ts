import { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'

/** Variables of a command beside the usual ones, by name; those that are `undefined` are left out. */
export type NamedVariables = Readonly<Record<string, string | undefined>>

export type Environment = Readonly<Record<string, string>>

/** What programs need to start and to write text. Everything else has to be named: any of it may be a secret. */
const PASSED = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR']

/**
 * The whole environment of a command (spec H-30, H-31): `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `LANGUAGE`, `LC_ALL`,
 * `LC_CTYPE`, `TZ` and `TMPDIR` of this process, a `TERM` that asks for no colours, and what is named. Nothing else of
 * `process.env`.
 */
export function environmentOf(named: NamedVariables = {}): Environment {
  const passed = PASSED.map((name) => [name, process.env[name]] as const)
  const all: NamedVariables = { ...Object.fromEntries<string | undefined>(passed), TERM: 'dumb', ...named }
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** @throws HarnessError `invalid_options` for what cannot be an environment. `what` names the tool. Values are not shown. */
export function checkNamedVariables(named: unknown, what: string): void {
  if (named === undefined) return
  if (!isObject(named)) throw invalid(`Expected \`env\` of ${what} to be an object of variables, got no object.`)
  for (const [name, value] of Object.entries(named)) {
    if (!/^[^=\0]+$/.test(name))
      throw invalid(`Expected \`env\` of ${what} to have names of variables, got \`${name}\`.`)
    if (value === undefined || (typeof value === 'string' && !value.includes('\0'))) continue
    throw invalid(`Expected \`env.${name}\` of ${what} to be a text without NUL, got something else.`)
  }
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
