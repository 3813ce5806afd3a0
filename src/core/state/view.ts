import { deepFreeze } from '#util/json.js'
import { sourcesOf } from '#contracts/entry.js'
import type { ContentPart, ContentSource, NativePart, TranscriptEntry } from '#contracts/entry.js'

/** A range of entries that the model gets in another form. The entries themselves stay in the transcript. */
export interface ViewChange {
  /** Ids of the first and the last entry of the range; both belong to it. */
  readonly from: string
  readonly to: string
  readonly shown: string | readonly ContentPart[]
  /** A provider's own form of the first part of `shown`, which this provider gets in its place. */
  readonly native?: NativePart
  /** Sources of all entries of the range. */
  readonly sources: readonly ContentSource[]
}

/** A text that a policy has prepared for a range: it is not shown yet. */
export interface PreparedText {
  /** Name of the extension whose policy it is. */
  readonly policy: string
  /** Ids of the first and the last entry of the range; both belong to it. */
  readonly from: string
  readonly to: string
  readonly shown: string
}

/** The changes that hold, in the order of the transcript and disjoint, and how often they have changed. */
export interface View {
  readonly generation: number
  /** Length of the transcript at the last change. */
  readonly changedAt: number
  readonly changes: readonly ViewChange[]
  /** Texts that policies have prepared and not used yet, in the order of the transcript. */
  readonly prepared?: readonly PreparedText[]
}

/** The part of a run's state that determines its view. */
export interface Viewed {
  readonly transcript: readonly TranscriptEntry[]
  readonly view?: View
}

const NO_VIEW: View = { generation: 0, changedAt: 0, changes: [] }

/** The entries as the model gets them. */
export interface ShownTranscript {
  readonly entries: readonly TranscriptEntry[]
  /** Under one generation the entries only grow. */
  readonly generation: number
}

interface Growing {
  readonly generation: number
  readonly entries: TranscriptEntry[]
  /** How many entries of the transcript it covers. */
  covered: number
}

/** Views grow with their transcript: only new entries are added, and only a change builds the list again. */
const growing = new WeakMap<Viewed, Growing>()

/** The view of a run: without changes, the transcript itself. */
export function viewOf(state: Viewed): ShownTranscript {
  const { transcript, view = NO_VIEW } = state
  if (view.changes.length === 0) return { entries: transcript, generation: view.generation }
  const known = growing.get(state)
  const shown = known?.generation === view.generation ? known : changed(transcript, view)
  growing.set(state, shown)
  for (const entry of transcript.slice(shown.covered)) shown.entries.push(entry)
  shown.covered = transcript.length
  return shown
}

function changed(transcript: readonly TranscriptEntry[], { generation, changes }: View): Growing {
  const entries: TranscriptEntry[] = []
  let next = 0
  for (const change of changes) {
    const range = rangeOf(transcript, change)
    entries.push(...transcript.slice(next, range.first), deepFreeze(entryOf(transcript, range, change)))
    next = range.last + 1
  }
  return { generation, entries, covered: next }
}

/** A single entry keeps its place among the others; a longer range becomes a message of the harness. */
function entryOf(transcript: readonly TranscriptEntry[], { first, last }: Range, change: ViewChange): TranscriptEntry {
  const { from, to, shown, native } = change
  const own = native && { native }
  const [begin, end] = [transcript[first], transcript[last]]
  const content = typeof shown === 'string' ? [{ type: 'text' as const, text: shown }] : shown
  if (first === last && begin?.role === 'tool') return { ...begin, content: shown }
  if (first === last && begin?.role === 'user') return { ...begin, content, ...own }
  return { id: from === to ? from : `${from}-${to}`, at: end?.at ?? '', role: 'user', content, notice: true, ...own }
}

/** The view with a text for later. */
export function withPrepared({ view = NO_VIEW }: Viewed, text: PreparedText): View {
  return { ...view, prepared: [...(view.prepared ?? []), text] }
}

