import { NO_TOKENS } from '#contracts/entry.js'
import { NO_USAGE } from '#contracts/run-usage.js'
import type { DurableEvent } from '#core/state/events.js'
import type { LogRef } from '#core/log/ref.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { RunDigest } from '#core/log/run-summary.js'

const FIRST_MS = Date.UTC(2026, 0, 1)

/** The fields of every event of a run, a second after the one before. */
function eventBase(runId: string, seq: number, startMs: number) {
  const at = new Date(startMs + seq * 1000).toISOString()
  return { runId, seq, at, durable: true, parentRunId: null, parentToolCallId: null, agentName: null } as const
}

const LIMITS = {
  modelRequests: 64,
  toolCalls: null,
  inputTokens: null,
  outputTokens: null,
  timeMs: null,
  costUsd: null,
}

const TOKENS = { ...NO_TOKENS, inputTokens: 20, outputTokens: 10 }
/** The usage of a run whose first reply asks for an approval. */
const ASKED_USAGE: RunUsage = {
  ...{ ...NO_USAGE, modelRequests: 1, toolCalls: 1, ...TOKENS },
  byModel: { 'scripted:scripted-1': { modelRequests: 1, ...TOKENS, costUsd: null } },
}

export interface Beginning {
  /** When the run begins, in ms after the first run of the tests. Default 0. */
  readonly afterMs?: number
  readonly parentRunId?: string
  readonly labels?: Readonly<Record<string, string>>
}

/** A run that waits to be begun: its event, and its digest. */
export function queuedStory(
  runId: string,
  { afterMs = 0, labels = {} }: Beginning = {},
): { readonly ref: LogRef<'run'>; readonly made: readonly DurableEvent[]; readonly digest: RunDigest } {
  const base = eventBase(runId, 1, FIRST_MS + afterMs)
  const metadata = { resourceId: 'user_7' }
  const queued = { version: 3, agent: null, prompt: 'Go.', metadata, labels, by: null } as const
  const digest: RunDigest = {
    ...{ runId, phase: 'queued', stopReason: null, startedAt: base.at, updatedAt: base.at, endedAt: null },
    ...{ provider: null, model: null, metadata, labels, usage: NO_USAGE, pending: [], parent: null, error: null },
    lastSeq: 1,
  }
  return { ref: { kind: 'run', id: runId }, made: [{ kind: 'run_queued', ...base, ...queued }], digest }
}

/** The events of a run, one after the other, and its digest. */
export class Events {
  readonly made: DurableEvent[] = []
  readonly ref: LogRef<'run'>
  readonly #runId: string
  readonly #startMs: number
  #digest: RunDigest

  constructor(runId: string, { afterMs = 0, parentRunId, labels }: Beginning = {}) {
    this.ref = { kind: 'run', id: runId }
    this.#runId = runId
    this.#startMs = FIRST_MS + afterMs
    const parent = parentRunId !== undefined && { parentRunId, parentToolCallId: 'call_1', agentName: 'helper' }
    const started = {
      ...eventBase(runId, 1, this.#startMs),
      ...{ provider: 'scripted', model: 'scripted-1', metadata: { resourceId: 'user_7', tenant: 7 } },
    }
    this.made.push({
      kind: 'run_started',
      ...started,
      ...parent,
      version: 3,
      begun: 'fresh',
      prompt: 'Go.',
      root: '/work',
      maxModelRequests: 64,
      maxToolCalls: null,
      rules: { limits: LIMITS, outputRetries: 1, toolRetries: 1, toolRetryBudgets: {}, answersByTool: false },
      history: [],
      ...(labels !== undefined && { labels }),
    })
    const { at, provider, model, metadata } = started
    this.#digest = {
      ...{ runId, phase: 'open', stopReason: null, startedAt: at, updatedAt: at, endedAt: null },
      ...{ provider, model, metadata, labels: labels ?? {}, usage: NO_USAGE, pending: [] },
      parent: parentRunId === undefined ? null : { runId: parentRunId, callId: 'call_1', agentName: 'helper' },
      ...{ error: null, lastSeq: 1 },
    }
  }

