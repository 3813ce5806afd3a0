import type { LogStore, RunEvent, ToolEntry, TranscriptEntry } from '../../index.js'
import { PROMPT } from './fork-point.js'
import { callOf, reduceChat } from './reduce-chat.js'
import type { ChatRun, ChatSnapshot } from './reduce-chat.js'
import type { ThreadHistory } from './thread-state.js'
import type { ThreadEvent } from './thread-events.js'

type StoredHistory = (RunEvent & { readonly kind: 'run_started' })['history']

/** The transcript of a thread, results of tools included. A fork begins with the conversation that it continues. */
export async function transcriptOf(log: LogStore, { thread, runs }: ChatSnapshot): Promise<readonly TranscriptEntry[]> {
  const own = runs.flatMap(entriesOf)
  if (thread.forkOf === null) return own
  return [...(await conversationAt(log, await forkPlace(log, thread.threadId))), ...own]
}

/** The runs that a fork continues, the latest first. None for a thread that is no fork. */
export async function continuedBy(log: LogStore, threadId: string): Promise<readonly string[]> {
  const runIds: string[] = []
  for (let next = await forkPlace(log, threadId); next !== null; next = await historyOf(log, next.runId))
    runIds.push(next.runId)
  return runIds
}

async function historyOf(log: LogStore, runId: string): Promise<ThreadHistory | null> {
  for await (const event of log.read({ kind: 'run', id: runId }))
    return event.kind === 'run_started' && !Array.isArray(event.history) ? placeOf(event.history) : null
  return null
}

/** The prompt of a run and everything after it. Ids are `<run id>.<entry id>`. */
function entriesOf(run: ChatRun): readonly TranscriptEntry[] {
  const { runId, promptId, at, prompt } = run
  const [messageId] = run.messageIds
  return [
    {
      ...{ id: `${runId}.${promptId ?? PROMPT}`, at, role: 'user', content: prompt },
      ...(messageId !== undefined && { messageId }),
    },
    ...run.entries.flatMap((entry): TranscriptEntry[] => [
      { ...entry, id: `${runId}.${entry.id}` },
      ...(entry.role === 'assistant' ? resultsOf(entry, run) : []),
    ]),
  ]
}

/** The results of a reply's calls, as far as they have ended. */
function resultsOf(
  { parts, at }: TranscriptEntry & { readonly role: 'assistant' },
  run: ChatRun,
): readonly ToolEntry[] {
  return parts.flatMap((part): ToolEntry[] => {
    const call = part.type === 'tool_call' ? callOf(run, part.callId) : undefined
    if (call?.output === undefined) return []
    const { callId, toolName: name, output: content, status } = call
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
    if (run !== undefined) parts.unshift(upTo(entriesOf(run), next))
    const isReference = !Array.isArray(history)
    if (!isReference) parts.unshift(history as readonly TranscriptEntry[])
    next = isReference ? placeOf(history) : null
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
    snapshot = reduceChat(snapshot, event)
  }
  return { run: snapshot?.runs.find((each) => each.runId === runId), history: history ?? [] }
}

/** Up to an entry, moved forward to the end of its step. */
function upTo(entries: readonly TranscriptEntry[], { runId, after }: ThreadHistory): readonly TranscriptEntry[] {
  const index = after === undefined ? -1 : entries.findIndex(({ id }) => id === `${runId}.${after}`)
  if (index === -1) return entries
  const end = entries.findIndex(({ role }, place) => place > index && role !== 'tool')
  return end === -1 ? entries : entries.slice(0, end)
}

function placeOf(history: StoredHistory): ThreadHistory | null {
  return 'runId' in history ? { runId: history.runId, after: history.entryId } : null
}
