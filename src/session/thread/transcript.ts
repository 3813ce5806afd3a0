import { acceptedAnswer, cutOff } from '#core/state/call-endings.js'
import type { LogStore } from '#core/log/log.js'
import type { RunEvent } from '#core/state/events.js'
import type { ToolEntry, TranscriptEntry } from '#contracts/entry.js'
import { findCall, reduceChat } from './reduce-chat.js'
import type { ChatCall, ChatRun, ChatSnapshot } from './reduce-chat.js'
import type { ThreadHistory } from './thread-state.js'
import type { ThreadMessage, ThreadEvent } from './thread-events.js'

type StoredHistory = (RunEvent & { readonly kind: 'run_started' })['history']

/** The transcript of a thread, results of tools included. A fork begins with the conversation that it continues. */
export async function threadTranscript(
  log: LogStore,
  { thread, runs }: ChatSnapshot,
): Promise<readonly TranscriptEntry[]> {
  const entries = runs.flatMap(runEntries)
  if (thread.forkOf === null) return entries
  return [...(await conversationAt(log, await forkPlace(log, thread.threadId))), ...entries]
}

/** The runs that a fork continues, the latest first. None for a thread that is no fork. */
export async function continuedBy(log: LogStore, threadId: string): Promise<readonly string[]> {
  const runIds: string[] = []
  for (let next = await forkPlace(log, threadId); next !== null; next = await runHistory(log, next.runId))
    runIds.push(next.runId)
  return runIds
}

async function runHistory(log: LogStore, runId: string): Promise<ThreadHistory | null> {
  for await (const event of log.read({ kind: 'run', id: runId }))
    return event.kind === 'run_started' && !Array.isArray(event.history) ? historyPlace(event.history) : null
  return null
}

/** The prompt of a run and everything after it. Ids are `<run id>.<entry id>`. */
function runEntries(run: ChatRun): readonly TranscriptEntry[] {
  const { runId, promptId, at, prompt } = run
  const [messageId] = run.messageIds
  return [
    {
      id: `${runId}.${promptId ?? PROMPT}`,
      at,
      role: 'user',
      content: prompt,
      ...(messageId !== undefined && { messageId }),
    },
    ...run.entries.flatMap((entry): TranscriptEntry[] => [
      { ...entry, id: `${runId}.${entry.id}` },
      ...(entry.role === 'assistant' ? toolResults(entry, run) : []),
    ]),
  ]
}

/** The results of a reply's calls, as far as they have ended. */
function toolResults(
  { parts, at }: TranscriptEntry & { readonly role: 'assistant' },
  run: ChatRun,
): readonly ToolEntry[] {
  return parts.flatMap((part): ToolEntry[] => {
    const call = part.type === 'tool_call' ? findCall(run, part.callId) : undefined
    if (call?.output === undefined) return []
    const { callId, toolName: name, status, output: content } = call
    return [{ id: `${run.runId}.${callId}`, at, role: 'tool', callId, name, content, isError: status === 'failed' }]
  })
}

/** Where a fork left its source; null: before the first message. */
async function forkPlace(log: LogStore, threadId: string): Promise<ThreadHistory | null> {
  for await (const event of log.read<ThreadEvent>({ kind: 'thread', id: threadId }))
    return event.kind === 'thread_opened' ? (event.fork?.history ?? null) : null
  return null
}

/** The conversation up to a place, from the logs of the runs, each of which refers to the one before. */
async function conversationAt(log: LogStore, place: ThreadHistory | null): Promise<readonly TranscriptEntry[]> {
  const parts: (readonly TranscriptEntry[])[] = []
  for (let next = place; next !== null;) {
    const { run, history } = await storedRun(log, next.runId)
    if (run !== undefined) parts.unshift(entriesUpTo(runEntries(run), next))
    const isReference = !Array.isArray(history)
    if (!isReference) parts.unshift(history as readonly TranscriptEntry[])
    next = isReference ? historyPlace(history) : null
  }
  return parts.flat()
}

async function storedRun(
  log: LogStore,
  runId: string,
): Promise<{ readonly run: ChatRun | undefined; readonly history: StoredHistory }> {
  let snapshot: ChatSnapshot | undefined
  let history: StoredHistory | undefined
  for await (const event of log.read({ kind: 'run', id: runId })) {
    if (event.kind === 'run_started' && event.runId === runId) history ??= event.history
    snapshot = reduceConversation(snapshot, event)
  }
  return { run: snapshot?.runs.find((each) => each.runId === runId), history: history ?? [] }
}

