import type { HarnessErrorCode } from '../../contracts/errors.js'
import { NO_USAGE, withTokens, withTurn, withUsage } from '../../contracts/result.js'
import type { PendingItem, RunUsage, StopReason } from '../../contracts/result.js'
import type { JsonObject } from '../../util/json.js'
import type { BatchCall } from '../machine/batch-call.js'
import type { DurableEvent } from '../machine/events.js'
import { batchBreach } from '../machine/limits.js'
import type { RunRules } from '../machine/rules.js'
import { askedInBackground } from '../machine/background-state.js'
import type { RunParent, RunState } from '../machine/state.js'
import { unanswered } from '../machine/waiting.js'

/**
 * Where a run stands, seen from outside. `running`: it has not ended and somebody has claimed it; `interrupted`: it has
 * not ended and nobody has, so that it can be recovered; `paused`: it waits for a person.
 */
export type RunStatus = 'running' | 'paused' | 'interrupted' | 'completed' | 'failed' | 'cancelled'

/** A run in short, as its log tells it. */
export interface RunSummary {
  readonly runId: string
  readonly status: RunStatus
  /** How it ended, or why it is paused; null while it goes on. */
  readonly stopReason: StopReason | null
  /** Times of the first and the last event, and of the one that ended it: ISO 8601 in UTC. */
  readonly startedAt: string
  readonly updatedAt: string
  readonly endedAt: string | null
  /** What it was last begun with; null when the log does not say. */
  readonly provider: string | null
  readonly model: string | null
  readonly metadata: JsonObject
  readonly usage: RunUsage
  /** What a person has to answer, that of the runs below it included. */
  readonly pending: readonly PendingItem[]
  /** The run and the call that started it; null at the top. */
  readonly parent: RunParent | null
  readonly error: { readonly code: HarnessErrorCode; readonly message: string } | null
  /** Number of the last event. */
  readonly lastSeq: number
}

/** What a store keeps of a run beside its events: the summary without who holds it, and what the next event needs. */
export interface RunDigest extends Omit<RunSummary, 'status'> {
  readonly phase: 'open' | 'paused' | 'completed' | 'failed' | 'cancelled'
  readonly rules: RunRules | null
  /** Calls of the batch in hand that have not ended, and the retries that count once all have. */
  readonly batch: { readonly open: number; readonly retries: readonly string[] }
}

/** The summary of a run's events so far; null when there are none. `claimed`: somebody has it in hand. */
export async function summarize(
  runId: string,
  events: AsyncIterable<DurableEvent> | Iterable<DurableEvent>,
  claimed: () => boolean,
): Promise<RunSummary | null> {
  let digest: RunDigest | null = null
  for await (const event of events) digest = digestAfter(runId, digest, event)
  return digest === null ? null : summaryOf(digest, claimed())
}

export function summaryOf({ phase, rules: _, batch: __, ...known }: RunDigest, claimed: boolean): RunSummary {
  return { ...known, status: phase === 'open' ? (claimed ? 'running' : 'interrupted') : phase }
}

/** The digest with one event more; `null` before the first. Its usage is that of `RunState`, without the conversation. */
export function digestAfter(runId: string, before: RunDigest | null, event: DurableEvent): RunDigest {
  const known: RunDigest = {
    ...(before ?? digestBefore(runId, event)),
    phase: 'open',
    stopReason: null,
    endedAt: null,
    error: null,
    updatedAt: event.at,
    lastSeq: event.seq,
  }
  return { ...known, ...changes(known, event) }
}

function digestBefore(runId: string, event: DurableEvent): RunDigest {
  const { at, parentRunId, parentToolCallId, agentName } = event
  // A log that has not seen the beginning of the run starts with all that came before.
  const state =
    event.kind === 'run_started' && event.state !== undefined ? (event.state as unknown as RunState) : undefined
  return {
    runId,
    phase: 'open',
    stopReason: null,
    startedAt: state?.startedAt ?? at,
    updatedAt: at,
    endedAt: null,
    provider: null,
    model: null,
    metadata: {},
    usage: state?.usage ?? NO_USAGE,
    pending: state === undefined ? [] : askedIn(state),
    parent:
      parentRunId === null ? null : { runId: parentRunId, callId: parentToolCallId ?? '', agentName: agentName ?? '' },
    error: null,
    lastSeq: 0,
    rules: null,
    batch: state?.phase.at === 'batch' ? batchOf(state.phase.calls) : NO_BATCH,
  }
}

function askedIn({ phase, background }: RunState): readonly PendingItem[] {
  const own = phase.at === 'batch' ? phase.calls.flatMap(unanswered) : []
  return [...own, ...askedInBackground({ ...(background !== undefined && { background }) })]
}

function batchOf(calls: readonly BatchCall[]): RunDigest['batch'] {
  const retries = calls.filter(({ settled }) => settled !== null && !settled.cancelled && settled.retryKind !== null)
  return { open: calls.filter(({ settled }) => settled === null).length, retries: retries.map(({ name }) => name) }
}

const NO_BATCH: RunDigest['batch'] = { open: 0, retries: [] }

type Event<Kind extends DurableEvent['kind']> = DurableEvent & { kind: Kind }

