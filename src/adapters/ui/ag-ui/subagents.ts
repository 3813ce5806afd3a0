import type { PendingItem } from '#contracts/result.js'
import type { AnyRunEvent } from '../projection.js'
import type { AgUiEvent } from './event.js'
import type { Sink } from './sink.js'

interface Subagent {
  readonly runId: string
  readonly name: string
  readonly parentRunId: string | null
  readonly toolCallId: string | null
  status: 'running' | 'waiting' | 'ended'
  /** What was sent of it in this stream. */
  sent: 'nothing' | 'start' | 'end'
}

export interface AgentFailure {
  readonly code: string
  readonly message: string
}

/** The child runs of a stream: each begins and ends once. */
export class Subagents {
  readonly #sink: Sink
  readonly #errorText: (failure: AgentFailure) => string
  readonly #subagents = new Map<string, Subagent>()

  constructor(sink: Sink, errorText: (failure: AgentFailure) => string) {
    this.#sink = sink
    this.#errorText = errorText
  }

  /** An event of a child run comes. `toolCallId`: the call that started it. */
  enter({ runId, agentName, parentRunId }: AnyRunEvent, toolCallId: string | null): void {
    let subagent = this.#subagents.get(runId)
    if (subagent === undefined) {
      subagent = { runId, name: agentName ?? 'agent', parentRunId, toolCallId, status: 'running', sent: 'nothing' }
      this.#subagents.set(runId, subagent)
    }
    if (subagent.status === 'waiting') subagent.status = 'running'
    if (subagent.status === 'running') this.#start(subagent)
  }

  /** A child run pauses or ends. The end of one that waits is sent when the stream ends: it may go on before. */
  leave(event: Extract<AnyRunEvent, { kind: 'run_completed' | 'run_failed' }>): void {
    if (event.kind === 'run_failed') return this.end(event.runId, event)
    if (event.pending.length === 0) return this.end(event.runId, null)
    const subagent = this.#subagents.get(event.runId)
    if (subagent !== undefined) subagent.status = 'waiting'
  }

  end(runId: string, failure: AgentFailure | null): void {
    const subagent = this.#subagents.get(runId)
    if (subagent === undefined) return
    subagent.status = 'ended'
    this.#finish(
      subagent,
      failure === null
        ? { type: 'SUBAGENT_FINISHED', subagentRunId: runId, outcome: { type: 'success' } }
        : { type: 'SUBAGENT_ERROR', subagentRunId: runId, message: this.#errorText(failure), code: failure.code },
    )
  }

  /** A stream begins: with those under way. */
  open(): void {
    for (const subagent of this.#subagents.values()) if (subagent.status === 'running') this.#start(subagent)
  }

  /** The stream ends: those that are open are suspended, or end with the run. */
  close(pending: readonly PendingItem[], failure: AgentFailure | null): void {
    for (const subagent of [...this.#subagents.values()].reverse()) {
      const { runId } = subagent
      if (failure !== null) {
        this.end(runId, failure)
        continue
      }
      const interruptIds = pending.filter(({ path }) => path.includes(runId)).map(({ callId }) => callId)
      const ids = interruptIds.length > 0 ? { interruptIds } : {}
      this.#finish(subagent, {
        type: 'SUBAGENT_FINISHED',
        subagentRunId: runId,
        outcome: { type: 'suspended', ...ids },
      })
    }
  }

  #start(subagent: Subagent): void {
    if (!this.#sink.isOpen || subagent.sent !== 'nothing') return
    const { runId, name, parentRunId, toolCallId } = subagent
    const parent = parentRunId === null ? undefined : this.#subagents.get(parentRunId)
    subagent.sent = 'start'
    this.#sink.send({
      type: 'SUBAGENT_STARTED',
      subagentRunId: runId,
      name,
      ...(parent !== undefined && parent.sent !== 'nothing' && { parentSubagentRunId: parent.runId }),
      ...(toolCallId !== null && { parentToolCallId: toolCallId }),
    })
  }

  #finish(subagent: Subagent, event: AgUiEvent): void {
    if (subagent.sent !== 'start') return
    subagent.sent = 'end'
    this.#sink.send(event)
  }
}
