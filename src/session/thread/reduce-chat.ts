import { TASKS, readTasks } from '../tools/task-list.js'
import type { Task } from '../tools/task-list.js'
import type { QueueItem, ThreadEvent } from './thread-events.js'
import { isHeld } from './queue.js'
import { applyThread, openedThread } from './thread-state.js'
import type { ThreadState } from './thread-state.js'
import type { AssistantEntry, UserEntry, ContentPart } from '#contracts/entry.js'
import type { HarnessErrorCode } from '#contracts/errors.js'
import type { ModelRef } from '#contracts/model-reference.js'
import type { PendingItem } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { Answer } from '#core/state/answers.js'
import type { RunEvent } from '#core/state/events.js'
import type { JsonValue } from '#util/json.js'

/** A tool call of a run. */
export interface ChatCall {
  readonly callId: string
  readonly toolName: string
  readonly status: 'requested' | 'waiting' | 'running' | 'completed' | 'failed'
  /** JSON text, as the model wrote it. */
  readonly arguments: string
  /** It had begun when it asked people. */
  readonly hasAsked?: boolean
  /** The envelope's JSON text, once it has ended; on a page, absent for a call that was cut off. */
  readonly output?: string
  /** What it was when its run ended without it. */
  readonly cutOff?: 'requested' | 'waiting' | 'running'
  /** The value that the tool returned; absent if the text is the value. */
  readonly value?: JsonValue
  /** The last progress that it reported. */
  readonly progress?: JsonValue
  readonly durationMs?: number
  /** The answers of people, in order. */
  readonly answers?: readonly ChatCallAnswer[]
}

/** An answer to an item of a call. */
export interface ChatCallAnswer {
  readonly answer: Answer
  /** The person, or `policy`, `responder` or `expiry`; null if unknown. */
  readonly by: string | null
  /** ISO 8601 in UTC. */
  readonly at: string
}

/** A reply that is arriving. */
export interface OpenReply {
  readonly text: string
  readonly reasoning: string
  /** Argument texts so far, by call id. */
  readonly inputs: Readonly<Record<string, { readonly toolName: string | null; readonly text: string }>>
}

/** One run of a conversation, as pages show it. */
export interface ChatRun {
  readonly runId: string
  readonly mode: string
  readonly model: ModelRef | null
  /** The messages that it began with; steering messages are entries with their own `messageId`. */
  readonly messageIds: readonly string[]
  /** When it was begun: ISO 8601 in UTC. */
  readonly at: string
  readonly status: 'begun' | 'running' | 'paused' | 'completed' | 'failed' | 'cancelled'
  readonly prompt: readonly ContentPart[]
  /** The id of the prompt's entry; null before the run has started, and on a page, whose events have no history. */
  readonly promptId: string | null
  /** Everything said after the prompt, without tool results: those are in `calls`. */
  readonly entries: readonly (UserEntry | AssistantEntry)[]
  /** In the order in which the model requested them. */
  readonly calls: readonly ChatCall[]
  readonly open: OpenReply | null
  readonly usage: RunUsage | null
  readonly error: { readonly code: HarnessErrorCode; readonly message: string } | null
  /** Number of its last event. */
  readonly seq: number
}

/** A conversation as pages show it: the fold of `chat.events()`. Plain JSON; unchanged members keep their identity. */
export interface ChatSnapshot {
  readonly thread: ThreadState
  /** The phase as far as the events show it: whether a process executes the run is not among them. */
  readonly phase: 'idle' | 'running' | 'waiting'
  readonly queue: readonly QueueItem[]
  readonly held: boolean
  /** Items that people have to answer. */
  readonly pending: readonly PendingItem[]
  /** The runs, oldest first. */
  readonly runs: readonly ChatRun[]
  /** The list of the tools of `tasks()`. */
  readonly tasks: readonly Task[]
}

const NOTHING_OPEN: OpenReply = { text: '', reasoning: '', inputs: {} }

/**
 * The snapshot after `event`. Pure, and without dependencies; `undefined` begins. The events are those of a conversation, or those
 * of runs alone: then each `run_started` of a run at the top adds a run.
 */
