import { createHash } from 'node:crypto'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'

/** Digest of what a server says of a tool: of all that a model is told or a host decides by. Independent of key order. */
export function definitionDigest({
  name,
  title,
  description,
  inputSchema,
  outputSchema,
  annotations,
}: JsonObject): string {
  const told = { name, title, description, inputSchema, outputSchema, annotations }
  return `sha256:${createHash('sha256').update(sortedJson(told)).digest('hex')}`
}

function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    isObject(member)
      ? Object.fromEntries(Object.entries(member).sort(([left], [right]) => (left < right ? -1 : 1)))
      : member,
  )
}
