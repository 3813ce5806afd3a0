import type { Tool, ToolChoice as WireToolChoice } from '@anthropic-ai/sdk/resources/messages'
import type { ToolChoice, ToolDefinition } from '../../contracts/model.js'
import type { JsonObject } from '../../util/json.js'
import { inputSchema } from '../../schema/input-schema.js'

/** The tools as the API names them. With `cacheControl`, the last one ends what is cached of them. */
export function wireTools(tools: readonly ToolDefinition[], cacheControl: JsonObject | null): readonly JsonObject[] {
  return tools.map((tool, index) =>
    cacheControl !== null && index === tools.length - 1
      ? { ...wireTool(tool), cache_control: cacheControl }
      : wireTool(tool),
  )
}

function wireTool({ name, description, parameters }: ToolDefinition): JsonObject {
  return {
    name,
    ...(description !== '' && { description }),
    input_schema: inputSchema(parameters),
  } satisfies Tool
}

export function wireToolChoice(choice: ToolChoice): JsonObject {
  switch (choice) {
    case 'auto':
    case 'none':
      return { type: choice } satisfies WireToolChoice
    case 'required':
      return { type: 'any' } satisfies WireToolChoice
    default:
      return { type: 'tool', name: choice.tool } satisfies WireToolChoice
  }
}
