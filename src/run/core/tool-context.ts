import { HarnessError } from '../../contracts/errors.js'
import { plainJson } from '../../util/plain-json.js'
import { jsonSchemaOf } from '../../schema/schema.js'
import type { ChildRun, SpawnOptions, ToolContext, ToolSpec } from '../../tools/spec.js'
import { Suspension } from '../../tools/suspension.js'
import type { JsonValue } from '../../util/json.js'
import type { QuestionAnswer } from '../machine/answers.js'
import type { BatchCall } from '../machine/batch-call.js'
import type { RunContext } from './context.js'
import type { Frozen } from './frozen.js'

/** One entry of a handler. */
export interface HandlerLife {
  readonly signal: AbortSignal
  readonly hasEnded: () => boolean
  /** A person's, to what the handler asked. */
  readonly answer: JsonValue | undefined
  readonly spawn: <Output>(options: SpawnOptions<Output>, signal: AbortSignal) => ChildRun<Output>
}

/** What the handler of a call is given. */
export function toolContext(
  context: RunContext,
  frozen: Frozen,
  call: Pick<BatchCall, 'callId' | 'name'>,
  { signal, hasEnded, answer, spawn }: HandlerLife,
): ToolContext {
  const { runId, metadata } = context
  const { callId, name: toolName } = call
  return {
    runId,
    callId,
    toolName,
    root: frozen.root,
    depth: context.depth,
    idempotencyKey: idempotencyKey(context, call),
    metadata,
    signal,
    ...(answer !== undefined && { answer }),
    progress: (update) => {
      if (!signal.aborted && !hasEnded()) context.tell('tool_progress', { callId, toolName, update })
    },
    suspend: (payload, schema) => {
      throw new Suspension(plainJson(payload), jsonSchemaOf(schema, `the schema of \`suspend\` in \`${toolName}\``))
    },
    spawn: <Output>(options: SpawnOptions<Output>) => {
      if (hasEnded())
        throw new HarnessError('invalid_state', `Call \`${callId}\` has ended: it starts no runs any more.`)
      return spawn(options, signal)
    },
  }
}

/** What is done with a call of the tool that had started when the process ended. */
export function whenUnknown({ annotations = {}, onUnknownOutcome }: ToolSpec): 'retry' | 'report' | 'pause' {
  const { readOnly, idempotent } = annotations
  return onUnknownOutcome ?? (readOnly === true || idempotent === true ? 'retry' : 'report')
}

/** The same for every attempt at a call. */
export function idempotencyKey({ runId }: RunContext, { callId }: Pick<BatchCall, 'callId'>): string {
  return `${runId}:${callId}`
}

/** What a person answered to the question of a call. */
export function answerOf({ callId, answers }: Pick<BatchCall, 'callId' | 'answers'>): JsonValue | undefined {
  return answers.find((each): each is QuestionAnswer => each.callId === callId && 'answer' in each)?.answer
}
