import type { SubmittedRequest } from '#contracts/attempt.js'
import type { ModelTurn, RequestConstants, TurnOptions } from '../../model-session.js'
import type { RequestPayer } from '../../money-port.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import { deepFreeze, readOnly } from '#util/json.js'
import type { JsonValue } from '#util/json.js'
import { wrapped } from '#util/wrapped.js'
import type { Work, Wrap } from '#util/wrapped.js'
import type { RunContext } from '../run-context.js'
import type { RunSetup } from '../run-plan.js'
import { wrappedTurn } from '../../extension/wraps.js'
import type { RequestKind } from '../../state/events.js'
import { ReplyDeltas } from './reply-deltas.js'

/** A request to the model. */
export interface Request {
  readonly requestKind: RequestKind
  /** The entries as the model gets them. */
  readonly transcript: readonly TranscriptEntry[]
  /** Number of the view of the transcript. */
  readonly generation: number
  readonly constants: RequestConstants
  readonly signal: AbortSignal
  /** Tokens of the reply that the budget allows; null: as many as the settings do. */
  readonly maxOutputTokens: number | null
  readonly attempts: RequestPayer
  /** The request as it was submitted by an earlier process; given once. */
  readonly takeSubmitted: () => SubmittedRequest | null
}

/**
 * Everything that surrounds each request of a run, composed once: price, trace, middleware. Without them, the session itself.
 * `onReader` gets the reader of each reply that is streamed.
 */
export function askingOf(
  context: RunContext,
  setup: RunSetup,
  onReader: (reader: ReplyDeltas) => void,
): Work<Request, ModelTurn> {
  const { session, output, plan, model } = setup
  const values = model.computed === true ? new Map<string, JsonValue>() : null
  const around = values === null ? [...traced(context), ...middleware(context)] : []
  const ask = wrapped<Request, ModelTurn>(around, async (request) => {
    const { transcript, constants } = request
    const reader = plan.deltas ? new ReplyDeltas(context, output) : null
    if (reader !== null) onReader(reader)
    for (const [callId, value] of context.state.values?.slice(values?.size) ?? [])
      values?.set(callId, deepFreeze(value))
    const options = turnOptions(context, request, { reader, hasTools: setup.constants.tools.length > 0 })
    return session.turn(transcript, constants, values === null ? options : { ...options, values })
  })
  // A turn that is computed is no request.
  if (values !== null) return ask
  return (request) =>
    request.attempts.paid(request, (most) => ask(most === null ? request : { ...request, maxOutputTokens: most }))
}

function turnOptions(
  context: RunContext,
  { signal, generation, maxOutputTokens, attempts, takeSubmitted }: Request,
  { reader, hasTools }: { readonly reader: ReplyDeltas | null; readonly hasTools: boolean },
): TurnOptions {
  const { closing, rules, usage } = context.state
  const resume = takeSubmitted()
  // Models that think would refuse a forced call of `final_result`: for them the notice must be enough.
  const withoutTools = closing !== null && !rules.answersByTool && hasTools
  return {
    signal,
    generation,
    turn: usage.modelRequests + 1,
    attempt: attempts.attempt,
    waiting: ({ reason, ms }) => context.emitLive('request_waiting', { reason, ms }),
    warn: (message) => context.emitLive('warning', { message }),
    submitted: (id) => context.emit('request_submitted', { provider: attempts.provider, id }),
    ...(resume !== null && { resume }),
    ...(withoutTools && { toolChoice: 'none' }),
    ...(maxOutputTokens !== null && { maxOutputTokens }),
    ...(reader !== null && { onDelta: reader.emit, onUsage: reader.count }),
    onRetry: (retry) => {
      context.emitLive('transport_retry', retry)
      if (!retry.withdrawn) return
      context.emitLive('deltas_withdrawn', { attempt: retry.attempt })
      reader?.withdraw()
    },
    onCacheBust: (bust) => void context.emit('cache_bust', bust).catch(ignore),
    onRepair: (repair) => void context.emit('transcript_repaired', repair).catch(ignore),
  }
}

/** The next event that the run waits for reports an append that failed. */
function ignore(): void {
  return undefined
}

function traced({ tracer }: RunContext): readonly Wrap<Request, ModelTurn>[] {
  if (tracer === null) return []
  return [(request, next) => tracer.within({ kind: 'turn', requestKind: request.requestKind }, () => next(request))]
}

function middleware({ extensions, runId, agentName, metadata }: RunContext): readonly Wrap<Request, ModelTurn>[] {
  if (extensions.modelWraps.length === 0) return []
  return [
    (request, next) => {
      const { requestKind, transcript, constants, signal } = request
      const shown = readOnly({ metadata, transcript, constants })
      const call = { runId, agentName, requestKind, signal, ...shown }
      return wrappedTurn(extensions.modelWraps, call, (changed) => next({ ...request, ...partsOf(changed) }))
    },
  ]
}

function partsOf({
  transcript,
  constants,
  signal,
}: Pick<Request, 'transcript' | 'constants' | 'signal'>): Pick<Request, 'transcript' | 'constants' | 'signal'> {
  return { transcript, constants, signal }
}
