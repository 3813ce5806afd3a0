import type { NativePart, TranscriptEntry } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import type { JsonObject } from '../../util/json.js'
import { PROVIDER } from './provider.js'

/** The container in which the provider's own tools ran for a reply: kept with the reply, for the next request names it. */
export function containerOf(container: unknown): { readonly native?: NativePart } {
  if (!isObject(container) || typeof container['id'] !== 'string') return {}
  const { id, expires_at: end } = container
  const data = { container: { id, ...(typeof end === 'string' && { expires_at: end }) } }
  return { native: { provider: PROVIDER, data } }
}

/**
 * The request field that names the container of the conversation: without it the provider's tools get a fresh one, which
 * has nothing of what they made. `fields` are what the caller asks for.
 */
export function containerFields(transcript: readonly TranscriptEntry[], { container, tools }: JsonObject): JsonObject {
  const isChosen = typeof container === 'string' || (isObject(container) && typeof container['id'] === 'string')
  if (isChosen || !hasProviderTools(tools)) return {}
  const id = lastContainer(transcript)
  if (id === null) return {}
  return { container: isObject(container) ? { ...container, id } : id }
}

function hasProviderTools(tools: unknown): boolean {
  return Array.isArray(tools) && tools.some((tool) => isObject(tool) && (tool['type'] ?? 'custom') !== 'custom')
}

/** The container of the latest reply that has one, unless it had come to its end when the last entry joined. */
function lastContainer(transcript: readonly TranscriptEntry[]): string | null {
  const held = transcript.findLast((entry) => entry.role === 'assistant' && entry.native?.provider === PROVIDER)
  const data = held?.role === 'assistant' ? held.native?.data : undefined
  const container = isObject(data) && isObject(data['container']) ? data['container'] : {}
  const { id, expires_at: end } = container
  if (typeof id !== 'string') return null
  const isOver = typeof end === 'string' && Date.parse(end) <= Date.parse(transcript.at(-1)?.at ?? '')
  return isOver ? null : id
}
