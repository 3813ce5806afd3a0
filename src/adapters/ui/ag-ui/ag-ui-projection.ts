import { atOnce } from '#util/wrapped.js'
import { project, toReadable, splitRuns } from '../projection.js'
import type { AnyEventOf, AnyRunEvent, Projection } from '../projection.js'
import { errorSentence } from '../error-sentence.js'
import { AG_UI_VERSION } from './event.js'
import type { AgUiEvent, AgUiOutcome, AgUiUsage } from './event.js'
import { agUiInterrupt } from './interrupts.js'
import { agUiContent } from './message.js'
import type { AgUiMessage } from './message.js'
import type { AgUiOptions } from './options.js'
import { RunEvents } from './run-events.js'
import { Sink } from './sink.js'
import { textOf, contentOf } from '#contracts/entry.js'
import type { AssistantEntry } from '#contracts/entry.js'
import { endKind } from '#contracts/result.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { isClientCall } from '#session/tools/client-tools.js'
import type { JsonValue } from '#util/json.js'

type Ending =
  | { readonly kind: 'paused' | 'completed' }
  | { readonly kind: 'stopped' | 'failed'; readonly failure: AgentFailure; readonly stopReason: string }

/**
 * The events of an AG-UI stream: one stretch of a run, from its beginning or from `after` to the next pause or the end. What is
 * older is in a snapshot of the messages.
 */
export function agUiProjection(
  options: AgUiOptions = {},
): Projection<AgUiEvent> & { readonly messages: readonly AgUiMessage[] } {
  return new AgUiProjection(options)
}

class AgUiProjection implements Projection<AgUiEvent> {
  readonly #options: AgUiOptions
  readonly #after: number
  readonly #sink: Sink
  readonly #subagents: Subagents
  readonly #runs = new Map<string, RunEvents>()
  readonly #usage = new StretchUsage()
  /** Ids of messages and calls of earlier runs. */
  readonly #taken: ReadonlySet<string>
  /** The calls of each run, for the items of child runs that wait. */
  readonly #callIds = new Map<string, Set<string>>()
  #runId = ''
  #threadId = ''
  #seq = 0
  /** When the last event that is left out was stored. */
  #before = ''
  #stretch = 0
  #runUsage: RunUsage | null = null
  #pending: PendingItem[] = []
  #result: JsonValue | null = null
  #ending: Ending | null = null

  constructor(options: AgUiOptions) {
    const { history = [] } = options
    this.#options = options
    this.#after = options.after ?? 0
    this.#sink = new Sink(history)
    this.#subagents = new Subagents(this.#sink, (failure) => this.#errorText(failure))
    this.#taken = new Set(history.flatMap((message) => [message.id, ...toolCallIds(message)]))
  }

  /** The messages of the thread as the client has them. */
  get messages(): readonly AgUiMessage[] {
    return this.#sink.messages
  }

