import { complement, fromSource } from './char-set.js'
import type { CharSet } from './char-set.js'

/**
 * The characters with a Unicode property, written as ripgrep takes it: `L`, `Lu`, `Greek`, `sc=Greek`, `gc!=Nd`; case,
 * spaces and hyphens in names do not matter. `undefined` when there is no such property.
 */
export function propertySet(name: string, ignoreCase: boolean): CharSet | undefined {
  const [, key, sign, value] = /^([^=:!]+)(!=|=|:)([^=:!]+)$/.exec(name) ?? []
  if (key === undefined || value === undefined) return firstKnown(['', 'Script='], name, ignoreCase)
  const prefix = PREFIXES[key.toLowerCase().replace(/[ _-]/g, '')]
  const set = prefix === undefined ? undefined : firstKnown([prefix], value, ignoreCase)
  return set !== undefined && sign === '!=' ? complement(set) : set
}

const PREFIXES: Readonly<Partial<Record<string, string>>> = {
  gc: 'General_Category=',
  generalcategory: 'General_Category=',
  sc: 'Script=',
  script: 'Script=',
  scx: 'Script_Extensions=',
  scriptextensions: 'Script_Extensions=',
}

function firstKnown(prefixes: readonly string[], name: string, ignoreCase: boolean): CharSet | undefined {
  if (!/^[A-Za-z][A-Za-z _-]*$/.test(name)) return undefined
  for (const prefix of prefixes) {
    for (const spelling of [name, titleCased(name), name.toUpperCase()]) {
      const set = knownProperty(prefix + spelling, ignoreCase)
      if (set !== undefined) return set
    }
  }
  return undefined
}

/** `old italic` as `Old_Italic`, the way in which JavaScript wants it. */
function titleCased(name: string): string {
  const words = name.toLowerCase().split(/[ _-]+/)
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('_')
}

function knownProperty(name: string, ignoreCase: boolean): CharSet | undefined {
  try {
    return fromSource(`\\p{${name}}`, ignoreCase)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
