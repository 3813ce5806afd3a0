import { HarnessError, ModelRetry, messageOf } from '#contracts/errors.js'
import type { ModelTurn, RequestConstants } from '../model-session.js'
import { checkArguments } from '../tools/boundary/check-arguments.js'
import { failureOf } from '../tools/boundary/invoke.js'
import { isOutcome, outcomeOf } from '../tools/tool-result.js'
import type { ToolOutcome, ToolSpec } from '../tools/tool-spec.js'
import type { SuspendedCall } from '../tools/ask.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import type { RequestKind } from '../state/events.js'
import { failedMember, OF_HARNESS } from './context.js'
import type { Named } from './context.js'

/** A request to the model, as middleware sees it. */
export interface ModelCall {
  readonly runId: string
  /** Null for the run at the top. */
  readonly agentName: string | null
  readonly metadata: JsonObject
  readonly requestKind: RequestKind
  readonly transcript: readonly TranscriptEntry[]
  readonly constants: RequestConstants
  readonly signal: AbortSignal
}

/**
 * Middleware around every request to a model, also of runs that calls start. `next` asks, with the call that it is given;
 * the returned reply is recorded; a replay does not call it. The cost of a further `next` is
 * not counted. An error that it throws ends the run.
 */
export type WrapModelCall = (call: ModelCall, next: (call: ModelCall) => Promise<ModelTurn>) => Promise<ModelTurn>

/** A tool call whose arguments have been checked, as middleware sees it. */
export interface ToolCall {
  readonly runId: string
  readonly agentName: string | null
  readonly metadata: JsonObject
  readonly callId: string
  readonly tool: ToolSpec
  /** As the tool gets them: checked, or as the wrap around this one passed them on. */
  readonly args: JsonObject
  readonly signal: AbortSignal
}

/**
 * Middleware around every call of a tool, also in runs that calls start. `next` runs the tool, with other arguments if it is
 * given some: they are checked like those of the model, and not stored; if they do not fit, the tool does not run, and the
 * outcome is a failed one. Policies, approvals and the log have the arguments before that. The returned value, an outcome
 * or anything that a handler may return, is recorded. A call that waits for a person skips it. An error that it throws is a
 * failed result, reported and counted like that of a hook; a `ModelRetry` asks the model to
 * try again.
 */
export type WrapToolCall = (call: ToolCall, next: (args?: JsonObject) => Promise<ToolOutcome>) => unknown

/** The reply to `call`, through the middleware; the first wrap is the outermost. */
export async function wrappedTurn(
  wraps: readonly WrapModelCall[],
  call: ModelCall,
  ask: (call: ModelCall) => Promise<ModelTurn>,
): Promise<ModelTurn> {
  /** Errors of the request itself, not of the middleware. */
  const failures = new Set<unknown>()
  const innermost = (asked: ModelCall): Promise<ModelTurn> =>
    ask(asked).catch((error: unknown) => {
      failures.add(error)
      throw error
    })
  const chain = wraps.reduceRight<(call: ModelCall) => Promise<ModelTurn>>(
    (next, wrap) => async (asked) => wrap(asked, next),
    innermost,
  )
  try {
    return await chain(call)
  } catch (error) {
    if (failures.has(error) || error instanceof HarnessError || call.signal.aborted) throw error
    throw failedMember('A `wrapModelCall`', error)
  }
}

/** The outcome of a call, through the middleware; the first wrap is the outermost. `work` gets the arguments that the last one passed on. */
export async function wrappedCall(
  wraps: readonly Named<WrapToolCall>[],
  hookFailed: (name: string, message: string, extension?: string) => Promise<void>,
  {
    call,
    work,
  }: { readonly call: ToolCall; readonly work: (args: JsonObject) => Promise<ToolOutcome | SuspendedCall> },
): Promise<ToolOutcome | SuspendedCall> {
  const waits: SuspendedCall[] = []
  /** The extension in which an error began; undefined: an option of the harness. */
  const origins = new Map<unknown, string | undefined>()
  const innermost = async ({ args }: ToolCall): Promise<ToolOutcome> => {
    const value = await work(args)
    if (value.kind !== 'suspended') return value
    waits.push(value)
    throw new Error('The call waits for a person.')
  }
  const chain = wraps.reduceRight<(asked: ToolCall) => Promise<ToolOutcome>>(
    (next, { extension, member: wrap }) =>
      async (asked) => {
        const passOn = async (args?: JsonObject): Promise<ToolOutcome> => {
          const checked = args && (await checkArguments(asked.tool, JSON.stringify(args)))
          if (checked?.ok === false) return checked.outcome
          return next(checked === undefined ? asked : { ...asked, args: checked.value })
        }
        try {
          const returned = await wrap(asked, passOn)
          return isOutcome(returned) ? returned : outcomeOf(returned)
        } catch (error) {
          if (!origins.has(error)) origins.set(error, extension.startsWith(OF_HARNESS) ? undefined : extension)
          throw error
        }
      },
    innermost,
  )
  try {
    const outcome = await chain(call)
    return waits[0] ?? outcome
  } catch (error) {
    if (waits[0] !== undefined) return waits[0]
    if (error instanceof ModelRetry || call.signal.aborted) return failureOf(error)
    await hookFailed('wrapToolCall', messageOf(error), origins.get(error))
    return failureOf(error)
  }
}