export function reduceChat(snapshot: ChatSnapshot | undefined, event: ThreadEvent | RunEvent): ChatSnapshot {
  if (!('threadId' in event)) return reduceRun(snapshot ?? withoutThread(event), event)
  const thread = applyThread(snapshot?.thread, event)
  const runs = snapshot?.runs ?? []
  const [queue, tasks] = [waitingMessages(thread, snapshot), snapshot?.tasks ?? []]
  const held = isHeld(thread)
  if (event.kind === 'run_begun') {
    const run = newRun(event, thread.run?.items.flatMap(({ content }) => content) ?? [])
    const begun = { thread, phase: 'running', queue, held, pending: [] } as const
    const { replaces } = event
    if (replaces === undefined) return { ...begun, runs: runs.concat(run), tasks }
    // The run stores the tasks with which it begins.
    return { ...begun, runs: runs.filter(({ runId }) => !replaces.runIds.includes(runId)).concat(run), tasks: [] }
  }
  const isTakenBack = thread.run === null && runs.at(-1)?.status === 'begun'
  const kept = isTakenBack ? runs.slice(0, -1) : runs
  return {
    thread,
    phase: isTakenBack ? 'idle' : (snapshot?.phase ?? 'idle'),
    queue,
    held,
    pending: snapshot?.pending ?? [],
    runs: event.kind === 'mode_handed_over' ? handedOver(runs, thread) : kept,
    tasks,
  }
}

function newRun(
  { runId, mode, model, messageIds, at }: Pick<ChatRun, 'runId' | 'mode' | 'model' | 'messageIds' | 'at'>,
  prompt: ChatRun['prompt'],
): ChatRun {
  const entries: ChatRun['entries'] = []
  // Members are named: to spread them takes ten times as long.
  return {
    runId,
    mode,
    model,
    messageIds,
    at,
    prompt,
    status: 'begun',
    promptId: null,
    entries,
    calls: [],
    open: null,
    usage: null,
    error: null,
    seq: 0,
  }
}

/** The latest run, under another mode. */
function handedOver(runs: readonly ChatRun[], { run }: ThreadState): readonly ChatRun[] {
  const last = runs.at(-1)
  return last === undefined || run === null ? runs : runs.with(-1, { ...last, mode: run.mode, model: run.model })
}

/** The snapshot before the first run of a conversation that has no thread. */
function withoutThread(event: RunEvent): ChatSnapshot {
  if (event.kind !== 'run_started') throw new RangeError(`Expected \`thread_opened\` first, got \`${event.kind}\`.`)
  const { runId, at, metadata } = event
  const { conversation_id: conversation, resourceId } = metadata
  const threadId = typeof conversation === 'string' ? conversation : runId
  const thread = openedThread({
    threadId,
    seq: 0,
    at,
    resourceId: typeof resourceId === 'string' ? resourceId : null,
    title: '',
    tags: [],
    metadata: {},
    mode: '',
  })
  return { thread, phase: 'idle', queue: [], held: false, pending: [], runs: [], tasks: [] }
}

function reduceRun(before: ChatSnapshot, event: RunEvent): ChatSnapshot {
  const snapshot = withRun(before, event)
  const last = snapshot.runs.at(-1)
  // Events of other runs belong to calls of this one.
  if (last === undefined || last.runId !== event.runId) return snapshot
  // The end of a stretch that was refused before it began.
  if (!event.durable && event.seq < last.seq) return snapshot
  const change = changedRun(last, event)
  if (change === null && !event.durable) return snapshot
  const run = { ...last, ...change, seq: event.durable ? event.seq : last.seq }
  const runs = snapshot.runs.with(-1, run)
  const next = { ...snapshot, runs, ...changedPhase(snapshot, event) }
  return next.phase === snapshot.phase ? next : { ...next, queue: waitingMessages(snapshot.thread, next) }
}

