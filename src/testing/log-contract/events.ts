import type { DurableEvent, PendingItem, RunUsage } from '../../index.js'

const FIRST_MS = Date.UTC(2026, 0, 1)

/** What every event of a run carries, a second after the one before. */
function base(runId: string, seq: number, startMs: number) {
  const at = new Date(startMs + seq * 1000).toISOString()
  return { runId, seq, at, durable: true, parentRunId: null, parentToolCallId: null, agentName: null } as const
}

export interface Beginning {
  /** When the run begins, in ms behind the first run of the tests. Default 0. */
  readonly afterMs?: number
  readonly parentRunId?: string
}

/** The events of a run, made one behind the other. */
export class Events {
  readonly made: DurableEvent[] = []
  readonly #runId: string
  readonly #startMs: number

  constructor(runId: string, { afterMs = 0, parentRunId }: Beginning = {}) {
    this.#runId = runId
    this.#startMs = FIRST_MS + afterMs
    const parent = parentRunId !== undefined && { parentRunId, parentToolCallId: 'call_1', agentName: 'helper' }
    const limits = {
      modelRequests: 64,
      toolCalls: null,
      inputTokens: null,
      outputTokens: null,
      timeMs: null,
      costUsd: null,
    }
    this.made.push({
      kind: 'run_started',
      ...base(runId, 1, this.#startMs),
      ...parent,
      version: 2,
      begun: 'fresh',
      prompt: 'Go.',
      root: '/work',
      provider: 'scripted',
      model: 'scripted-1',
      maxModelRequests: 64,
      maxToolCalls: null,
      metadata: { tenant: 7 },
      rules: { limits, outputRetries: 1, toolRetries: 1, toolRetryBudgets: {}, answersByTool: false },
      history: [],
    })
  }

  get seq(): number {
    return this.made.length
  }

  /** One event more, of which only the text matters. */
  note(message: string): DurableEvent {
    return this.#push({ kind: 'hook_failed', ...this.#next(), hookEvent: 'run_start', message })
  }

  completes(usage: RunUsage, pending: readonly PendingItem[] = []): DurableEvent {
    const stopReason = pending.length > 0 ? 'approval_required' : 'end_turn'
    if (pending.length > 0) this.#push({ kind: 'approval_requested', ...this.#next(), items: pending })
    const ids = pending.map(({ callId }) => callId)
    return this.#push({ kind: 'run_completed', ...this.#next(), stopReason, usage, pending: ids })
  }

  fails(stopReason: 'cancelled' | 'provider_error', usage: RunUsage): DurableEvent {
    const told = { code: stopReason, errorType: 'HarnessError', message: 'It failed.', stopReason, usage }
    return this.#push({ kind: 'run_failed', ...this.#next(), ...told })
  }

  #next(): ReturnType<typeof base> {
    return base(this.#runId, this.seq + 1, this.#startMs)
  }

  #push(event: DurableEvent): DurableEvent {
    this.made.push(event)
    return event
  }
}
