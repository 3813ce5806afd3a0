import type { NativePart } from '#contracts/entry.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { WireFields } from '../wire/read.js'

/** A reply in the form of `doGenerate`, which is also the sum of a stream, in any version. Unchecked. */
export interface AiSdkReply {
  readonly content: readonly WireFields[]
  readonly finishReason: unknown
  readonly usage: unknown
  readonly providerMetadata: unknown
  /** `id`, `modelId`, `timestamp`, `headers`, and of a whole reply its `body`. */
  readonly response: WireFields
  readonly warnings: readonly unknown[]
}

/**
 * The data that a part keeps of the reply. For text, reasoning and calls: `providerMetadata`, if there is any. For an
 * opaque part: the whole part.
 */
export function nativeForm(provider: string, data: WireFields): { readonly native: NativePart } {
  return { native: { provider, data: plainJson(data) } }
}

/** True for the metadata of a text that is a summary of the conversation, made by the provider itself. */
export function isCompaction(providerMetadata: unknown): boolean {
  const spaces: readonly unknown[] = isObject(providerMetadata) ? Object.values(providerMetadata) : []
  return spaces.some((space) => isObject(space) && space['type'] === 'compaction')
}

/** The data of this provider in a part; null for a part of another provider. */
export function nativeData(part: { readonly native?: NativePart }, provider: string): JsonObject | null {
  const { native } = part
  return native?.provider === provider && isObject(native.data) ? native.data : null
}

/** A value of a provider as plain JSON: bytes as base64, URLs and dates as strings. */
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