  next(event: AnyRunEvent): readonly AgUiEvent[] {
    if (this.#runId === '') this.#begin(event)
    const isOwn = event.runId === this.#runId
    if (isOwn && event.durable) this.#seq = event.seq
    if (isOwn && event.kind === 'run_started') this.#begins()
    if (isOwn && this.#seq > this.#after) this.#open()
    if (isOwn) this.#own(event)
    else this.#ofChild(event)
    if (isOwn && this.#seq === this.#after && event.durable) {
      this.#before = event.at
      this.#open()
    }
    return this.#sink.take()
  }

  end(): readonly AgUiEvent[] {
    this.#open()
    for (const run of [...this.#runs.values()].reverse()) run.close()
    const ending = this.#ending
    const failure = ending !== null && 'failure' in ending ? ending.failure : null
    this.#subagents.close(this.#pending, failure)
    this.#sendEnd(ending)
    return this.#sink.take()
  }

  join(earlier: AgUiEvent, later: AgUiEvent): AgUiEvent | null {
    if (!('delta' in earlier) || !('delta' in later) || earlier.type !== later.type) return null
    return deltaTarget(earlier) === deltaTarget(later) ? { ...later, delta: earlier.delta + later.delta } : null
  }

  /** The first event names the run, and has its prompt. */
  #begin(event: AnyRunEvent): void {
    this.#runId = event.runId
    this.#threadId = this.#options.threadId ?? event.runId
    if (event.kind !== 'run_started') return
    const conversation = event.metadata['conversation_id']
    if (this.#options.threadId === undefined && typeof conversation === 'string') this.#threadId = conversation
    if (event.prompt === null) return
    const content = agUiContent(contentOf(event.prompt), { runId: event.runId, seq: event.seq }, this.#options)
    this.#sink.addMessage({ id: this.#promptId(event), role: 'user', content })
  }

  #promptId({ runId, metadata, history }: AnyEventOf<'run_started'>): string {
    const given = this.#options.messageIds?.(runId)[0] ?? metadata['message_id']
    if (typeof given === 'string') return given
    const before = Array.isArray(history) ? history.length : Number((history as { entryId: string }).entryId.slice(1))
    return this.#unique(`e${before + 1}`)
  }

  /** A stretch begins. */
  #begins(): void {
    this.#stretch++
    this.#ending = null
  }

  /** The stream begins: with what the client needs of what is older. */
  #open(): void {
    if (this.#sink.isOpen) return
    const reopened = [...this.#runs.values()].map((run) => run.reopen())
    this.#sink.isOpen = true
    const { history = [], held } = this.#options
    const threadId = this.#options.threadId ?? this.#threadId
    this.#sink.send(
      {
        type: 'RUN_STARTED',
        threadId,
        runId: this.#inputId,
        protocolVersion: AG_UI_VERSION,
        metadata: this.#place,
      },
      this.#state('running'),
    )
    if (history.length > 0 || this.#after > 0 || held !== undefined) this.#sink.snapshot(held ?? [])
    this.#subagents.open()
    for (const send of reopened) send()
  }

  #ofChild(event: AnyRunEvent): void {
    const { parentRunId, parentToolCallId } = event
    const toolCallId = parentToolCallId === null ? null : this.#callId(parentRunId ?? this.#runId, parentToolCallId)
    this.#subagents.enter(event, toolCallId)
    const run = this.#runOf(event)
    run.next(event)
    if (event.kind === 'model_message' && event.at > this.#before) this.#usage.add(event.entry)
    if (event.kind !== 'run_completed' && event.kind !== 'run_failed') return
    run.close()
    this.#subagents.leave(event)
  }

  #own(event: AnyRunEvent): void {
    this.#runOf(event).next(event)
    ;(this.#handlers[event.kind] as ((event: AnyRunEvent) => void) | undefined)?.(event)
  }

  readonly #handlers: { readonly [Kind in AnyRunEvent['kind']]?: (event: AnyEventOf<Kind>) => void } = {
    model_message: ({ entry, resolution }) => {
      if (this.#seq > this.#after) this.#usage.add(entry)
      this.#result =
        resolution.kind !== 'final' ? null : resolution.output === undefined ? textOf(entry.parts) : resolution.output
    },
    approval_requested: ({ items }) => {
      const asked = new Set(items.map(({ callId }) => callId))
      this.#pending = [...this.#pending.filter(({ callId }) => !asked.has(callId)), ...items]
    },
    answer_received: ({ callId, answer }) => {
      this.#pending = this.#pending.filter((item) => item.callId !== callId)
      const { by: _by, ...given } = answer
      this.#sink.send({ type: 'CUSTOM', name: 'thinharness.answered', value: given })
    },
    background_reported: ({ childRunId, ok, errorType, content }) =>
      this.#subagents.end(childRunId, ok ? null : { code: errorType ?? 'error', message: content }),
    run_completed: ({ pending, usage }) => {
      this.#runUsage = usage
      this.#pending = this.#pending.filter(({ callId }) => pending.includes(callId))
      this.#ending = { kind: pending.length > 0 ? 'paused' : 'completed' }
      this.#runOf({ runId: this.#runId }).close()
    },
    run_failed: ({ usage, code, message, stopReason, durable }) => {
      // An end that is not stored is none for those who read the log: a run that waited waits.
      if (!durable && this.#ending !== null) return
      this.#runUsage = usage
      this.#pending = []
      // For this protocol it is no failure if somebody stopped the run, or a limit did.
      const isStopped = ['stopped', 'limited'].includes(endKind(stopReason))
      this.#ending = { kind: isStopped ? 'stopped' : 'failed', failure: { code, message }, stopReason }
      this.#runOf({ runId: this.#runId }).close()
    },
  }

  #sendEnd(ending: Ending | null): void {
    const usage = this.#usage.all
    const more = { ...(usage.length > 0 && { usage }), metadata: this.#place }
    if (ending === null || ending.kind === 'failed') {
      const failure = ending?.failure ?? { code: 'interrupted', message: '' }
      const { code } = failure
      this.#sink.send(this.#state(ending === null ? 'interrupted' : 'failed'))
      this.#sink.send({ type: 'RUN_ERROR', message: this.#errorText(failure), code, ...more })
      return
    }
    const status = ending.kind === 'stopped' ? 'cancelled' : ending.kind
    this.#sink.send(this.#state(status))
    if (ending.kind === 'paused') this.#sink.snapshot()
    if (ending.kind === 'stopped' && ending.stopReason !== 'cancelled') {
      const value = { stopReason: ending.stopReason, message: this.#errorText(ending.failure) }
      this.#sink.send({ type: 'CUSTOM', name: 'thinharness.stopped', value })
    }
    const { outcome, result } = this.#outcomeOf(ending)
    const ids = { threadId: this.#threadId, runId: this.#inputId }
    this.#sink.send({ type: 'RUN_FINISHED', ...ids, ...(result !== null && { result }), outcome, ...more })
  }

  #outcomeOf({ kind }: Ending): { readonly outcome: AgUiOutcome; readonly result: JsonValue | null } {
    if (kind === 'completed') return { outcome: { type: 'success' }, result: this.#result }
    if (kind !== 'paused') return { outcome: { type: 'cancelled' }, result: null }
    const asked = this.#pending.filter((item) => !isClientCall(item))
    if (asked.length === 0) {
      const pendingToolCallIds = this.#pending.map((item) => this.#toolCallId(item))
      return { outcome: { type: 'success', pendingToolCallIds }, result: null }
    }
    const interrupts = asked.map((item) => agUiInterrupt(item, this.#toolCallId(item), this.#options))
    return { outcome: { type: 'interrupt', interrupts }, result: null }
  }

  #state(status: string): AgUiEvent {
    const pending = this.#pending.map(({ callId }) => callId)
    const { costUsd, byModel: _byModel, ...counts } = this.#runUsage ?? {}
    const usage = { ...counts, ...(costUsd !== null && costUsd !== undefined && { costUsd }) }
    const known = this.#runUsage === null ? {} : { usage }
    const snapshot = { status, ...known, runId: this.#runId, seq: this.#seq, pending }
    return { type: 'STATE_SNAPSHOT', snapshot }
  }

  get #inputId(): string {
    return this.#options.runId ?? this.#runId
  }

  get #place(): { readonly thinharness: object } {
    return { thinharness: { runId: this.#runId, seq: this.#seq, stretch: this.#stretch } }
  }

  #runOf({ runId }: Pick<AnyRunEvent, 'runId'>): RunEvents {
    const known = this.#runs.get(runId)
    if (known !== undefined) return known
    const run = new RunEvents({
      runId,
      sink: this.#sink,
      options: this.#options,
      owner: runId === this.#runId ? {} : { subagentRunId: runId },
      callId: (callId) => this.#callId(runId, callId),
      messageId: (id) => (runId === this.#runId ? this.#unique(id) : `${runId}:${id}`),
    })
    this.#runs.set(runId, run)
    return run
  }

  /** The id of a call in the thread: child runs have ids of their own. */
  #callId(runId: string, callId: string): string {
    const known = this.#callIds.get(runId) ?? new Set()
    this.#callIds.set(runId, known.add(callId))
    return runId === this.#runId ? this.#unique(callId) : `${runId}:${callId}`
  }

  /** The id of the call of an item, which may be one of a child run. */
  #toolCallId({ callId, path }: PendingItem): string {
    const runId = path.at(-1) ?? this.#runId
    if (runId === this.#runId) return this.#callId(runId, callId)
    const own = [...(this.#callIds.get(runId) ?? [])].find((each) => callId.endsWith(`/${each}`))
    return this.#callId(runId, own ?? callId.slice(callId.lastIndexOf('/') + 1))
  }

  #unique(id: string): string {
    return this.#taken.has(id) ? `${this.#runId}:${id}` : id
  }

  #errorText(error: AgentFailure): string {
    return atOnce('`errorText`', (this.#options.errorText ?? errorSentence)(error))
  }
}

function toolCallIds(message: AgUiMessage): readonly string[] {
  return message.role === 'assistant' ? (message.toolCalls ?? []).map(({ id }) => id) : []
}

function deltaTarget(event: Extract<AgUiEvent, { readonly delta: string }>): string {
  return event.type === 'TOOL_CALL_ARGS' ? event.toolCallId : event.messageId
}

const COUNTS = {
  inputTokens: 'inputTokens',
  outputTokens: 'outputTokens',
  reasoningTokens: 'reasoningTokens',
  cacheReadTokens: 'cachedInputTokens',
  cacheWriteTokens: 'cacheWriteInputTokens',
} as const

type Count = keyof typeof COUNTS

/** The tokens of a stretch, by provider and model. Counts that no reply gave are absent. */
class StretchUsage {
  readonly #models = new Map<string, Record<string, string | number>>()

  add({ provider, model, usage }: Pick<AssistantEntry, 'provider' | 'model' | 'usage'>): void {
    const key = JSON.stringify([provider, model])
    const sums = this.#models.get(key) ?? { provider, model }
    this.#models.set(key, sums)
    for (const count of Object.keys(COUNTS) as Count[]) {
      const given = usage[count]
      if (given !== null) sums[COUNTS[count]] = Number(sums[COUNTS[count]] ?? 0) + given
    }
  }

  get all(): readonly AgUiUsage[] {
    return [...this.#models.values()].map((sums) => {
      const { inputTokens, outputTokens } = sums
      const isWhole = inputTokens !== undefined && outputTokens !== undefined
      return isWhole ? { ...sums, totalTokens: Number(inputTokens) + Number(outputTokens) } : sums
    })
  }
}

export type AgUiMessagesOptions = Omit<AgUiOptions, 'after' | 'deltas' | 'held' | 'runId'>

/**
 * The messages of a thread, as a client of AG-UI has them after reading all of its streams. `events`: those of one run, or of
 * several in order, with those of their child runs.
 *
 * @example
 * const messages = toAgUiMessages(await Array.fromAsync(log.read({ kind: 'run', id: runId })))
 */
export function toAgUiMessages(
  events: Iterable<AnyRunEvent>,
  options: AgUiMessagesOptions = {},
): readonly AgUiMessage[] {
  let history = options.history ?? []
  for (const run of splitRuns(events)) {
    const projection = agUiProjection({ ...options, history })
    for (const event of run) projection.next(event)
    projection.end()
    history = projection.messages
  }
  return history
}

/**
 * The events of a run as AG-UI events: one stretch, up to the run's last pause or end. A source that fails without an end of its
 * run ends in `RUN_ERROR` with the code `interrupted`.
 *
 * @example
 * for await (const event of toAgUi(harness.stream(prompt), { threadId, runId })) response.write(encodeAgUi(event))
 */
export function toAgUi(
  events: AsyncIterable<AnyRunEvent> | Iterable<AnyRunEvent>,
  options: AgUiOptions = {},
): ReadableStream<AgUiEvent> {
  return toReadable(project(untilBroken(events), agUiProjection(options)))
}

/** The events up to the end, or up to an error: the projection says how the run ended. */
export async function* untilBroken<Event>(events: AsyncIterable<Event> | Iterable<Event>): AsyncGenerator<Event> {
  try {
    yield* events
  } catch {
    // Clients do not notice that an end is missing: `end` of the projection writes one.
  }
}

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
class Subagents {
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
