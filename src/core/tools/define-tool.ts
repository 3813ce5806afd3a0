import type { JsonObject, JsonSchema } from '#util/json.js'
import { outcomeOf } from './tool-result.js'
import { jsonSchemaOf, validatorOf } from '#schema/schema.js'
import type { Schema } from '#schema/schema.js'
import type { ToolContext, ToolSpec } from './tool-spec.js'
import { checkFieldNames, checkParameters, parseToolOptions } from './tool-options.js'
import type { ToolOptions } from './tool-options.js'

/**
 * Makes a tool: typed for its author, plain for the loop. Throws a `HarnessError` of code `invalid_options` for an
 * option that is unknown or of a wrong kind, and for a schema that cannot be sent to a model.
 *
 * @example
 * const lookup = defineTool({
 *   name: 'lookup_order',
 *   description: 'Find one order by its id.',
 *   parameters: z.object({ id: z.string() }),
 *   handler: ({ id }, { signal }) => database.order(id, { signal }),
 * })
 */
export function defineTool<S extends Schema, Deps = unknown>(tool: ToolOptions<S, Deps>): ToolSpec<Deps> {
  const parsed = parseToolOptions(tool)
  const { parameters: schema, handler, ...shared } = parsed
  const parameters = parametersOf(schema, parsed.name)
  checkFieldNames(parsed, parameters)
  const validate = validatorOf(schema, parameters)
  return Object.freeze({
    parameters,
    call: async (args: JsonObject, context: ToolContext<Deps>) => outcomeOf(await handler(args, context)),
    ...(validate !== undefined && { validate }),
    ...shared,
  })
}

function parametersOf(schema: Schema, toolName: string): JsonSchema {
  const where = `\`parameters\` of tool \`${toolName}\``
  const parameters = jsonSchemaOf(schema, where)
  checkParameters(parameters, where)
  // Providers require an object at the root, even if the document does not state it.
  return parameters['type'] === undefined ? { type: 'object', ...parameters } : parameters
}
