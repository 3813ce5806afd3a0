import type { ProposedChange, TranscriptEntry, ViewContext } from '../index.js'
import { estimateEntry, estimateText } from './estimate.js'
import type { Need } from './need.js'
import type { TriggerOptions } from './options.js'
import { callsIn, handleOf, stepsOf } from './spans.js'
import type { Span, Step } from './spans.js'

/** Changes of a view, and the length of the request with them, in tokens. */
export interface Shortened {
  readonly changes: readonly ProposedChange[]
  readonly tokensAfter: number
}

/** A shorter result saves too little. */
const SHORT = 80

/** The steps of a view, and the steps that may be changed. */
export interface Field {
  readonly context: ViewContext
  readonly steps: readonly Step[]
  /** Steps before the recent ones. */
  readonly older: number
  readonly isKept: (step: Step) => boolean
}

/** The first request, the prompt of the run, pinned entries and the recent steps stay. */
export function fieldOf(context: ViewContext, need: Need, { pinned = () => false }: TriggerOptions): Field {
  const { view, transcript, promptId } = context
  const steps = stepsOf(view, transcript)
  const first = view.find((entry) => entry.role === 'user' && entry.notice !== true)
  const isKept = ({ spans }: Step): boolean =>
    spans.some(({ entry }) => entry === first || entry.id === promptId || pinned(entry))
  let recent = 0
  let older = steps.length
  while (older > 0 && (older === steps.length || recent < need.target / 2)) {
    older -= 1
    recent += lengthOf(steps[older]) * need.ratio
  }
  return { context, steps, older: recent > need.target / 2 && older < steps.length - 1 ? older + 1 : older, isKept }
}

/**
 * Clears old tool results; if that is not enough, leaves out the oldest steps; and if even that is not, clears large results
 * among the recent ones. Null if there is nothing to save.
 */
export function cleared(context: ViewContext, need: Need, options: TriggerOptions): Shortened | null {
  const field = fieldOf(context, need, options)
  const results = new Map<Span, ProposedChange>()
  let { tokens } = need
  const clear = (span: Span): void => {
    const change = clearedResult(context, span)
    if (change === null || results.has(span)) return
    results.set(span, change)
    tokens -= (estimateEntry(span.entry) - estimateText(change.shown)) * need.ratio
  }
  const older = field.steps.slice(0, field.older).filter((step) => !field.isKept(step))
  for (const { spans } of older) spans.forEach(clear)
  const { folds, saved } = folded(field, { results, excess: (tokens - need.target) / need.ratio })
  tokens -= saved * need.ratio
  for (const span of recentSpans(field, need, tokens)) if (tokens > need.target) clear(span)
  const kept = [...results].filter(
    ([span]) => !folds.some(({ first, last }) => span.first >= first && span.last <= last),
  )
  const changes = [...folds.map((fold) => left(context, fold)), ...kept.map(([, change]) => change)]
  if (changes.length === 0 || need.tokens - tokens < Math.max(need.least, SHORT)) return null
  return { changes, tokensAfter: Math.round(tokens) }
}

/** Recent entries, the largest first. Results that the model has not seen are among them only if nothing else helps. */
function recentSpans({ context, steps, older, isKept }: Field, need: Need, tokens: number): readonly Span[] {
  const isTooLong = need.least === 0 || tokens > (context.window ?? Infinity) * 0.9
  if (!isTooLong && tokens < need.target * 1.5) return []
  const recent = steps.slice(older, isTooLong ? steps.length : -1).filter((step) => !isKept(step))
  return recent
    .flatMap(({ spans }) => spans)
    .toSorted((one, other) => estimateEntry(other.entry) - estimateEntry(one.entry))
}

function lengthOf(step: Step | undefined): number {
  return step?.spans.reduce((sum, { entry }) => sum + estimateEntry(entry), 0) ?? 0
}

function clearedResult(
  { runId, transcript }: ViewContext,
  span: Span,
): (ProposedChange & { readonly shown: string }) | null {
  const { entry } = span
  if (entry.role !== 'tool' || estimateEntry(entry) <= SHORT) return null
  const handle = handleOf(runId, transcript, span)
  const shown = `[This result was removed to save space. recall({"handle":"${handle}"}) shows it.]`
  return { from: entry.id, to: entry.id, shown }
}

/** Neighbouring steps that are left out. */
interface Fold {
  readonly first: number
  readonly last: number
}

/** The oldest steps whose absence saves `excess` tokens of the estimate. Steps that are left out already stay so. */
function folded(
  { steps, older, isKept }: Field,
  { results, excess }: { readonly results: ReadonlyMap<Span, { readonly shown: unknown }>; readonly excess: number },
): { readonly folds: readonly Fold[]; readonly saved: number } {
  const folds: { first: number; last: number; steps: number }[] = []
  let saved = 0
  let isOpen = false
  for (const step of steps.slice(0, older)) {
    if (saved >= excess) break
    if (isKept(step)) {
      isOpen = false
      continue
    }
    const fold = isOpen ? folds.at(-1) : undefined
    if (fold === undefined) folds.push({ first: step.first, last: step.last, steps: 1 })
    else Object.assign(fold, { last: step.last, steps: fold.steps + 1 })
    saved += step.spans.reduce((sum, span) => sum + (results.has(span) ? FOLD_LINE / 2 : estimateEntry(span.entry)), 0)
    if (!isOpen) saved -= FOLD_LINE
    isOpen = true
  }
  return saved <= 0 ? { folds: [], saved: 0 } : { folds, saved }
}

/** Tokens of the line in place of steps. */
const FOLD_LINE = 60

function left({ runId, transcript }: ViewContext, range: Fold): ProposedChange {
  const entries = transcript.slice(range.first, range.last + 1)
  const handle = handleOf(runId, transcript, range)
  const calls = callsIn(entries)
  const content = `${entries.length} entries${calls === '' ? '' : `, with calls of ${calls}`}`
  const shown = `[Earlier steps were left out to save space: ${content}. recall({"handle":"${handle}"}) shows them.]`
  return { from: idAt(transcript, range.first), to: idAt(transcript, range.last), shown }
}

export function idAt(transcript: readonly TranscriptEntry[], index: number): string {
  return transcript[index]?.id ?? ''
}