function changes(known: RunDigest, event: DurableEvent): Partial<RunDigest> {
  switch (event.kind) {
    case 'run_started': {
      const { provider, model, metadata, rules } = event
      return { provider, model, metadata, rules }
    }
    case 'model_request_started':
      return changesByRequest(known, event)
    case 'model_message':
      return changesByReply(known, event)
    case 'tool_call_started':
      return { pending: withoutCall(known.pending, event.callId) }
    case 'tool_call_completed':
      return changesByCompletion(known, event)
    case 'background_reported':
      return changesByReport(known, event)
    case 'approval_requested':
      return { pending: [...withoutAsked(known.pending, event), ...event.items] }
    case 'answer_received':
      return { pending: known.pending.filter((item) => item.callId !== event.answer.callId) }
    case 'hook_failed':
      return { usage: { ...known.usage, hookFailures: known.usage.hookFailures + 1 } }
    case 'run_completed':
      return changesByResult(known, event)
    case 'run_failed': {
      const { stopReason, code, message, usage, at: endedAt } = event
      const phase = stopReason === 'cancelled' ? 'cancelled' : 'failed'
      return { phase, stopReason, endedAt, usage, pending: [], error: { code, message } }
    }
    case 'view_changed': {
      const { usage: tokens, cost } = event
      return tokens === null ? {} : { usage: withTokens(known.usage, tokens, cost) }
    }
    case 'extension_recorded':
    case 'call_prepared':
    case 'tool_call_interrupted':
    case 'approval_resumed':
    case 'limit_warning':
    case 'model_retry':
    case 'transcript_repaired':
    case 'cache_bust':
      return {}
  }
}

function changesByRequest({ usage }: RunDigest, event: Event<'model_request_started'>): Partial<RunDigest> {
  const retrying = event.requestKind === 'correction' || event.requestKind === 'output_retry_tool'
  return retrying ? { usage: { ...usage, outputRetries: usage.outputRetries + 1 } } : {}
}

function changesByReply(known: RunDigest, event: Event<'model_message'>): Partial<RunDigest> {
  const { provider, model, usage: tokens } = event.entry
  const usage = withTurn(known.usage, { provider, model, usage: tokens, cost: event.cost })
  if (event.resolution.kind !== 'continue') return { usage, batch: NO_BATCH }
  const open = event.entry.parts.filter((part) => part.type === 'tool_call').length
  const admitted = known.rules === null || batchBreach(known.rules, usage, open) === undefined
  const toolCalls = usage.toolCalls + (admitted ? open : 0)
  return { usage: { ...usage, toolCalls }, batch: { open, retries: [] } }
}

function changesByCompletion(known: RunDigest, event: Event<'tool_call_completed'>): Partial<RunDigest> {
  const { callId, toolName, cancelled, retryKind, childUsage } = event
  const usage = childUsage === undefined ? known.usage : withUsage(known.usage, childUsage)
  const open = known.batch.open - 1
  const retries = retryKind === null || cancelled ? known.batch.retries : [...known.batch.retries, toolName]
  const cancelledToolCalls = usage.cancelledToolCalls + (cancelled ? 1 : 0)
  const toolRetries = open === 0 ? counted(usage.toolRetries, retries) : usage.toolRetries
  return {
    pending: withoutCall(known.pending, callId),
    batch: { open, retries },
    usage: { ...usage, cancelledToolCalls, toolRetries },
  }
}

function changesByReport(known: RunDigest, event: Event<'background_reported'>): Partial<RunDigest> {
  const { runId, childRunId, childUsage } = event
  const pending = known.pending.filter(({ path }) => path[path.indexOf(runId) + 1] !== childRunId)
  return { pending, usage: withUsage(known.usage, childUsage) }
}

function counted(counts: RunUsage['toolRetries'], names: readonly string[]): RunUsage['toolRetries'] {
  const sums = new Map(Object.entries(counts))
  for (const name of names) sums.set(name, (sums.get(name) ?? 0) + 1)
  return names.length === 0 ? counts : Object.fromEntries(sums)
}

/** Without what the call asks itself, and what the runs that it started ask. */
function withoutCall(pending: readonly PendingItem[], callId: string): readonly PendingItem[] {
  if (pending.length === 0) return pending
  return pending.filter((item) => item.callId !== callId && !item.callId.startsWith(`${callId}/`))
}

/** Without what those calls asked before that ask now. */
function withoutAsked(
  pending: readonly PendingItem[],
  { items, callId, background }: Event<'approval_requested'>,
): readonly PendingItem[] {
  if (background !== undefined) return withoutCall(pending, background)
  const callIds = callId === undefined ? items.map((item) => item.callId) : [callId]
  return callIds.reduce(withoutCall, pending)
}

function changesByResult(
  known: RunDigest,
  { stopReason, usage, pending: ids, at }: Event<'run_completed'>,
): Partial<RunDigest> {
  const pending = known.pending.filter(({ callId }) => ids.includes(callId))
  const paused = ids.length > 0
  return { phase: paused ? 'paused' : 'completed', stopReason, pending, usage, endedAt: paused ? null : at }
}