/** Up to an entry, moved forward to the end of its step. */
function entriesUpTo(entries: readonly TranscriptEntry[], { runId, after }: ThreadHistory): readonly TranscriptEntry[] {
  const index = after === undefined ? -1 : entries.findIndex(({ id }) => id === `${runId}.${after}`)
  if (index === -1) return entries
  const end = entries.findIndex(({ role }, place) => place > index && role !== 'tool')
  return end === -1 ? entries : entries.slice(0, end)
}

function historyPlace(history: StoredHistory): ThreadHistory | null {
  return 'runId' in history ? { runId: history.runId, after: history.entryId } : null
}

/** A stored message, and what the first run of the conversation continues; null if there is no such message. */
export async function storedMessage(
  log: LogStore,
  threadId: string,
  messageId: string,
): Promise<{ readonly item: ThreadMessage; readonly origin: ThreadHistory | null } | null> {
  let item: ThreadMessage | null = null
  let origin: ThreadHistory | null = null
  for await (const event of log.read<ThreadEvent>({ kind: 'thread', id: threadId })) {
    if (event.kind === 'thread_opened') origin = event.fork?.history ?? null
    if (event.kind === 'message_queued' && event.messageId === messageId) item = event
  }
  return item && { item, origin }
}

/**
 * Where a fork leaves the conversation of `runs`; null: before its beginning. `handle`: of an entry (`<run id>.<entry id>`) or
 * of a tool result (`<run id>.<call id>`). Undefined if there is no such entry. A step that has not ended is left out.
 */
export function forkPoint(runs: readonly ChatRun[], handle: string | undefined): ThreadHistory | null | undefined {
  if (handle === undefined) return lastForkPoint(runs)
  const index = runs.findLastIndex(({ runId }) => handle === runId || handle.startsWith(`${runId}.`))
  const run = runs[index]
  if (run === undefined) return undefined
  const earlier = runs.slice(0, index)
  if (handle === run.runId) return lastForkPoint([...earlier, run])
  const name = handle.slice(run.runId.length + 1)
  if (name === (run.promptId ?? PROMPT)) return atEntry(earlier, run, -1)
  const entryIndex = run.entries.findIndex((entry) => entry.id === name || entryCallIds(entry).includes(name))
  return entryIndex === -1 ? undefined : atEntry(earlier, run, entryIndex)
}

/** The end of the handle of a prompt whose run has not started. */
const PROMPT = 'prompt'

function lastForkPoint(runs: readonly ChatRun[]): ThreadHistory | null {
  const run = runs.at(-1)
  if (run === undefined) return null
  return hasEnded(run) ? { runId: run.runId } : atEntry(runs.slice(0, -1), run, run.entries.length - 1)
}

function hasEnded({ status }: ChatRun): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** At the entry of this index (-1: the prompt), or the last one before it whose step has ended. */
function atEntry(earlier: readonly ChatRun[], run: ChatRun, index: number): ThreadHistory | null {
  const { runId, promptId, entries, calls } = run
  const closed = new Set(
    calls.flatMap(({ callId, status }) => (status === 'completed' || status === 'failed' ? [callId] : [])),
  )
  const isClosed = (callId: string): boolean => closed.has(callId)
  const last = entries.slice(0, index + 1).findLast((entry) => hasEnded(run) || entryCallIds(entry).every(isClosed))
  const after = last?.id ?? promptId
  return after === null ? lastForkPoint(earlier) : { runId, after }
}

function entryCallIds(entry: ChatRun['entries'][number]): readonly string[] {
  if (entry.role !== 'assistant') return []
  return entry.parts.flatMap((part) => (part.type === 'tool_call' ? [part.callId] : []))
}

/**
 * The snapshot after `event`. Pure; `undefined` begins. The events are those of a conversation, or those of runs alone: then each
 * `run_started` of a run at the top adds a run. Calls that were cut off have the `output` that the model reads, which would make
 * `reduceChat` of `thinharness/ui/client` too large for pages.
 */
export function reduceConversation(snapshot: ChatSnapshot | undefined, event: ThreadEvent | RunEvent): ChatSnapshot {
  const next = reduceChat(snapshot, event)
  const [before, run] = [snapshot?.runs.at(-1)?.calls, next.runs.at(-1)]
  const isEnd = event.kind === 'run_completed' || event.kind === 'run_failed'
  if (!isEnd || run === undefined || run.calls === before) return next
  const calls = run.calls.map((call, index) => (call === before?.[index] ? call : withOutput(call)))
  return { ...next, runs: next.runs.with(-1, { ...run, calls }) }
}

/** A call that was cut off. */
function withOutput(call: ChatCall): ChatCall {
  const { cutOff: at, hasAsked = false, status } = call
  const end = status === 'completed' ? acceptedAnswer('') : cutOff(at === 'running' || hasAsked, '')
  return { ...call, output: end.output }
}
