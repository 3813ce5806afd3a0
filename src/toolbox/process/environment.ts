import type { ToolReach } from '#core/tools/tool-spec.js'
import { leaf, matching, record, secret } from '#util/validate.js'
import type { Shape } from '#util/validate.js'

/** Variables of a command in addition to the usual ones, by name; `undefined` ones are left out. */
export type NamedVariables = Readonly<Record<string, string | undefined>>

export type Environment = Readonly<Record<string, string>>

/** Needed by programs to start and to write text. Everything else must be named: it may be a secret. */
const USUAL = ['PATH', 'HOME', 'USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR']

/**
 * The complete environment of a command: `PATH`, `HOME`, `USER`, `LOGNAME`, `LANG`, `LANGUAGE`, `LC_ALL`,
 * `LC_CTYPE`, `TZ` and `TMPDIR` of this process, a `TERM` without colours, and the named ones. Nothing else of
 * `process.env`.
 */
export function environmentOf(named: NamedVariables = {}): Environment {
  const usual = USUAL.map((name) => [name, process.env[name]] as const)
  const all: NamedVariables = { ...Object.fromEntries<string | undefined>(usual), TERM: 'dumb', ...named }
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** The reach of a program that is confined only by the rights of this process's user. */
export const UNCONFINED: ToolReach = { reads: ['/'], writes: ['/'], hosts: ['*'], programs: ['*'] }

/** Values are never shown in messages: they may be secrets. */
export const namedVariables: Shape<NamedVariables> = record(
  secret(leaf<string | undefined>('a string without NUL', isVariable)),
  matching(/^[^=\0]+$/, 'names of variables'),
)

function isVariable(value: unknown): boolean {
  return value === undefined || (typeof value === 'string' && !value.includes('\0'))
}
