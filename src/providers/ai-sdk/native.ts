import type { NativePart } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'

/**
 * What is kept of a part beside what the harness knows of it. Of text, reasoning and calls: `providerMetadata`, if
 * there is any. Of an opaque part: all that came.
 */
export function nativeForm(provider: string, data: Readonly<Record<string, unknown>>): { readonly native: NativePart } {
  return { native: { provider, data: plainJson(data) } }
}

/** What this provider gave with a part; null for a part of another. */
export function nativeData(part: { readonly native?: NativePart }, provider: string): JsonObject | null {
  const { native } = part
  return native?.provider === provider && isObject(native.data) ? native.data : null
}

/** A value of a provider as plain JSON: bytes as base64, addresses and times as text. */
function plainJson(value: unknown): JsonValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (value instanceof URL) return value.href
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString()
  if (Array.isArray(value)) return value.map(plainJson)
  if (!isObject(value)) return null
  const fields = Object.entries(value).filter(([, field]) => field !== undefined && typeof field !== 'function')
  return Object.fromEntries(fields.map(([name, field]) => [name, plainJson(field)]))
}
