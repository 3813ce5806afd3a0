import { createHash } from 'node:crypto'

/** Longest name of a tool that every provider takes, in characters. */
const LONGEST_NAME = 64
const HASH_CHARS = 8

/**
 * The name by which a model calls a server's tool: prefix and name joined by `_`, other characters than letters, digits,
 * `_` and `-` replaced by `_`. A name over 64 characters is cut and ends in a hash of the whole, so that it is the same in
 * every process and differs from its neighbours.
 */
export function publicToolName(name: string, prefix: string): string {
  const whole = prefix === '' ? name : `${prefix}_${name}`
  const clean = whole.replace(/[^A-Za-z0-9_-]/g, '_') || 'mcp_tool'
  if (clean.length <= LONGEST_NAME) return clean
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_CHARS)
  return `${clean.slice(0, LONGEST_NAME - HASH_CHARS - 1)}_${hash}`
}
