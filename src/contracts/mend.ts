import { toolCallsOf } from './entry.js'
import type { AssistantEntry, ToolEntry, TranscriptEntry } from './entry.js'

/** One thing that was wrong in a history, and is not in the mended one. */
export interface TranscriptRepair {
  readonly problem: 'orphan_result' | 'missing_result' | 'duplicate_result' | 'duplicate_call_id'
  readonly callId: string
}

export interface MendedHistory {
  readonly entries: readonly TranscriptEntry[]
  readonly repairs: readonly TranscriptRepair[]
}

/**
 * A history that every provider accepts: each tool call has exactly one result, directly after the reply that made it and in
 * the model's order, and no call id occurs twice. Deterministic; the same array if nothing has to change.
 */
export function mendHistory(entries: readonly TranscriptEntry[]): MendedHistory {
  const repairs: TranscriptRepair[] = []
  const results = new Results(entries)
  const ids = new Set<string>()
  const mended: TranscriptEntry[] = []
  for (const [index, entry] of entries.entries()) {
    if (entry.role === 'user') mended.push(entry)
    if (entry.role !== 'assistant') continue
    const { reply, renamed } = withUniqueIds(entry, ids)
    mended.push(reply)
    for (const [position, { callId, name }] of toolCallsOf(reply.parts).entries()) {
      const given = renamed[position] ?? callId
      if (given !== callId) repairs.push({ problem: 'duplicate_call_id', callId: given })
      const result = results.take(given, index)
      if (result === undefined) repairs.push({ problem: 'missing_result', callId })
      mended.push(result === undefined ? interrupted(reply, callId, name) : { ...result, callId })
    }
  }
  repairs.push(...results.left())
  return isSame(entries, mended) ? { entries, repairs } : { entries: mended, repairs }
}

/** The tool entries of a history, each to be taken once. */
class Results {
  readonly #byCall = new Map<string, { readonly index: number; readonly entry: ToolEntry }[]>()
  readonly #answered = new Set<string>()

  constructor(entries: readonly TranscriptEntry[]) {
    for (const [index, entry] of entries.entries()) {
      if (entry.role !== 'tool') continue
      const list = this.#byCall.get(entry.callId)
      if (list === undefined) this.#byCall.set(entry.callId, [{ index, entry }])
      else list.push({ index, entry })
    }
  }

  /** The first result of this call after the reply at `index`. */
  take(callId: string, index: number): ToolEntry | undefined {
    const list = this.#byCall.get(callId) ?? []
    const at = list.findIndex((result) => result.index > index)
    if (at < 0) return undefined
    this.#answered.add(callId)
    return list.splice(at, 1)[0]?.entry
  }

  left(): TranscriptRepair[] {
    return [...this.#byCall].flatMap(([callId, list]) =>
      list.map(() => ({ problem: this.#answered.has(callId) ? 'duplicate_result' : 'orphan_result', callId }) as const),
    )
  }
}

function withUniqueIds(entry: AssistantEntry, ids: Set<string>): { reply: AssistantEntry; renamed: readonly string[] } {
  const given: string[] = []
  const parts = entry.parts.map((part) => {
    if (part.type !== 'tool_call') return part
    given.push(part.callId)
    let callId = part.callId
    for (let copy = 2; ids.has(callId); copy++) callId = `${part.callId}_${copy}`
    ids.add(callId)
    if (callId === part.callId) return part
    return { ...part, callId }
  })
  const changed = parts.some((part, index) => part !== entry.parts[index])
  return { reply: changed ? { ...entry, parts } : entry, renamed: given }
}

function interrupted({ at, id }: AssistantEntry, callId: string, name: string): ToolEntry {
  const content = JSON.stringify({
    ok: false,
    content: 'There is no result of this call: the conversation was interrupted.',
    metadata: { error_type: 'Interrupted' },
  })
  return { role: 'tool', id: `${id}:${callId}`, at, callId, name, content, isError: true }
}

function isSame(entries: readonly TranscriptEntry[], mended: readonly TranscriptEntry[]): boolean {
  return entries.length === mended.length && entries.every((entry, index) => isUntouched(entry, mended[index]))
}

function isUntouched(entry: TranscriptEntry, mended: TranscriptEntry | undefined): boolean {
  if (entry.role === 'tool' && mended?.role === 'tool') {
    return entry.id === mended.id && entry.callId === mended.callId
  }
  return entry === mended
}
