import { estimateEntry } from '#contracts/estimate.js'
import type { TranscriptEntry } from '#contracts/entry.js'
import type { ViewContext } from '#core/extension/view-policy.js'
import { functionAtOnce, milliseconds, number, where } from '#util/validate.js'
import type { PartialFields } from '#util/validate.js'

/** When a policy acts, and which entries it leaves alone. */
export interface TriggerOptions {
  /**
   * Length of the next request at which the policy acts: up to 1 a share of the model's window, above 1 a number of input
   * tokens. Default 0.75. If the window is unknown, a share has no effect until the provider refuses a request as too long.
   */
  readonly at?: number | undefined
  /**
   * The policy acts earlier, if that saves a fifth of the window, once nothing was said for this long, in ms: the provider's
   * cache is gone then anyway. Default: never.
   */
  readonly idleMs?: number | undefined
  /** Entries that always stay as they are. The first request and the prompt of the run stay anyway. Default: none. */
  readonly pinned?: ((entry: TranscriptEntry) => boolean) | undefined
}

export const TRIGGER: PartialFields<TriggerOptions> = {
  at: where(number(0.05), 'a share of the window (0.05 to 1) or a number of tokens', (at) => at <= 1 || at >= 100),
  idleMs: milliseconds,
  pinned: functionAtOnce('pinned'),
}

/** A request that is too long, in tokens of its input. */
export interface Need {
  readonly tokens: number
  /** The length to come down to. */
  readonly target: number
  /** The least that a change must save. */
  readonly least: number
  /** Tokens that the provider counts for one token of the estimate. */
  readonly ratio: number
}

/** The length of the view of one run. It grows with its view: only new entries are counted. */
interface Meter {
  generation: number
  counted: number
  estimate: number
  ratio: number
  /** A policy found nothing to shorten: it looks again above this length. In memory: forks, and other processes, look again at once. */
  readonly nextAt: Map<TriggerOptions, number>
  /** The length that the request must have after the provider has refused it. */
  refused: { readonly refusals: number; readonly target: number } | null
}

/** The transcript of a run is one object for its lifetime. */
const meters = new WeakMap<readonly TranscriptEntry[], Meter>()

const DEFAULT_AT = 0.75
/** A view changes at most about once per fifth of the window. */
const LEAST = 1 / 5
/** After a policy found nothing to shorten, it looks again when the request has grown by this share of the window. */
const AGAIN = 1 / 20
/** Below, the estimate says too little about the provider's way of counting. */
const ENOUGH = 500

/** Null: there is nothing to do. Costs the same at each turn, however long the run. */
export function contextNeed(context: ViewContext, options: TriggerOptions): Need | null {
  const meter = transcriptMeter(context)
  const tokens = viewLength(context, meter)
  const { window, refusals } = context
  const limit = tokenLimit(context, options)
  const span = window ?? limit
  if (refusals > 0)
    return afterRefusal(meter, { tokens: Math.max(tokens, refusedLength(context, meter)), limit, refusals })
  meter.refused = null
  const target = tokens < limit ? limit / 4 : limit / 2
  if (tokens < limit && (tokens - target < span * LEAST || !hasBeenIdle(context, options))) return null
  if (tokens < (meter.nextAt.get(options) ?? 0)) return null
  meter.nextAt.set(options, tokens + span * AGAIN)
  return { tokens, target, least: Math.min(span * LEAST, tokens - target), ratio: meter.ratio }
}

/** The length at which a policy acts, in tokens; infinite if it is a share of an unknown window. */
export function tokenLimit({ window }: ViewContext, { at = DEFAULT_AT }: TriggerOptions): number {
  return Math.min(at > 1 ? at : (window ?? Infinity) * at, (window ?? Infinity) * 0.95)
}

/** What was refused is longer than the window, whatever the estimate says. */
function refusedLength({ window, refusals, isTooLarge }: ViewContext, meter: Meter): number {
  if (isTooLarge || window === null || meter.refused?.refusals === refusals) return 0
  meter.ratio = Math.max(meter.ratio, window / Math.max(1, meter.estimate))
  return window
}

function afterRefusal(
  meter: Meter,
  { tokens, limit, refusals }: { readonly tokens: number; readonly limit: number; readonly refusals: number },
): Need | null {
  if (meter.refused?.refusals !== refusals)
    meter.refused = { refusals, target: Math.min(limit / 2, tokens / 2 ** refusals) }
  const { target } = meter.refused
  return tokens <= target ? null : { tokens, target, least: 0, ratio: meter.ratio }
}

function transcriptMeter({ transcript, view, generation }: ViewContext): Meter {
  let meter = meters.get(transcript)
  if (meter === undefined) {
    meter = { generation, counted: 0, estimate: 0, ratio: 1, nextAt: new Map(), refused: null }
    meters.set(transcript, meter)
  }
  if (meter.generation !== generation) {
    Object.assign(meter, { generation, counted: 0, estimate: 0 })
    meter.nextAt.clear()
  }
  for (; meter.counted < view.length; meter.counted++) meter.estimate += entryEstimate(view[meter.counted])
  return meter
}

/** By the provider's own count of the last request, if it is known, and the estimate of the entries since. */
function viewLength({ view, lastInputTokens }: ViewContext, meter: Meter): number {
  if (lastInputTokens === null) return meter.estimate * meter.ratio
  let since = 0
  for (let index = view.length - 1; index >= 0; index--) {
    since += entryEstimate(view[index])
    if (view[index]?.role === 'assistant') break
  }
  const before = meter.estimate - since
  if (before >= ENOUGH) meter.ratio = Math.min(4, Math.max(0.5, lastInputTokens / before))
  return lastInputTokens + since * meter.ratio
}

function entryEstimate(entry: TranscriptEntry | undefined): number {
  return entry === undefined ? 0 : estimateEntry(entry)
}

/** The conversation rested before its last message: the provider's cache of it is likely gone. */
function hasBeenIdle({ view }: ViewContext, { idleMs }: TriggerOptions): boolean {
  if (idleMs === undefined) return false
  const index = view.findLastIndex(({ role }) => role === 'assistant')
  const [reply, next] = [view[index], view[index + 1]]
  return reply !== undefined && next !== undefined && Date.parse(next.at) - Date.parse(reply.at) >= idleMs
}
