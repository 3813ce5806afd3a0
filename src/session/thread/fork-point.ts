import type { ChatRun } from './reduce-chat.js'

/** The conversation that a fork begins with: of a run, up to the end of the step of an entry, or to its end. */
export interface ForkPoint {
  readonly runId: string
  readonly after?: string
}

/**
 * Where a fork leaves the conversation of `runs`; null: before its beginning. `handle`: of an entry (`<run id>.<entry id>`) or
 * of a tool result (`<run id>.<call id>`). Undefined if there is no such entry. A step that has not ended is left out.
 */
export function forkPoint(runs: readonly ChatRun[], handle: string | undefined): ForkPoint | null | undefined {
  if (handle === undefined) return endOf(runs)
  const index = runs.findLastIndex(({ runId }) => handle === runId || handle.startsWith(`${runId}.`))
  const run = runs[index]
  if (run === undefined) return undefined
  const earlier = runs.slice(0, index)
  if (handle === run.runId) return endOf([...earlier, run])
  const name = handle.slice(run.runId.length + 1)
  if (name === (run.promptId ?? PROMPT)) return atEntry(earlier, run, -1)
  const found = run.entries.findIndex((entry) => entry.id === name || callIdsOf(entry).includes(name))
  return found === -1 ? undefined : atEntry(earlier, run, found)
}

/** The end of the handle of a prompt whose run has not started. */
export const PROMPT = 'prompt'

function endOf(runs: readonly ChatRun[]): ForkPoint | null {
  const run = runs.at(-1)
  if (run === undefined) return null
  return hasEnded(run) ? { runId: run.runId } : atEntry(runs.slice(0, -1), run, run.entries.length - 1)
}

function hasEnded({ status }: ChatRun): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** At the entry of this index (-1: the prompt), or the last one before it whose step has ended. */
function atEntry(earlier: readonly ChatRun[], run: ChatRun, index: number): ForkPoint | null {
  const { runId, promptId, entries, calls } = run
  const closed = new Set(
    calls.flatMap(({ callId, status }) => (status === 'completed' || status === 'failed' ? [callId] : [])),
  )
  const isClosed = (callId: string): boolean => closed.has(callId)
  const last = entries.slice(0, index + 1).findLast((entry) => hasEnded(run) || callIdsOf(entry).every(isClosed))
  const after = last?.id ?? promptId
  return after === null ? endOf(earlier) : { runId, after }
}

function callIdsOf(entry: ChatRun['entries'][number]): readonly string[] {
  if (entry.role !== 'assistant') return []
  return entry.parts.flatMap((part) => (part.type === 'tool_call' ? [part.callId] : []))
}
