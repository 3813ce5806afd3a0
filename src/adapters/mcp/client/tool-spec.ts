import type { ToolOutcome } from '#core/tools/outcome.js'
import type { ToolAnnotations, ToolContext, ToolSpec } from '#core/tools/tool-spec.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonSchema } from '#util/json.js'
import type { ServerSettings } from './server-options.js'
import type { McpTool } from './tool-list.js'

/** A server's tool as a `ToolSpec`: its schema as received, its hints as annotations. */
export function mcpToolSpec(
  tool: McpTool,
  { id, requiresApproval, reach, sampling }: ServerSettings,
  call: (args: JsonObject, context: ToolContext) => Promise<ToolOutcome>,
): ToolSpec {
  const { name, publicName, definition } = tool
  const { title, description, inputSchema } = definition
  const annotations = toolAnnotations(definition)
  const rule: ToolSpec['requiresApproval'] =
    typeof requiresApproval === 'function'
      ? async (args) => requiresApproval({ toolName: name, args, annotations })
      : requiresApproval
  return Object.freeze({
    name: publicName,
    description: typeof description === 'string' ? description : typeof title === 'string' ? title : '',
    parameters: inputSchema as JsonSchema,
    annotations,
    requiresApproval: rule,
    reach,
    // A server does not say for which call it asks a model.
    ...((sampling === true || sampling === 'ask') && { sequential: true }),
    metadata: { ...mcpSource(id, name), digest: tool.digest },
    call,
  })
}

/** The source of a result, for its metadata. */
export function mcpSource(serverId: string, toolName: string): JsonObject {
  return { source: 'mcp', mcp_server_id: serverId, mcp_tool_name: toolName }
}

function toolAnnotations({ annotations }: JsonObject): ToolAnnotations {
  if (!isObject(annotations)) return {}
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = annotations
  return {
    ...(typeof readOnlyHint === 'boolean' && { readOnly: readOnlyHint }),
    ...(typeof destructiveHint === 'boolean' && { destructive: destructiveHint }),
    ...(typeof idempotentHint === 'boolean' && { idempotent: idempotentHint }),
    ...(typeof openWorldHint === 'boolean' && { openWorld: openWorldHint }),
  }
}