  get seq(): number {
    return this.made.length
  }

  /** The run in short after its last event. */
  get digest(): RunDigest {
    return this.#digest
  }

  /** One more event; only its message matters. */
  note(message: string): DurableEvent {
    const { usage } = this.#digest
    const hookFailures = usage.hookFailures + 1
    return this.#push(
      { kind: 'hook_failed', ...this.#next(), hookEvent: 'run_start', message },
      { usage: { ...usage, hookFailures } },
    )
  }

  /** The model calls a tool that needs an approval, and the run pauses. */
  pauses(): void {
    const { provider, model } = { provider: 'scripted', model: 'scripted-1' }
    const call = { type: 'tool_call', callId: 'call_1', name: 'pay', arguments: '{"eur":5}' } as const
    const requested = { requestKind: 'start', provider, model, entries: [], notices: [] } as const
    const asked = this.#next()
    this.#push({ kind: 'model_request_started', ...asked, ...requested })
    const replied = this.#next()
    this.#push({
      kind: 'model_message',
      ...replied,
      ...{ text: '', toolCalls: [{ id: 'call_1', name: 'pay' }], finalizedOutputMode: null },
      entry: {
        ...{ role: 'assistant', id: 'e2', at: replied.at, parts: [call], provider, model },
        ...{ finishReason: 'tool_calls', usage: TOKENS },
      },
      ...{ resolution: { kind: 'continue' }, nativeFinishReason: null, responseId: null, responseModel: null },
    })
    const items = [pendingCall(this.#runId)]
    this.#push({ kind: 'approval_requested', ...this.#next(), items })
    this.#completes('approval_required', ASKED_USAGE, items)
  }

  completes(): void {
    this.#completes('end_turn', NO_USAGE, [])
  }

  fails(stopReason: 'cancelled' | 'provider_error'): void {
    const next = this.#next()
    const message = 'It failed.'
    const failed = { code: stopReason, errorType: 'HarnessError', message, stopReason, usage: NO_USAGE }
    const phase = stopReason === 'cancelled' ? 'cancelled' : 'failed'
    this.#push(
      { kind: 'run_failed', ...next, ...failed },
      { phase, stopReason, endedAt: next.at, error: { code: stopReason, message } },
    )
  }

  #completes(stopReason: 'approval_required' | 'end_turn', usage: RunUsage, pending: readonly PendingItem[]): void {
    const next = this.#next()
    const ids = pending.map(({ callId }) => callId)
    const event: DurableEvent = { kind: 'run_completed', ...next, stopReason, usage, pending: ids }
    const isPause = pending.length > 0
    const end = { phase: isPause ? 'paused' : 'completed', endedAt: isPause ? null : next.at } as const
    this.#push(event, { ...end, stopReason, usage, pending })
  }

  #next(): ReturnType<typeof eventBase> {
    return eventBase(this.#runId, this.seq + 1, this.#startMs)
  }

  #push(event: DurableEvent, changes: Partial<RunDigest> = {}): DurableEvent {
    this.made.push(event)
    this.#digest = { ...this.#digest, ...changes, updatedAt: event.at, lastSeq: event.seq }
    return event
  }
}

function pendingCall(runId: string): PendingItem {
  return { kind: 'approval', callId: 'call_1', toolName: 'pay', arguments: '{"eur":5}', path: [runId] }
}

/** A run of so many events that has not ended. */
export function runStory(runId: string, length: number): DurableEvent[] {
  const events = new Events(runId)
  while (events.seq < length) events.note(`Event ${events.seq + 1}.`)
  return events.made
}

/** An event of a thread. */
export interface StoryThreadEvent {
  readonly kind: 'message_queued'
  readonly seq: number
  readonly at: string
  readonly text: string
}

/** So many events of a thread, which begins `afterMs` after the first run of the tests. */
export function threadStory(length: number, afterMs = 0): StoryThreadEvent[] {
  return Array.from({ length }, (_, index) => {
    const at = new Date(FIRST_MS + afterMs + index * 1000).toISOString()
    return { kind: 'message_queued', seq: index + 1, at, text: `Message ${index + 1}.` }
  })
}
