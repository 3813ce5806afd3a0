import type { ToolDefinition } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { stringIn } from '../wire/wire-fields.js'

/**
 * A block of Anthropic's search for tools without those that the request does not have, which the API rejects; null if it has no
 * deferred tools. Any other block as it is.
 */
export function withKnownTools(block: JsonObject, tools: readonly ToolDefinition[]): JsonObject | null {
  const { type, name, content } = block
  const isResult = type === 'tool_search_tool_result'
  if (!isResult && !(type === 'server_tool_use' && stringIn(name).startsWith('tool_search_tool'))) return block
  if (!tools.some(({ deferred }) => deferred === true)) return null
  if (!isResult || !isObject(content)) return block
  const { tool_references: references } = content
  if (!Array.isArray(references)) return block
  const known = new Set(tools.map((tool) => tool.name))
  const kept = (references as readonly JsonValue[]).filter(
    (each) => isObject(each) && known.has(stringIn(each['tool_name'])),
  )
  return { ...block, content: { ...content, tool_references: kept } }
}
