import type { ProposedChange, ViewContext } from '#core/extension/view-policy.js'
import type { Extension } from '#core/extension/extension.js'
import { estimateEntry, estimateText } from '#contracts/estimate.js'
import type { Need, TriggerOptions } from './when-to-compact.js'
import { isSaid, keptWords, lastNotices, skillsRead, wordsLength } from './kept-words.js'
import { countCalls, entryIndex, recallHint, viewSteps } from './spans.js'
import type { ViewSpan, ViewStep } from './spans.js'
import { defineExtension } from '#core/extension/extension.js'
import { parse } from '#contracts/parse.js'
import { partial } from '#util/validate.js'
import { clearOldMedia } from './media.js'
import { contextNeed, TRIGGER } from './when-to-compact.js'
import { recall } from './recall.js'

/** Changes of a view, and the length of the request with them, in tokens. */
export interface Shortened {
  readonly changes: readonly ProposedChange[]
  readonly tokensAfter: number
}

/** A shorter result saves too little. */
const SHORT = 80
/** The same for the answer of a person. */
const SHORT_ANSWER = 500

/** The steps of a view, and the steps that may be changed. */
export interface Field {
  readonly context: ViewContext
  readonly steps: readonly ViewStep[]
  /** Steps before the recent ones. */
  readonly older: number
  readonly isKept: (step: ViewStep) => boolean
}

/** The first request, the prompt of the run, pinned entries and the recent steps stay. */
export function clearingField(context: ViewContext, need: Need, { pinned = () => false }: TriggerOptions): Field {
  const { view, transcript, promptId } = context
  const steps = viewSteps(view, transcript)
  const first = view.find((entry) => entry.role === 'user' && entry.notice !== true)
  const notices = lastNotices(transcript)
  const isKept = ({ spans }: ViewStep): boolean =>
    spans.some(({ entry }) => entry === first || entry.id === promptId || notices.has(entry.id) || pinned(entry))
  let recent = 0
  let older = steps.length
  while (older > 0 && (older === steps.length || recent < need.target / 2)) {
    older -= 1
    recent += steps.slice(older, older + 1).reduce((sum, step) => sum + stepLength(step), 0) * need.ratio
  }
  return { context, steps, older: recent > need.target / 2 && older < steps.length - 1 ? older + 1 : older, isKept }
}

/**
 * Clears old tool results; if that is not enough, leaves out the oldest steps; and if even that is not, clears large results
 * among the recent ones. Null if there is nothing to save.
 */
export function clearResultsOf(context: ViewContext, need: Need, options: TriggerOptions): Shortened | null {
  const field = clearingField(context, need, options)
  const clearing = new Clearing(field, need)
  for (const { spans } of changeableSteps(field)) spans.forEach(clearing.clear)
  const mostWords = need.target / need.ratio / 2
  const ranges = rangesToLeaveOut(field, clearing.excess, { lengthOf: clearing.lengthOf, mostWords })
  const words = mostWords / Math.max(1, ranges.list.length)
  if (ranges.saved > 0) for (const range of ranges.list) clearing.replace(range, leaveOut(context, range, words))
  return clearing.end()
}

/** Replaces all steps before the recent ones by `shown`. Null if that saves too little. */
export function replaceBySummary(field: Field, need: Need, shown: string): Shortened | null {
  const clearing = new Clearing(field, need)
  const [first, ...others] = rangesToLeaveOut(field, Infinity, { lengthOf: stepLength, mostWords: 0 }).list
  if (first === undefined) return null
  clearing.replace(first, { ...rangeIds(field.context, first), shown })
  // The summary is of these too.
  for (const range of others) clearing.replace(range, leaveOut(field.context, range, 0))
  return clearing.end()
}

/** Changes of a view that are being collected. */
class Clearing {
  readonly #field: Field
  readonly #need: Need
  readonly #results = new Map<ViewSpan, ProposedChange & { readonly shown: string }>()
  readonly #ranges: (Range & { readonly change: ProposedChange })[] = []
  #tokens: number

  constructor(field: Field, need: Need) {
    this.#field = field
    this.#need = need
    this.#tokens = need.tokens
  }

