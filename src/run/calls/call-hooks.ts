import type { RunUsage } from '../../contracts/result.js'
import { parseEnvelope, renderEnvelope } from '../../tools/boundary/envelope.js'
import type { Envelope } from '../../tools/boundary/envelope.js'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { JsonObject } from '../../util/json.js'
import type { LeftRun } from '../machine/background-state.js'
import type { RunContext } from '../core/context.js'
import type { HookContext } from '../hooks/hooks.js'
import type { BatchCall } from '../machine/batch-call.js'
import type { ContentSource } from '../../contracts/entry.js'

/** What the hooks before a call decided. */
export interface BeforeCall {
  /** The call is answered with this reason in place of being run. */
  readonly cancel: string | true | null
  /** In place of the model's arguments. */
  readonly args: JsonObject | null
}

/** Asks the `before_tool_call` hooks: the first that cancels is the last that is asked. */
export async function askBeforeCall(
  context: RunContext,
  call: BatchCall,
  toolIndex: number,
  spec: ToolSpec | undefined,
): Promise<BeforeCall> {
  if (!context.hooks.has('before_tool_call')) return { cancel: null, args: null }
  let decided: BeforeCall = { cancel: null, args: null }
  const asked: HookContext<'before_tool_call'> = {
    ...context.hookBase('before_tool_call'),
    callId: call.callId,
    toolName: call.name,
    arguments: call.arguments,
    toolIndex,
    tool:
      spec === undefined
        ? null
        : { name: spec.name, description: spec.description, annotations: spec.annotations ?? {} },
  }
  await context.hooks.ask(asked, context, (current, { cancel, args }) => {
    decided = { cancel: cancel ?? null, args: args ?? decided.args }
    if (cancel !== undefined) return null
    return args === undefined ? current : { ...current, arguments: JSON.stringify(args) }
  })
  return decided
}

/** A call that has an outcome. */
export interface EndedCall {
  readonly toolIndex: number
  readonly durationMs: number
  readonly outcome: ToolOutcome
  readonly told: Envelope
  readonly childUsage?: RunUsage
  readonly background?: readonly LeftRun[]
  readonly source?: ContentSource
  /** The tool only reads, by its annotations. */
  readonly readOnly?: boolean
}

/** What the model reads of a call. */
export interface ToldOfCall {
  readonly output: string
  readonly envelope: Envelope
}

/** What the model reads of a call, after the `after_tool_call` hooks: text and envelope are kept in step between them. */
export async function askAfterCall(
  context: RunContext,
  call: BatchCall,
  { toolIndex, durationMs, outcome, told }: EndedCall,
): Promise<ToldOfCall> {
  const originalOutput = renderEnvelope(told)
  let current: ToldOfCall = { output: originalOutput, envelope: told }
  if (!context.hooks.has('after_tool_call') || !firesAfter(context, outcome)) return current
  const asked: HookContext<'after_tool_call'> = {
    ...context.hookBase('after_tool_call'),
    ...current,
    callId: call.callId,
    toolName: call.name,
    arguments: call.arguments,
    toolIndex,
    originalOutput,
    durationMs,
  }
  await context.hooks.ask(asked, context, (before, answer) => {
    if (answer.output !== undefined) current = { output: answer.output, envelope: parseEnvelope(answer.output) }
    else if (answer.envelope !== undefined)
      current = { output: renderEnvelope(answer.envelope), envelope: answer.envelope }
    return { ...before, ...current }
  })
  return current
}

/** Not after a person's rejection, and not when the run was cancelled under the call (spec §5.7). */
function firesAfter(context: RunContext, outcome: ToolOutcome): boolean {
  return outcome.kind !== 'rejected' && !(outcome.kind === 'cancelled' && context.signal.aborted)
}
