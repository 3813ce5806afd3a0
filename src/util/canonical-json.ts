import { isObject } from './json.js'

/** JSON text with sorted keys: the same for the same content, whatever the order in which it was stored. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    isObject(member) ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1))) : member,
  )
}
