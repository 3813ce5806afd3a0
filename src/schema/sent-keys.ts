/** The keys that every API accepts in a schema. */
const ACCEPTED = /^[a-zA-Z0-9_.-]{1,64}$/

/** The end of a replaced key: eight hexadecimal digits. */
export const SENT_KEY = /_x[0-9a-f]{8}$/

/**
 * A property's key as it is sent to an API that accepts letters, digits, `_`, `.` and `-` only, at most 64 of them: the key itself if it
 * is accepted. Replaced keys end in a digest of the key, so that no two are the same.
 */
export function sentKey(key: string): string {
  if (ACCEPTED.test(key)) return key
  return `${key.replace(/[^a-zA-Z0-9_.-]/g, '_').slice(0, 54)}_x${digest(key)}`
}

/** FNV-1a, 32 bits. */
function digest(text: string): string {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return (hash >>> 0).toString(16).padStart(8, '0')
}
