import type { JsonSchema } from '#util/json.js'
import type { InferOutput } from '#core/tools/output-type.js'
import type { Schema } from '#schema/schema.js'
import { parseSubagents } from './subagent-options.js'
import type { SubagentSpec } from './subagent-options.js'

/** Makes agents, their checks typed by their `outputType`. */
export interface DefineSubagent {
  <const Type extends JsonSchema | readonly Schema[]>(
    agent: SubagentSpec<NoInfer<InferOutput<Type>>> & { readonly outputType: Type },
  ): SubagentSpec
  <Output = string>(agent: SubagentSpec<Output>): SubagentSpec
}

/**
 * An agent for `subagents`, and for `subagent` of `thinharness/tools`. Only needed to type an `outputValidator`.
 * @throws HarnessError `invalid_options`, naming the problem.
 */
export const defineSubagent: DefineSubagent = (agent: SubagentSpec): SubagentSpec => {
  parseSubagents([agent])
  return agent
}
