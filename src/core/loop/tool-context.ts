import { HarnessError } from '#contracts/errors.js'
import type { ToolEntry } from '#contracts/entry.js'
import { askWith, FIRST_KEY } from '../tools/ask.js'
import type { Ask } from '../tools/ask.js'
import type { ChildRun, EarlierResult, SpawnOptions, ToolContext, ToolSpec } from '../tools/tool-spec.js'
import { parseEnvelope } from '../tools/boundary/envelope.js'
import type { JsonValue } from '#util/json.js'
import { plainJson } from '#util/plain-json.js'
import type { BatchCall } from '../state/batch-call.js'
import type { RunState } from '../state/state.js'
import type { RunContext } from './run-context.js'
import type { RunSetup } from './run-plan.js'

/** One entry of a handler. */
export interface HandlerLife {
  readonly signal: AbortSignal
  readonly hasEnded: () => boolean
  /** People's answers to its questions, by key. */
  readonly answers: () => ReadonlyMap<string, JsonValue>
  readonly spawn: <Output>(options: SpawnOptions<Output>, signal: AbortSignal) => ChildRun<Output>
}

/** The members of a handler's context that are the same for every call of a run. */
export type ToolSurroundings = Pick<
  ToolContext,
  'runId' | 'depth' | 'metadata' | 'deps' | 'root' | 'sandbox' | 'results' | 'tools' | 'transcript' | 'decide'
>

export function toolSurroundings(context: RunContext, setup: RunSetup): ToolSurroundings {
  const { runId, depth, metadata, deps, decide } = context
  const { root, sandbox } = setup.plan
  const results = (toolNames: readonly string[]): Iterable<EarlierResult> | null =>
    toolNames.some((name) => setup.tools.has(name)) ? earlierResults(context.state, toolNames) : null
  const { transcript } = context.state
  return { runId, depth, metadata, deps, root, sandbox, results, tools: setup.tools, transcript, decide }
}

function* earlierResults({ phase, transcript }: RunState, toolNames: readonly string[]): Generator<EarlierResult> {
  const calls = phase.at === 'batch' ? phase.calls : []
  for (let index = calls.length - 1; index >= 0; index--) {
    const call = calls[index]
    if (!call?.settled || !toolNames.includes(call.name)) continue
    const { callId, name: toolName, settled } = call
    yield { toolName, callId, isSeen: false, ...parseEnvelope(settled.output) }
  }
  for (let index = transcript.length - 1; index >= 0; index--) {
    const entry = transcript[index]
    if (entry?.role !== 'tool' || !toolNames.includes(entry.name)) continue
    const { callId, name: toolName, content } = entry
    yield { toolName, callId, isSeen: true, ...parseEnvelope(textOf(content)) }
  }
}

/** The envelope is the first part. */
function textOf(content: ToolEntry['content']): string {
  if (typeof content === 'string') return content
  return content[0]?.type === 'text' ? content[0].text : ''
}

/** The context of the handler of a call. */
export function toolContext(
  context: RunContext,
  surroundings: ToolSurroundings,
  {
    call: { callId, name: toolName },
    life: { signal, hasEnded, answers, spawn },
  }: { readonly call: Pick<BatchCall, 'callId' | 'name'>; readonly life: HandlerLife },
): ToolContext {
  let ask: Ask | undefined
  return {
    callId,
    toolName,
    // The same for every attempt at the call.
    idempotencyKey: `${surroundings.runId}:${callId}`,
    signal,
    requestsLeft: () => (context.state.rules.limits.modelRequests ?? Infinity) - context.state.usage.modelRequests,
    progress: (update) => {
      if (!signal.aborted && !hasEnded())
        context.emitLive('tool_progress', { callId, toolName, update: plainJson(update) })
    },
    spawn: <Output>(options: SpawnOptions<Output>) => {
      if (hasEnded())
        throw new HarnessError('invalid_state', `Call \`${callId}\` has ended: it starts no runs any more.`)
      return spawn(options, signal)
    },
    // After the others: members that follow a spread or an accessor are slow to add.
    ...surroundings,
    get ask() {
      return (ask ??= askWith(answers(), toolName))
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
