import { textOf } from '../../index.js'
import type { AnyRunEvent } from '../projection.js'
import type { UiChunk } from './chunk.js'

/** Chunks of one child run are at least so far apart, in ms of the log. */
const APART_MS = 250

interface Child {
  readonly runId: string
  readonly agent: string | null
  readonly callId: string | null
  status: 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'
  tool: string | null
  text: string
  usage: unknown
  toldAt: number
  isTold: boolean
}

/** The status of child runs, as a data part of each. */
export class ChildStatus {
  readonly #children = new Map<string, Child>()

  /** The name of the agent of a run. */
  agentOf(runId: string | undefined): string | undefined {
    return (runId === undefined ? null : this.#children.get(runId)?.agent) ?? undefined
  }

  /** A child run begins in the background. */
  begin({ runId, agent, callId }: Pick<Child, 'runId' | 'agent' | 'callId'>): readonly UiChunk[] {
    if (this.#children.has(runId)) return []
    return [partOf(this.#add({ runId, agent, callId }))]
  }

  /** An event of a child run. */
  next(event: AnyRunEvent): readonly UiChunk[] {
    if (!event.durable) return []
    const { runId, agentName: agent, parentToolCallId: callId } = event
    const known = this.#children.get(runId)
    const child = known ?? this.#add({ runId, agent, callId })
    const { status } = child
    change(child, event)
    child.isTold = false
    const at = Date.parse(event.at)
    if (known !== undefined && status === child.status && at - child.toldAt < APART_MS) return []
    child.toldAt = at
    return [partOf(child)]
  }

  /** What the client has not been told; of all child runs if it may have been told nothing. */
  rest({ all }: { readonly all: boolean }): readonly UiChunk[] {
    return [...this.#children.values()].filter(({ isTold }) => all || !isTold).map(partOf)
  }

  #add(named: Pick<Child, 'runId' | 'agent' | 'callId'>): Child {
    const child: Child = {
      ...named,
      ...{ status: 'running', tool: null, text: '', usage: null, toldAt: -Infinity, isTold: false },
    }
    this.#children.set(named.runId, child)
    return child
  }
}

function partOf(child: Child): UiChunk {
  child.isTold = true
  const { agent, callId, status, tool, text, usage } = child
  return { type: 'data-run', id: child.runId, data: { agent, callId, status, tool, text, usage } }
}

function change(child: Child, event: AnyRunEvent): void {
  const { kind } = event
  if (kind === 'run_started') child.status = 'running'
  else if (kind === 'tool_call_started') child.tool = event.toolName
  else if (kind === 'tool_call_completed') child.tool = null
  else if (kind === 'model_message') child.text = textOf(event.entry.parts)
  else if (kind === 'run_completed') {
    child.status = event.pending.length > 0 ? 'waiting' : 'completed'
    child.usage = event.usage
  } else if (kind === 'run_failed') {
    child.status = event.stopReason === 'cancelled' ? 'cancelled' : 'failed'
    child.usage = event.usage
  }
}