  /** Tokens of the estimate that are still to be saved. */
  get excess(): number {
    return (this.#tokens - this.#need.target) / this.#need.ratio
  }

  readonly clear = (span: ViewSpan): void => {
    const change = clearedResult(this.#field.context, span)
    if (change === null || this.#results.has(span)) return
    this.#results.set(span, change)
    this.#save(estimateEntry(span.entry) - estimateText(change.shown))
  }

  /** Tokens of a step as it is shown now. */
  readonly lengthOf = ({ spans }: ViewStep): number =>
    spans.reduce((sum, span) => {
      const change = this.#results.get(span)
      return sum + (change === undefined ? estimateEntry(span.entry) : estimateText(change.shown))
    }, 0)

  replace(range: Range, change: ProposedChange & { readonly shown: string }): void {
    this.#ranges.push({ ...range, change })
    const steps = this.#field.steps.filter((step) => containsRange(range, step))
    this.#save(steps.reduce((sum, step) => sum + this.lengthOf(step), -estimateText(change.shown)))
  }

  #save(estimate: number): void {
    this.#tokens -= estimate * this.#need.ratio
  }

  /** The changes, with large recent results if it is still too long. Null if they save too little. */
  end(): Shortened | null {
    const need = this.#need
    for (const span of recentSpans(this.#field, need, this.#tokens)) if (this.excess > 0) this.clear(span)
    const results = [...this.#results].filter(([span]) => !this.#ranges.some((range) => containsRange(range, span)))
    const changes = [...this.#ranges, ...results.map(([, change]) => ({ change }))].map(({ change }) => change)
    if (changes.length === 0 || need.tokens - this.#tokens < Math.max(need.least, SHORT)) return null
    return { changes, tokensAfter: Math.round(this.#tokens) }
  }
}

function containsRange(range: Range, { first, last }: Range): boolean {
  return first >= range.first && last <= range.last
}

/** The steps before the recent ones, without those that stay. */
export function changeableSteps({ steps, older, isKept }: Field): readonly ViewStep[] {
  return steps.slice(0, older).filter((step) => !isKept(step))
}

/** Recent entries, the largest first. Results that the model has not seen are among them only if nothing else helps. */
function recentSpans({ context, steps, older, isKept }: Field, need: Need, tokens: number): readonly ViewSpan[] {
  const isTooLong = need.least === 0 || tokens > (context.window ?? Infinity) * 0.9
  if (!isTooLong && tokens < need.target * 1.5) return []
  const recent = steps.slice(older, isTooLong ? steps.length : -1).filter((step) => !isKept(step))
  return recent
    .flatMap(({ spans }) => spans)
    .toSorted((one, other) => estimateEntry(other.entry) - estimateEntry(one.entry))
}

export function stepLength({ spans }: ViewStep): number {
  return spans.reduce((sum, { entry }) => sum + estimateEntry(entry), 0)
}

function clearedResult(context: ViewContext, span: ViewSpan): (ProposedChange & { readonly shown: string }) | null {
  const { entry } = span
  if (entry.role !== 'tool' || estimateEntry(entry) <= (isSaid(entry) ? SHORT_ANSWER : SHORT)) return null
  const again = entry.name === 'skill_read' ? ' Read the skill again before you go on by it.' : ''
  const shown = `[This result was removed to save space.${recallHint(context, span, 'shows it.')}${again}]`
  return { from: entry.id, to: entry.id, shown }
}

/** Neighbouring steps: indexes in the transcript, both included. */
interface Range {
  readonly first: number
  readonly last: number
}

/**
 * The oldest steps whose absence saves `excess` tokens of the estimate. Steps that are shown as one already come first. Of what
 * people said in them, at most `mostWords` tokens stay.
 */
function rangesToLeaveOut(
  { context, steps, older, isKept }: Field,
  excess: number,
  { lengthOf, mostWords }: { readonly lengthOf: (step: ViewStep) => number; readonly mostWords: number },
): { readonly list: readonly Range[]; readonly saved: number } {
  const list: { first: number; last: number }[] = []
  let [saved, words] = [0, 0]
  let open: { first: number; last: number } | null = null
  for (const step of steps.slice(0, older)) {
    if (saved >= excess) break
    if (isKept(step)) {
      open = null
      continue
    }
    const kept = Math.min(wordsLength(context, step), mostWords - words)
    words += kept
    saved += lengthOf(step) - kept
    if (open === null) {
      saved -= LINE
      open = { first: step.first, last: step.last }
      list.push(open)
    } else open.last = step.last
  }
  return { list, saved }
}

/** Tokens of the line in place of steps. */
const LINE = 60

/** `words`: about how many tokens may stay of what people said. */
function leaveOut(context: ViewContext, range: Range, words: number): ProposedChange & { readonly shown: string } {
  const { transcript, promptId } = context
  const entries = transcript.slice(range.first, range.last + 1)
  const calls = countCalls(entries)
  const content = `${entries.length} entries${calls === '' ? '' : `, with calls of ${calls}`}`
  const hint = recallHint(context, range, 'shows them.')
  const skills = skillsRead(context, range).map((name) => `\`${name}\``)
  const again =
    skills.length === 0 ? '' : ` Skills read in them: ${skills.join(', ')}; read one again before you go on by it.`
  const isPast = range.last < entryIndex(transcript, promptId)
  const past = isPast ? ' What was asked up to here was answered then.' : ''
  const said = words === 0 ? '' : keptWords(context, range, words)
  const kept = said === '' ? ']' : ` What people said in them, word for word:]\n${said}`
  const shown = `[Earlier steps were left out to save space: ${content}.${hint}${again}${past}${kept}`
  return { ...rangeIds(context, range), shown }
}

function rangeIds({ transcript }: ViewContext, { first, last }: Range): { readonly from: string; readonly to: string } {
  return { from: transcript[first]?.id ?? '', to: transcript[last]?.id ?? '' }
}

export type ClearResultsOptions = TriggerOptions

const OPTIONS = partial<ClearResultsOptions>(TRIGGER)

/**
 * Keeps a long conversation within the model's window without another model: old tool results become one line each, and if
 * that is not enough, the oldest steps become one line together. The tool `recall` reads the originals, which stay in the log.
 * It acts rarely and in large steps, so that the provider's cache holds in between.
 *
 * Throws `invalid_options` for options of the wrong form.
 *
 * @example
 * new Harness({ model: 'anthropic:claude-sonnet-5', root: '.', use: [clearResults()] })
 */
export function clearResults(options: ClearResultsOptions = {}): Extension {
  const given = parse(OPTIONS, options, '`clearResults`')
  return defineExtension({
    name: 'clear_results',
    tools: [recall],
    view(context) {
      const media = clearOldMedia(context, given)
      if (media !== null) return media
      const need = contextNeed(context, given)
      if (need === null) return null
      const shorter = clearResultsOf(context, need, given)
      return shorter === null ? null : { ...shorter, tokensBefore: Math.round(need.tokens) }
    },
  })
}
