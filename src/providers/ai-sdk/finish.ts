import type { FinishReason } from '../../contracts/entry.js'
import { isObject } from '../../util/json.js'
import { stringIn } from './wire.js'

interface Finish {
  readonly finishReason: FinishReason
  /** Null for `v2`, which has no place for it. */
  readonly nativeFinishReason: string | null
}

/**
 * Why a reply ended. The specification's word is coarser than ours: it has `stop` for a pause and `content-filter` for
 * a refusal, so the provider's own word counts first. A reply that calls tools ended to call them. `filterWord`: see
 * `ProviderTraits`.
 */
export function finishOf(given: unknown, hasCalls: boolean, filterWord?: string): Finish {
  const { word, native } = wordsOf(given)
  const unified = WORDS.get(word) ?? 'other'
  const isFiltered = unified === 'content_filter' && isObject(given)
  const isRefusal = isFiltered && filterWord !== undefined && native !== filterWord
  const finishReason = isRefusal ? 'refusal' : (NATIVE_WORDS.get(native) ?? unified)
  return {
    finishReason: hasCalls && finishReason === 'stop' ? 'tool_calls' : finishReason,
    nativeFinishReason: native === '' ? null : native,
  }
}

/**
 * Whether a stream ended without the provider's word on why: it was cut. Some providers close it as if it were whole,
 * with `other`, `unknown` or `interrupted`, and no word of the API.
 */
export function isCut(given: unknown): boolean {
  const { word, native } = wordsOf(given)
  return (
    word === 'interrupted' ||
    (native === '' && (word === '' || word === 'unknown' || (word === 'other' && isObject(given))))
  )
}

/** `v2` gives a word, later versions that and the provider's own. */
function wordsOf(given: unknown): { readonly word: string; readonly native: string } {
  return isObject(given)
    ? { word: stringIn(given['unified']), native: stringIn(given['raw']) }
    : { word: stringIn(given), native: '' }
}

const WORDS: ReadonlyMap<string, FinishReason> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool-calls', 'tool_calls'],
  ['content-filter', 'content_filter'],
  ['error', 'error'],
])

const NATIVE_WORDS: ReadonlyMap<string, FinishReason> = new Map([
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  // Anthropic made a compaction alone: the reply goes on when it is sent back.
  ['compaction', 'pause'],
  ['model_context_window_exceeded', 'length'],
])
