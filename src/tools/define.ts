import type { JsonObject, JsonSchema } from '../util/json.js'
import { outcomeOf } from './result.js'
import { jsonSchemaOf, validatorOf } from '../schema/schema.js'
import type { InferSchema, Schema } from '../schema/schema.js'
import type { ApprovalContext, ToolContext, ToolSpec } from './spec.js'
import { checkFieldNames, checkParameters, parseToolOptions } from './tool-options.js'
import type { ToolOptions } from './tool-options.js'

/**
 * Makes a tool: typed for its author, plain for the loop. Throws a `HarnessError` of code `invalid_options` for an
 * option that is unknown or of a wrong kind, and for a schema that no model can be given.
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
  const { parameters: schema, handler, requiresApproval, preview, ...shared } = parsed
  const parameters = parametersOf(schema, parsed.name)
  checkFieldNames(parsed, parameters)
  const validate = validatorOf(schema, parameters)
  // What `validate` let through is what the schema's type says; for the loop it is an object like any other.
  const typed = (args: JsonObject): InferSchema<S> => args as InferSchema<S>
  const rule = typeof requiresApproval === 'function' ? approvalRule(requiresApproval, typed) : requiresApproval
  return Object.freeze({
    ...shared,
    parameters,
    ...(rule !== undefined && { requiresApproval: rule }),
    ...(preview !== undefined && {
      preview: (args: JsonObject, context: ApprovalContext) => preview(typed(args), context),
    }),
    ...(validate !== undefined && { validate }),
    call: async (args: JsonObject, context: ToolContext<Deps>) => outcomeOf(await handler(typed(args), context)),
  })
}

function parametersOf(schema: Schema, toolName: string): JsonSchema {
  const where = `\`parameters\` of tool \`${toolName}\``
  const parameters = jsonSchemaOf(schema, where)
  checkParameters(parameters, where)
  // Providers want to see an object at the root, also where a document leaves it unsaid.
  return parameters['type'] === undefined ? { type: 'object', ...parameters } : parameters
}

function approvalRule<Args>(
  rule: (args: Args, context: ApprovalContext) => boolean | Promise<boolean>,
  typed: (args: JsonObject) => Args,
): ToolSpec['requiresApproval'] {
  return (args, context) => rule(typed(args), context)
}