/** With the run that begins, in a conversation without a thread. */
function withRun(snapshot: ChatSnapshot, event: RunEvent): ChatSnapshot {
  const { thread, runs } = snapshot
  const isKnown = event.kind !== 'run_started' || thread.seq > 0 || runs.some(({ runId }) => runId === event.runId)
  if (isKnown || event.parentRunId !== null) return snapshot
  const { runId, prompt, at, provider, model } = event
  const parts = typeof prompt === 'string' ? [{ type: 'text', text: prompt } as const] : (prompt ?? [])
  const run = newRun({ runId, mode: '', model: `${provider}:${model}`, messageIds: [], at }, parts)
  return { ...snapshot, runs: [...runs, run] }
}

/** The queue, after the messages that the latest run has ended without reading. */
function waitingMessages(
  { queue, steering }: ThreadState,
  chat: Pick<ChatSnapshot, 'phase' | 'runs'> | undefined,
): readonly QueueItem[] {
  if (steering.length === 0 || chat?.phase !== 'idle') return queue
  const read = readBy(chat.runs.at(-1))
  const unread = steering.filter(({ messageId }) => !read.has(messageId))
  return [...unread, ...queue]
}

/** Ids of the steering messages that a run has read. */
export function readBy(run: ChatRun | undefined): ReadonlySet<string> {
  return new Set(run?.entries.flatMap((entry) => (entry.role === 'user' ? (entry.messageId ?? []) : [])))
}

/** A call of a run by its id; undefined if it has none of that id. */
export function findCall(run: ChatRun | undefined, callId: string): ChatCall | undefined {
  return run?.calls.findLast((call) => call.callId === callId)
}

/** The text of a run's last reply. */
export function textOfRun(run: ChatRun | undefined): string {
  const last = run?.entries.findLast((entry) => entry.role === 'assistant')
  return last?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? ''
}

function historyPromptId({ history }: Partial<RunEvent & { readonly kind: 'run_started' }>): string | null {
  if (history === undefined) return null
  // As `entryId` counts; that module would bring the core to the page.
  return `e${('entryId' in history ? Number(history.entryId.slice(1)) : history.length) + 1}`
}

function changedPhase(
  { pending }: ChatSnapshot,
  event: RunEvent,
): Partial<Pick<ChatSnapshot, 'phase' | 'pending' | 'tasks'>> {
  const { kind } = event
  if (kind === 'extension_recorded') return event.extension === TASKS ? { tasks: readTasks(event.value) } : {}
  if (kind === 'run_started') return { phase: 'running' }
  if (kind === 'approval_requested') {
    // Items of a child run that waits again are requested again.
    const others = pending.filter(({ callId }) => !event.items.some((item) => item.callId === callId))
    return { pending: [...others, ...event.items] }
  }
  if (kind === 'answer_received') return { pending: pending.filter(({ callId }) => callId !== event.callId) }
  // After a crash, a child run that had asked may have ended without its answer.
  if (kind === 'run_completed' && event.pending.length > 0)
    return { phase: 'waiting', pending: pending.filter(({ callId }) => event.pending.includes(callId)) }
  return kind === 'run_completed' || kind === 'run_failed' ? { phase: 'idle', pending: [] } : {}
}

type Change<Kind extends RunEvent['kind']> = (
  run: ChatRun,
  event: Extract<RunEvent, { readonly kind: Kind }>,
) => Partial<ChatRun>

