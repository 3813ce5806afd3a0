import { toolCallsOf } from '#contracts/entry.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { ViewContext } from '#core/extension/view-policy.js'

/** An entry of the view, and the originals that it shows: indexes in the transcript, both included. */
export interface ViewSpan {
  readonly entry: TranscriptEntry
  readonly first: number
  readonly last: number
}

/** Entries that belong together: a message, or a reply with the results of its calls. */
export interface ViewStep {
  readonly spans: readonly ViewSpan[]
  readonly first: number
  readonly last: number
}

/** The steps of a view, in order. A range that is shown as one message is one step. */
export function viewSteps(
  view: readonly TranscriptEntry[],
  transcript: readonly TranscriptEntry[],
): readonly ViewStep[] {
  const steps: { spans: ViewSpan[]; first: number; last: number }[] = []
  let next = 0
  for (const entry of view) {
    const span = { entry, first: next, last: lastIndex(entry, transcript, next) }
    next = span.last + 1
    const step = steps.at(-1)
    if (entry.role !== 'tool' || step === undefined) {
      steps.push({ spans: [span], first: span.first, last: span.last })
      continue
    }
    step.spans.push(span)
    step.last = span.last
  }
  return steps
}

/** The id of a range is that of its first entry, `-` and that of its last. */
function lastIndex({ id }: TranscriptEntry, transcript: readonly TranscriptEntry[], first: number): number {
  const from = transcript[first]?.id ?? ''
  return id === from ? first : entryIndex(transcript, id.slice(from.length + 1))
}

/** The index of an entry; -1 if there is none. An id is the place of its entry, unless the entry came from elsewhere. */
export function entryIndex(transcript: readonly TranscriptEntry[], id: string): number {
  const place = Number(id.slice(1)) - 1
  return transcript[place]?.id === id ? place : transcript.findIndex((entry) => entry.id === id)
}

/** The handle of originals: of the run that can read them, and of the first and the last entry. */
function spanHandle(
  runId: string,
  transcript: readonly TranscriptEntry[],
  { first, last }: Omit<ViewSpan, 'entry'>,
): string {
  const [from, to] = [transcript[first]?.id ?? '', transcript[last]?.id ?? '']
  return first === last ? `${runId}.${from}` : `${runId}.${from}-${to}`
}

/** For a note in place of a range: how the model reads it. Empty if the model has no `recall`, as in some child runs. */
export function recallHint(
  { runId, transcript, hasTool }: Pick<ViewContext, 'runId' | 'transcript' | 'hasTool'>,
  range: Omit<ViewSpan, 'entry'>,
  shows: string,
): string {
  if (!hasTool('recall')) return ''
  return ` recall({"handle":"${spanHandle(runId, transcript, range)}"}) ${shows}`
}

/** `search (12), read (3)`: the calls of entries, the most frequent first. */
export function countCalls(entries: readonly TranscriptEntry[]): string {
  const counts = new Map<string, number>()
  for (const entry of entries) {
    if (entry.role !== 'assistant') continue
    for (const { name } of toolCallsOf(entry.parts)) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  const names = [...counts].sort(([, one], [, other]) => other - one).slice(0, 8)
  return names.map(([name, count]) => `${name} (${count})`).join(', ')
}
