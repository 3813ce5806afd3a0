import { HarnessError } from '../../contracts/errors.js'
import { askWith, FIRST_KEY } from '../../tools/ask.js'
import type { Ask } from '../../tools/ask.js'
import type { ChildRun, SpawnOptions, ToolContext, ToolSpec } from '../../tools/spec.js'
import type { JsonValue } from '../../util/json.js'
import { plainJson } from '../../util/plain-json.js'
import type { BatchCall } from '../machine/batch-call.js'
import type { RunContext } from './context.js'
import type { Frozen } from './frozen.js'

/** One entry of a handler. */
export interface HandlerLife {
  readonly signal: AbortSignal
  readonly hasEnded: () => boolean
  /** People's answers to its questions, by key. */
  readonly answers: () => ReadonlyMap<string, JsonValue>
  readonly spawn: <Output>(options: SpawnOptions<Output>, signal: AbortSignal) => ChildRun<Output>
}

/** The members of a handler's context that are the same for every call of a run. */
export type ToolSurroundings = Pick<ToolContext, 'runId' | 'depth' | 'metadata' | 'deps' | 'root' | 'sandbox'>

export function toolSurroundings(
  { runId, depth, metadata, deps }: RunContext,
  { root, sandbox }: Frozen,
): ToolSurroundings {
  return { runId, depth, metadata, deps, root, sandbox }
}

/** The context of the handler of a call. */
export function toolContext(
  context: RunContext,
  { runId, depth, metadata, deps, root, sandbox }: ToolSurroundings,
  {
    call: { callId, name: toolName },
    life: { signal, hasEnded, answers, spawn },
  }: { readonly call: Pick<BatchCall, 'callId' | 'name'>; readonly life: HandlerLife },
): ToolContext {
  let ask: Ask | undefined
  return {
    // Named one by one: a spread copy with further members is slow to create.
    runId,
    depth,
    metadata,
    deps,
    root,
    sandbox,
    callId,
    toolName,
    // The same for every attempt at the call.
    idempotencyKey: `${runId}:${callId}`,
    signal,
    progress: (update) => {
      if (!signal.aborted && !hasEnded())
        context.emitLive('tool_progress', { callId, toolName, update: plainJson(update) })
    },
    get ask() {
      return (ask ??= askWith(answers(), toolName))
    },
    spawn: <Output>(options: SpawnOptions<Output>) => {
      if (hasEnded())
        throw new HarnessError('invalid_state', `Call \`${callId}\` has ended: it starts no runs any more.`)
      return spawn(options, signal)
    },
  }
}

/** The treatment of a call of the tool that had started when the process ended. */
export function whenUnknown({ annotations = {}, onUnknownOutcome }: ToolSpec): 'retry' | 'report' | 'pause' {
  const { readOnly, idempotent } = annotations
  return onUnknownOutcome ?? (readOnly === true || idempotent === true ? 'retry' : 'report')
}

/** The answers of people to the questions of a call, by key. */
export function answersOf({ callId, answers }: Pick<BatchCall, 'callId' | 'answers'>): ReadonlyMap<string, JsonValue> {
  const own = answers.filter((each) => each.callId === callId)
  return new Map(own.flatMap((each) => ('answer' in each ? [[each.key ?? FIRST_KEY, each.answer]] : [])))
}
