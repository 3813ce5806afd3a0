import { defineExtension } from '#core/extension/extension.js'
import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'
import type { Extension } from '#core/extension/extension.js'
import type { PaidCompaction, ViewContext, ViewProposal } from '#core/extension/view-policy.js'
import { parse } from '#contracts/parse.js'
import { milliseconds, partial } from '#util/validate.js'
import { clearResultsOf, clearingField, stepLength } from './clearing.js'
import type { Field } from './clearing.js'
import { estimateText } from '#contracts/estimate.js'
import { clearOldMedia } from './media.js'
import { contextNeed, TRIGGER } from './when-to-compact.js'
import type { Need, TriggerOptions } from './when-to-compact.js'
import { lastNotices } from './kept-words.js'
import { entryContent, recall } from './recall.js'
import { recallHint } from './spans.js'
import { withCost } from './summarise.js'

export interface CompactOptions extends TriggerOptions {
  /** Longest time for a compaction, repetitions included, in ms. Default 300,000. */
  readonly timeoutMs?: number | undefined
}

const OPTIONS = partial<CompactOptions>({ ...TRIGGER, timeoutMs: milliseconds })

/**
 * Keeps a long conversation within the model's window by the provider's own compaction: everything but the recent steps becomes
 * a form that only this provider reads (OpenAI's Responses API: an encrypted item; Anthropic: a signed summary). It is part of the
 * view, so it is stored, replayed and sent back as it is; a model of another provider gets its readable part. For APIs without a
 * compaction, and if it fails, old results are cleared instead, as by `clearResults`. The tool `recall` reads the originals, which
 * stay in the log. Its tokens and cost count as the run's and are within its limits.
 *
 * Throws `invalid_options` for options of the wrong form.
 *
 * @example
 * new Harness({ model: 'openai:gpt-5.5', root: '.', use: [compact()] })
 */
export function compact(options: CompactOptions = {}): Extension {
  const given = parse(OPTIONS, options, '`compact`')
  return defineExtension({
    name: 'compact',
    tools: [recall],
    view: async (context) => {
      const media = clearOldMedia(context, given)
      if (media !== null) return media
      const need = contextNeed(context, given)
      if (need === null) return null
      const field = clearingField(context, need, given)
      const compaction = await requestCompaction(field, need, given)
      const shorter = compaction === null ? null : replaceByCompaction(field, need, { compaction, options: given })
      const cost = compaction === null ? null : { ...compaction, text: null }
      return withCost(shorter ?? clearResultsOf(context, need, keepingCompaction(given)), need, cost)
    },
  })
}

/** If a compaction fails, the earlier one stays. */
function keepingCompaction({ pinned = () => false, ...options }: TriggerOptions): TriggerOptions {
  const isCompacted = (entry: TranscriptEntry): boolean => entry.role === 'user' && entry.native !== undefined
  return { ...options, pinned: (entry) => isCompacted(entry) || pinned(entry) }
}

/** Null if the provider has none, if it fails, or if it would save too little. */
async function requestCompaction(
  { context, steps, older }: Field,
  need: Need,
  { timeoutMs = 300_000 }: CompactOptions,
): Promise<PaidCompaction | null> {
  const covered = steps.slice(0, older)
  const length = covered.reduce((sum, step) => sum + stepLength(step), 0) * need.ratio
  if (context.compact === null || length < Math.max(need.least, SHORTEST)) return null
  const count = covered.reduce((sum, { spans }) => sum + spans.length, 0)
  try {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(timeoutMs)])
    return await context.compact(context.view.slice(0, count), signal)
  } catch {
    context.signal.throwIfAborted()
    return null
  }
}

/** A compaction of less saves too little, in tokens. */
const SHORTEST = 1000

interface Compacted {
  readonly compaction: PaidCompaction
  readonly options: TriggerOptions
}

/** The compaction in place of all steps before the recent ones. Null if that saves too little. */
function replaceByCompaction(
  { context, steps, older }: Field,
  need: Need,
  { compaction: { native, text }, options }: Compacted,
): (ViewProposal & { readonly tokensAfter: number }) | null {
  const [first, last] = [steps[0], steps[older - 1]]
  if (first === undefined || last === undefined) return null
  const range = { first: first.first, last: last.last }
  const entries = context.transcript.slice(range.first, range.last + 1)
  const { notes, media } = keptEntries(entries, context, options)
  const readable = text.trim() === '' ? `[${entries.length} earlier entries were left out to save space.]` : text
  const hint = recallHint(context, range, 'shows the originals.')
  const note = [`[The conversation up to here was compacted to save space.${hint}]`, ...notes].join('\n')
  const shown: ContentPart[] = [{ type: 'text', text: readable }, { type: 'text', text: note }, ...media]
  const before = steps.slice(0, older).reduce((sum, step) => sum + stepLength(step), 0)
  const saved = (before - estimateText(readable) - estimateText(note)) * need.ratio
  if (saved < need.least) return null
  const [from, to] = [entries[0]?.id ?? '', entries.at(-1)?.id ?? '']
  return { changes: [{ from, to, shown, native }], tokensAfter: Math.round(need.tokens - saved) }
}

/** The first request, the prompt of the run and pinned entries, word for word after the compaction. */
function keptEntries(
  entries: readonly TranscriptEntry[],
  { transcript, promptId }: ViewContext,
  { pinned = () => false }: TriggerOptions,
): { readonly notes: readonly string[]; readonly media: readonly ContentPart[] } {
  const request = transcript.find((entry) => entry.role === 'user' && entry.notice !== true)
  const notices = lastNotices(transcript)
  const kept = entries.filter(
    (entry) => entry === request || entry.id === promptId || notices.has(entry.id) || pinned(entry),
  )
  if (kept.length === 0) return { notes: [], media: [] }
  const contents = kept.map((entry) => ({ entry, ...entryContent(entry) }))
  const lines = contents.map(({ entry, text }) =>
    JSON.stringify({ at: entry.at, from: entry.role === 'tool' ? `result of ${entry.name}` : entry.role, text }),
  )
  return { notes: ['Of it, word for word:', ...lines], media: contents.flatMap(({ parts }) => parts) }
}
