import type { ShellWord } from './word.js'

const REDEFINES = 'gives a new meaning to a name'
const EVALUATES = 'has a word that the shell evaluates again'

/** Builtins after which a name can mean another program, or that run text of their own. */
const REDEFINING = new Set([
  'alias',
  'hash',
  'enable',
  'compgen',
  'complete',
  'bind',
  'fc',
  'mapfile',
  'readarray',
  'let',
])
/** Builtins that take names of variables: the subscript of a name is evaluated. */
const NAMING = new Set(['read', 'unset', 'export', 'readonly', 'declare', 'typeset', 'local', 'wait', 'getopts'])

/** The reason why a builtin can do more than its words say; null if it cannot, or if it is none of these. */
export function builtinDoubt(name: string, args: readonly ShellWord[]): string | null {
  if (REDEFINING.has(name)) return REDEFINES
  if (NAMING.has(name)) return args.every((arg) => isPlainName(name, arg)) ? null : EVALUATES
  if (name === 'printf') return args[0] === undefined || isPlain(args[0]) ? null : EVALUATES
  if (name === 'test' || name === '[') return args.every(isPlain) ? null : EVALUATES
  return null
}

/** `declare -i` makes a variable evaluate the assigned text. */
function isPlainName(builtin: string, { isFixed, text, prefix }: ShellWord): boolean {
  const declares = builtin === 'declare' || builtin === 'typeset' || builtin === 'local'
  if (declares && /^[-+].*[inA-Z]/.test(text)) return false
  const name = isFixed ? text : prefix
  if (!isFixed && !/^\w+\+?=/.test(name)) return false
  return !name.replace(/=[^]*$/, '').includes('[')
}

/** No name of a variable follows it: `-v` and `-R` take one. */
function isPlain({ isFixed, text }: ShellWord): boolean {
  return isFixed && !/^-[vR]/.test(text)
}
