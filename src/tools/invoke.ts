import type { JsonObject } from '../util/json.js'
import { bounded } from './bounded.js'
import { failureOf } from './failure.js'
import type { ToolOutcome } from './outcome.js'
import { isOutcome, outcomeOf } from './result.js'
import type { ToolContext, ToolSpec } from './spec.js'

/** Characters that the model gets of one result, where the tool does not say otherwise. */
const DEFAULT_MAX_OUTPUT_CHARS = 200_000

/**
 * Calls a tool once with checked arguments. What it throws and what it returns become an outcome within its bounds.
 * Does not reject. Knows no time limit and no abort: the tool has `context.signal`, and its caller decides how long
 * to wait.
 */
export async function invoke(spec: ToolSpec, args: JsonObject, context: ToolContext): Promise<ToolOutcome> {
  return bounded(await outcomeOfCall(spec, args, context), spec.maxOutputChars ?? DEFAULT_MAX_OUTPUT_CHARS)
}

async function outcomeOfCall(spec: ToolSpec, args: JsonObject, context: ToolContext): Promise<ToolOutcome> {
  try {
    const returned: unknown = await spec.call(args, context)
    return isOutcome(returned) ? returned : outcomeOf(returned)
  } catch (thrown) {
    return failureOf(thrown)
  }
}
