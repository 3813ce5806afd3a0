import type { ToolDefinition } from '#core/model-session.js'
import { strictSchema } from '#schema/strict.js'
import { isList, isSchema, schemasIn } from '#schema/subschemas.js'
import type { JsonSchema } from '#util/json.js'

/** The description of a tool with its examples, for an API that has no field for them. */
export function describedTool({ description, examples = [] }: ToolDefinition): string {
  if (examples.length === 0) return description
  const lines = examples.map((example) => `- ${JSON.stringify(example)}`)
  return [...(description === '' ? [] : [description, '']), 'Examples of arguments:', ...lines].join('\n')
}

/**
 * The parameters of a strict tool in the form that constrained decoding takes; null for another tool, and for a schema without that
 * form. That of a schema with optional fields demands nulls for them, which the schema itself would reject.
 */
export function strictParameters({ strict, parameters }: ToolDefinition): JsonSchema | null {
  if (strict !== true || ![...schemasIn(parameters)].every(requiresAll)) return null
  return strictSchema(parameters)
}

function requiresAll({ properties, required }: JsonSchema): boolean {
  const names = isSchema(properties) ? Object.keys(properties) : []
  return names.every((name) => isList(required) && required.includes(name))
}