/** The view after further changes of a policy; each is disjoint from the earlier ones or contains them. */
export function withChanges(
  { transcript, view = NO_VIEW }: Viewed,
  changes: readonly ViewChange[],
  policy: string,
): View {
  const added = changes.map((change) => ({ change, ...rangeOf(transcript, change) }))
  const kept = view.changes
    .map((change) => ({ change, ...rangeOf(transcript, change) }))
    .filter((old) => !added.some((range) => contains(range, old)))
  const all = [...kept, ...added].sort((one, other) => one.first - other.first)
  // A change that covers the end of a prepared text has used it.
  const prepared = view.prepared?.filter((text) => {
    const last = indexOf(transcript, text.to)
    return text.policy !== policy || !added.some((range) => contains(range, { first: last, last }))
  })
  const next = {
    generation: view.generation + 1,
    changedAt: transcript.length,
    changes: all.map(({ change }) => change),
  }
  return prepared === undefined || prepared.length === 0 ? next : { ...next, prepared }
}

/** True if one of the changes hides the entry. */
export function hides(transcript: readonly TranscriptEntry[], changes: readonly ViewChange[], id: string): boolean {
  const index = indexOf(transcript, id)
  return changes.some((change) => contains(rangeOf(transcript, change), { first: index, last: index }))
}

/**
 * Changes as they are recorded: each covers whole steps, a reply together with the results of its calls, and whole earlier
 * changes; of a single tool result only the content is changed. One within an earlier change has no effect and is left out.
 * Throws a `RangeError` for a range that is none, and for two that overlap.
 */
export function wholeChanges(
  { transcript, view = NO_VIEW }: Viewed,
  proposed: readonly (Omit<ViewChange, 'sources' | 'native'> & { readonly native?: NativePart | undefined })[],
): readonly ViewChange[] {
  const earlier = view.changes.map((change) => rangeOf(transcript, change))
  const ranges = proposed
    .map(({ from, to, shown, native }) => {
      if (shown.length === 0)
        throw new RangeError(`Expected \`shown\` of the range \`${from}\` to \`${to}\` not to be empty.`)
      return { shown, native, given: rangeOf(transcript, { from, to }) }
    })
    .filter(({ given }) => !earlier.some((old) => contains(old, given) && !contains(given, old)))
    .map(({ shown, native, given }) => ({ shown, native, ...widened(transcript, given, earlier) }))
    .sort((one, other) => one.first - other.first)
  return ranges.map(({ shown, native, first, last }, index) => {
    const before = ranges[index - 1]
    const [from, to] = [transcript[first]?.id ?? '', transcript[last]?.id ?? '']
    if (before !== undefined && before.last >= first) throw new RangeError(`Two ranges overlap at entry \`${from}\`.`)
    const sources = sourcesOf(transcript.slice(first, last + 1))
    return { from, to, shown, ...(native && { native }), sources }
  })
}

/** Indexes in the transcript; both belong to it. */
interface Range {
  readonly first: number
  readonly last: number
}

function widened(transcript: readonly TranscriptEntry[], given: Range, earlier: readonly Range[]): Range {
  let { first, last } = given
  if (first === last && transcript[first]?.role === 'tool') return given
  for (;;) {
    while (first > 0 && transcript[first]?.role === 'tool') first -= 1
    while (transcript[last + 1]?.role === 'tool') last += 1
    const cut = earlier.find((old) => old.first <= last && old.last >= first && (old.first < first || old.last > last))
    if (cut === undefined) return { first, last }
    first = Math.min(first, cut.first)
    last = Math.max(last, cut.last)
  }
}

function contains(range: Range, other: Range): boolean {
  return range.first <= other.first && range.last >= other.last
}

/** Throws a `RangeError` for a range that is none. */
export function requireRange({ transcript }: Viewed, range: Pick<ViewChange, 'from' | 'to'>): void {
  rangeOf(transcript, range)
}

function rangeOf(transcript: readonly TranscriptEntry[], { from, to }: Pick<ViewChange, 'from' | 'to'>): Range {
  const [first, last] = [indexOf(transcript, from), indexOf(transcript, to)]
  if (first > last) throw new RangeError(`Expected entry \`${from}\` to come before \`${to}\`.`)
  return { first, last }
}

/** An id is the place of its entry, unless the entry came from elsewhere. */
function indexOf(transcript: readonly TranscriptEntry[], id: string): number {
  const place = Number(id.slice(1)) - 1
  const index = transcript[place]?.id === id ? place : transcript.findIndex((entry) => entry.id === id)
  if (index < 0) throw new RangeError(`There is no entry \`${id}\` in the transcript.`)
  return index
}
