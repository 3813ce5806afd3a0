import { isStretchEnd } from '../projection.js'
import type { AnyRunEvent } from '../projection.js'
import type { RunSummary } from '#core/log/run-summary.js'
import type { LogStore, RunLog } from '#core/log/log.js'

/**
 * The events of child runs for one reader, each once. Those that were stored before the reader came are read from their own
 * logs, after the `tool_call_started` of their call.
 */
export class ChildRuns {
  readonly #log: RunLog | LogStore
  /** Numbers of the last events that the reader has, by run id. */
  readonly #seen = new Map<string, number>()
  /** Child runs of which the reader has seen the present request: deltas of it are complete. */
  readonly #inTurn = new Set<string>()
  readonly #known = new Map<string, readonly RunSummary[]>()

  constructor(log: RunLog | LogStore) {
    this.#log = log
  }

  /** The stored events of child runs that belong before an event of the log. */
  async *before(event: AnyRunEvent): AsyncGenerator<AnyRunEvent> {
    const callId = startsRuns(event)
    if (callId !== null) yield* this.#ofCall(event.runId, callId)
  }

  /** The stored events of child runs of calls that have not ended. */
  async *ofCalls(runId: string, callIds: Iterable<string>): AsyncGenerator<AnyRunEvent> {
    for (const callId of callIds) yield* this.#ofCall(runId, callId)
  }

  /** True if the reader does not have a live event of a child run. */
  isNew({ runId, seq, durable, kind }: AnyRunEvent): boolean {
    const seen = this.#seen.get(runId) ?? 0
    if (!durable) return seq >= seen && this.#inTurn.has(runId)
    if (seq <= seen) return false
    this.#seen.set(runId, seq)
    if (kind === 'model_request_started') this.#inTurn.add(runId)
    else if (kind === 'model_message') this.#inTurn.delete(runId)
    return true
  }

  async *#ofCall(runId: string, callId: string): AsyncGenerator<AnyRunEvent> {
    for (const child of await this.#childrenOf(runId)) {
      if (child.parent?.callId !== callId) continue
      const open = new OpenCalls()
      for await (const event of this.#log.read(
        { kind: 'run', id: child.runId },
        { after: this.#seen.get(child.runId) },
      )) {
        this.#seen.set(child.runId, event.seq)
        this.#inTurn.delete(child.runId)
        open.push(event)
        yield* this.before(event)
        yield event
      }
      yield* this.ofCalls(child.runId, open)
    }
  }

  async #childrenOf(runId: string): Promise<readonly RunSummary[]> {
    const { list } = this.#log as Partial<LogStore>
    if (list === undefined) return []
    const known = this.#known.get(runId)
    if (known !== undefined && known.every(({ endedAt }) => endedAt !== null)) return known
    const children: RunSummary[] = []
    for await (const summary of list.call(this.#log, { parentRunId: runId })) children.unshift(summary as RunSummary)
    this.#known.set(runId, children)
    return children
  }
}

/** The calls of a run that have started and not ended. */
export class OpenCalls implements Iterable<string> {
  readonly #callIds = new Set<string>()

  push(event: AnyRunEvent): void {
    if (event.kind === 'tool_call_started') this.#callIds.add(event.callId)
    else if (event.kind === 'tool_call_completed') this.#callIds.delete(event.callId)
    else if (isStretchEnd(event)) this.#callIds.clear()
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#callIds[Symbol.iterator]()
  }
}

/** The call whose child runs have stored events before this one. */
function startsRuns(event: AnyRunEvent): string | null {
  if (event.kind === 'tool_call_completed' && (event.childUsage !== undefined || event.background !== undefined))
    return event.callId
  if (event.kind === 'background_reported') return event.callId
  if (event.kind !== 'approval_requested' || event.children === undefined) return null
  return event.callId ?? event.background?.split('/')[0] ?? null
}

/** The stored events of a run with those of its child runs, in the order in which a reader who follows the run gets them. */
export async function* storedEvents(
  log: RunLog | LogStore,
  runId: string,
): AsyncGenerator<AnyRunEvent, void, undefined> {
  const children = new ChildRuns(log)
  const open = new OpenCalls()
  for await (const event of log.read({ kind: 'run', id: runId })) {
    yield* children.before(event)
    open.push(event)
    yield event
  }
  yield* children.ofCalls(runId, open)
}