const CHANGES: { readonly [Kind in RunEvent['kind']]?: Change<Kind> } = {
  run_started: ({ promptId }, event) => ({
    status: 'running',
    error: null,
    promptId: promptId ?? historyPromptId(event),
  }),
  model_request_started(run, { entries }) {
    const said = entries.filter((entry): entry is UserEntry => entry.role === 'user')
    return { entries: said.length === 0 ? run.entries : [...run.entries, ...said], open: NOTHING_OPEN }
  },
  model_message: (run, { entry, blocked }) => ({
    entries: blocked ? run.entries : [...run.entries, entry],
    calls: requestedCalls(run, entry),
    open: null,
  }),
  approval_requested: (run, { items }) => ({
    calls: items.reduce(
      (calls, { callId, kind }) =>
        withCall(calls, callId, { status: 'waiting', ...(kind !== 'approval' && { hasAsked: true }) }),
      run.calls,
    ),
  }),
  answer_received: (run, { callId, answer, at }) => ({
    calls: withCall(run.calls, callId, {
      answers: [...(findCall(run, callId)?.answers ?? []), { answer, by: answer.by ?? null, at }],
      ...('editedArguments' in answer &&
        answer.editedArguments && { arguments: JSON.stringify(answer.editedArguments) }),
    }),
  }),
  call_prepared: (run, { callId, arguments: text }) =>
    text === undefined ? {} : { calls: withCall(run.calls, callId, { arguments: text }) },
  tool_call_started: (run, { callId }) => ({ calls: withCall(run.calls, callId, { status: 'running' }) }),
  tool_call_completed: (run, event) => ({ calls: withCall(run.calls, event.callId, completedCall(event)) }),
  tool_progress: (run, { callId, update }) => ({ calls: withCall(run.calls, callId, { progress: update }) }),
  run_completed: (run, { pending, usage }) => ({
    status: pending.length > 0 ? 'paused' : 'completed',
    calls: pending.length > 0 ? run.calls : endedCalls(run, true),
    usage,
    open: null,
  }),
  run_failed: (run, { code, message, usage, stopReason }) => ({
    status: stopReason === 'cancelled' ? 'cancelled' : 'failed',
    calls: endedCalls(run, false),
    usage,
    error: { code, message },
    open: null,
  }),
  text_delta: ({ open }, { text }) => ({ open: { ...(open ?? NOTHING_OPEN), text: (open?.text ?? '') + text } }),
  reasoning_delta: ({ open }, { text }) => ({
    open: { ...(open ?? NOTHING_OPEN), reasoning: (open?.reasoning ?? '') + text },
  }),
  tool_input_delta({ open }, { callId, toolName, text }) {
    const { inputs } = open ?? NOTHING_OPEN
    const before = inputs[callId]
    const input = { toolName: toolName ?? before?.toolName ?? null, text: (before?.text ?? '') + text }
    return { open: { ...(open ?? NOTHING_OPEN), inputs: { ...inputs, [callId]: input } } }
  },
  deltas_withdrawn: () => ({ open: NOTHING_OPEN }),
}

/** The calls of a run that has ended: each has an end. `answers`: a call of `final_result` has given the answer. */
function endedCalls({ calls }: ChatRun, answers: boolean): ChatRun['calls'] {
  return calls.map((call) => {
    const { status, toolName } = call
    if (status === 'completed' || status === 'failed') return call
    return { ...call, status: answers && toolName === 'final_result' ? 'completed' : 'failed', cutOff: status }
  })
}

/** The changes of a run by an event; null if it shows nothing of it. */
function changedRun(run: ChatRun, event: RunEvent): Partial<ChatRun> | null {
  const change = CHANGES[event.kind] as Change<RunEvent['kind']> | undefined
  return change?.(run, event) ?? null
}

function requestedCalls({ calls }: ChatRun, { parts }: AssistantEntry): ChatRun['calls'] {
  const requested = parts.flatMap((part): ChatCall[] =>
    part.type === 'tool_call'
      ? [{ callId: part.callId, toolName: part.name, status: 'requested', arguments: part.arguments }]
      : [],
  )
  return requested.length === 0 ? calls : [...calls, ...requested]
}

function withCall(calls: ChatRun['calls'], callId: string, change: Partial<ChatCall>): ChatRun['calls'] {
  // Events are mostly about the latest calls. A copied list is a copied block of memory, which an object is not.
  const index = calls.findLastIndex((each) => each.callId === callId)
  const call = calls[index]
  return call ? calls.with(index, { ...call, ...change }) : calls
}

function completedCall(event: RunEvent & { readonly kind: 'tool_call_completed' }): Partial<ChatCall> {
  const { ok, output, value, durationMs } = event
  return { status: ok ? 'completed' : 'failed', output, durationMs, ...(value !== undefined && { value }) }
}
