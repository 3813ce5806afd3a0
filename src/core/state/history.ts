import type { TranscriptEntry } from '#contracts/entry.js'
import type { View } from './view.js'

/**
 * A conversation that another run of the same log holds: its transcript as of event `seq`, closed, up to the entry
 * `entryId`, and its view.
 */
export interface HistoryRef {
  readonly runId: string
  readonly seq: number
  readonly entryId: string
}

/** The conversation before a run: by reference if its log holds it, else its entries. */
export type StoredHistory = readonly TranscriptEntry[] | HistoryRef

/** A conversation, and how the model sees it, if not as it is. */
export interface Conversation {
  readonly entries: readonly TranscriptEntry[]
  readonly view?: View
}

export function isReference(history: StoredHistory): history is HistoryRef {
  return !Array.isArray(history)
}

/** The conversation up to an entry; null if it has no such entry. */
export function upToEntry({ entries, view }: Conversation, id: string): Conversation | null {
  const end = entries.findIndex((entry) => entry.id === id)
  if (end === -1) return null
  if (end === entries.length - 1) return { entries, ...(view && { view }) }
  const kept = entries.slice(0, end + 1)
  const ids = new Set(kept.map((entry) => entry.id))
  return { entries: kept, ...(view && { view: upTo(view, ids) }) }
}

function upTo({ prepared, ...view }: View, ids: ReadonlySet<string>): View {
  const isKept = ({ to }: { readonly to: string }): boolean => ids.has(to)
  return { ...view, changes: view.changes.filter(isKept), ...(prepared && { prepared: prepared.filter(isKept) }) }
}

/** The conversation up to an entry and on to the end of its step: a call is followed by its results. */
export function upToStep(conversation: Conversation, id: string): Conversation | null {
  const { entries } = conversation
  let end = entries.findIndex((entry) => entry.id === id)
  while (end !== -1 && entries[end + 1]?.role === 'tool') end += 1
  return upToEntry(conversation, entries[end]?.id ?? '')
}
