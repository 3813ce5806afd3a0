import { textOf } from '#contracts/entry.js'
import type { AnyRunEvent, Projection } from '../projection.js'
import type { Dialect, UiChunk } from './chunk.js'
import { UiMessageFold } from './message-fold.js'
import type { UiMessage } from './message-fold.js'

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
  sentAt: number
  isSent: boolean
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
    return [childPart(this.#add({ runId, agent, callId }))]
  }

  /** An event of a child run. */
  next(event: AnyRunEvent): readonly UiChunk[] {
    if (!event.durable) return []
    const { runId, agentName: agent, parentToolCallId: callId } = event
    const known = this.#children.get(runId)
    const child = known ?? this.#add({ runId, agent, callId })
    const { status } = child
    updateChild(child, event)
    child.isSent = false
    const at = Date.parse(event.at)
    if (known !== undefined && status === child.status && at - child.sentAt < APART_MS) return []
    child.sentAt = at
    return [childPart(child)]
  }

  /** What the client does not have; of all child runs if it may have nothing. */
  rest({ all }: { readonly all: boolean }): readonly UiChunk[] {
    return [...this.#children.values()].filter(({ isSent }) => all || !isSent).map(childPart)
  }

  #add(named: Pick<Child, 'runId' | 'agent' | 'callId'>): Child {
    const child: Child = {
      ...named,
      status: 'running',
      tool: null,
      text: '',
      usage: null,
      sentAt: -Infinity,
      isSent: false,
    }
    this.#children.set(named.runId, child)
    return child
  }
}

/** Messages of one child run are at least so far apart, in ms of its events. */
const MESSAGES_APART_MS = 500

/** A child run as a page shows it that reads its own stream. */
interface ShownChild {
  readonly projection: Projection<UiChunk>
  readonly fold: UiMessageFold
  readonly callId: string
  sentAt: number
}

/** The messages of child runs, each with what is below it. */
export class ChildMessages {
  readonly #dialect: Dialect
  readonly #begin: () => Projection<UiChunk>
  /** The child run that each run is, or is below. */
  readonly #shown = new Map<string, ShownChild>()

  constructor(dialect: Dialect, begin: () => Projection<UiChunk>) {
    this.#dialect = dialect
    this.#begin = begin
  }

  /** The message of a child run of `runId` after an event of it, or of a run below it; null: it need not be sent now. */
  next(event: AnyRunEvent, runId: string): { readonly callId: string; readonly message: UiMessage } | null {
    const child = this.#shown.get(event.runId) ?? this.#add(event, runId)
    if (child === null) return null
    const chunks = child.projection.next(event)
    for (const chunk of chunks) child.fold.add(chunk)
    const at = Date.parse(event.at)
    const { message } = child.fold
    if (chunks.length === 0 || message === null || at - child.sentAt < MESSAGES_APART_MS) return null
    child.sentAt = at
    return { callId: child.callId, message }
  }

  #add({ runId, parentRunId, parentToolCallId }: AnyRunEvent, top: string): ShownChild | null {
    if (parentRunId === null || parentToolCallId === null) return null
    const child: ShownChild | null =
      parentRunId !== top
        ? (this.#shown.get(parentRunId) ?? null)
        : {
            projection: this.#begin(),
            fold: new UiMessageFold(this.#dialect),
            callId: parentToolCallId,
            sentAt: -Infinity,
          }
    if (child !== null) this.#shown.set(runId, child)
    return child
  }
}

function childPart(child: Child): UiChunk {
  child.isSent = true
  const { agent, callId, status, tool, text, usage } = child
  return { type: 'data-run', id: child.runId, data: { agent, callId, status, tool, text, usage } }
}

function updateChild(child: Child, event: AnyRunEvent): void {
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
