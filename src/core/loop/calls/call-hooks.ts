import type { ContentSource } from '#contracts/entry.js'
import { HarnessError } from '#contracts/errors.js'
import { parseEnvelope, renderEnvelope } from '../../tools/boundary/envelope.js'
import type { ToolOutcome, ToolSpec } from '../../tools/tool-spec.js'
import type { RunContext } from '../run-context.js'
import type { HookContexts } from '../../extension/hooks.js'
import { namesOf } from '../../state/batch-call.js'
import type { BatchCall, PreparedCall } from '../../state/batch-call.js'
import type { CallEnd, ShownResult } from './complete-call.js'

/** Asks the `before_tool_call` hooks and stores their answers. The first that cancels, or fails closed, is the last asked. */
export async function askBeforeCall(
  context: RunContext,
  call: BatchCall,
  { toolIndex, spec }: { readonly toolIndex: number; readonly spec: ToolSpec | undefined },
): Promise<PreparedCall> {
  const { callId, name: toolName } = call
  const prepared = await preparedByHooks(context, {
    callId,
    toolName,
    arguments: call.arguments,
    toolIndex,
    tool:
      spec === undefined
        ? null
        : { name: spec.name, description: spec.description, annotations: spec.annotations ?? {} },
  })
  await context.emit('call_prepared', { ...namesOf(call), toolIndex, ...prepared })
  return prepared
}

async function preparedByHooks(context: RunContext, asked: HookContexts['before_tool_call']): Promise<PreparedCall> {
  let prepared: PreparedCall = {}
  try {
    await context.askHooks('before_tool_call', asked, (current, { cancel, args }) => {
      if (args !== undefined) prepared = { arguments: JSON.stringify(args) }
      if (cancel === undefined) return { ...current, ...prepared }
      prepared = { ...prepared, cancelled: cancel === true ? '' : cancel }
      return null
    })
    return prepared
  } catch (error) {
    return { ...prepared, cancelled: failedHook(error) }
  }
}

/** The message of a hook that failed closed. Throws anything else. */
function failedHook(error: unknown): string {
  if (error instanceof HarnessError && error.code === 'hook_failed') return error.message
  throw error
}

/** The result of a call after the `after_tool_call` hooks; its text and its envelope are kept in step between them. */
export async function askAfterCall(
  context: RunContext,
  call: BatchCall,
  { toolIndex, durationMs, outcome, shown }: CallEnd,
): Promise<ShownResult> {
  if (!firesAfter(context, outcome)) return shown
  let current = shown
  let source: ContentSource | undefined
  const asked: HookContexts['after_tool_call'] = {
    ...current,
    callId: call.callId,
    toolName: call.name,
    arguments: call.arguments,
    toolIndex,
    originalOutput: shown.output,
    durationMs,
  }
  try {
    await context.askHooks('after_tool_call', asked, (before, answer) => {
      source = answer.source ?? source
      if (answer.output !== undefined) current = { output: answer.output, envelope: parseEnvelope(answer.output) }
      else if (answer.envelope !== undefined)
        current = { output: renderEnvelope(answer.envelope), envelope: answer.envelope }
      return { ...before, ...current }
    })
    return { ...current, source }
  } catch (error) {
    const content = `The call was made, and its result is withheld: ${failedHook(error)}`
    const envelope = { ok: false, content, metadata: { error_type: 'HookFailed' } }
    return { output: renderEnvelope(envelope), envelope }
  }
}

/** Not after a person's rejection, and not if the run was cancelled during the call. */
function firesAfter(context: RunContext, outcome: ToolOutcome): boolean {
  return outcome.kind !== 'rejected' && !(outcome.kind === 'cancelled' && context.abort.isAborted)
}
