import { textOf } from '../../index.js'
import type { AnyRunEvent } from '../projection.js'
import type { UiChunk } from './chunk.js'

/** Chunks of one child run are at least so far apart, in ms of the log. */
const APART_MS = 250

interface Child {
  readonly agent: string | null
  readonly callId: string | null
  status: 'running' | 'waiting' | 'completed' | 'failed' | 'cancelled'
  tool: string | null
  text: string
  usage: unknown
  toldAt: number
}

/** The status of child runs, as a data part of each. */
export class ChildStatus {
  readonly #children = new Map<string, Child>()

  /** The name of the agent of a run. */
  agentOf(runId: string | undefined): string | undefined {
    return (runId === undefined ? null : this.#children.get(runId)?.agent) ?? undefined
  }

  next(event: AnyRunEvent): readonly UiChunk[] {
    if (!event.durable) return []
    const child = this.#childOf(event)
    const status = child.status
    change(child, event)
    const at = Date.parse(event.at)
    if (status === child.status && event.seq > 1 && at - child.toldAt < APART_MS) return []
    child.toldAt = at
    const { toldAt: _toldAt, ...data } = child
    return [{ type: 'data-run', id: event.runId, data: { ...data } }]
  }

  #childOf({ runId, agentName, parentToolCallId }: AnyRunEvent): Child {
    let child = this.#children.get(runId)
    if (child === undefined) {
      child = {
        ...{ agent: agentName, callId: parentToolCallId, status: 'running' },
        ...{ tool: null, text: '', usage: null, toldAt: -Infinity },
      }
      this.#children.set(runId, child)
    }
    return child
  }
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
