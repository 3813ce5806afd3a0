import type { FinishReason } from '../../contracts/entry.js'
import type { HarnessError } from '../../contracts/errors.js'
import { isObject } from '../../util/json.js'
import { providerError } from '../http/errors.js'
import { stringIn } from '../wire/read.js'

interface Finish {
  readonly finishReason: FinishReason
  /** Null for `v2`, which has no field for it. */
  readonly nativeFinishReason: string | null
}

/**
 * The finish reason of a reply. The specification has fewer reasons, with `stop` for a pause and `content-filter` for a
 * refusal, so the provider's own word takes precedence. A reply with tool calls has `tool_calls` in place of `stop`.
 * `filterWord`: see `ProviderTraits`.
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
 * The error of a reply that the provider ended in an error; null for any other reply. Providers of the AI SDK give words
 * that they do not know as `other`, such as `error` of a gateway.
 */
export function endedInError(given: unknown): HarnessError | null {
  const { word, native } = wordsOf(given)
  if (word !== 'error' && !ERROR_WORDS.test(native)) return null
  return providerError(`The provider ended the reply with an error (\`${native || word}\`).`, { retryable: true })
}

const ERROR_WORDS = /^(error|failed|abort|aborted|cancelled|network_error|insufficient_system_resource)$/i

/**
 * True if a stream ended without the provider's finish reason: it was cut. Some providers close it as if it were
 * complete, with `other`, `unknown` or `interrupted`, and no reason of the API.
 */
export function isCut(given: unknown): boolean {
  const { word, native } = wordsOf(given)
  return (
    word === 'interrupted' ||
    (native === '' && (word === '' || word === 'unknown' || (word === 'other' && isObject(given))))
  )
}

/** `v2` has a word, later versions also the provider's own. */
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
])

const NATIVE_WORDS: ReadonlyMap<string, FinishReason> = new Map([
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  // After a compaction only, Anthropic continues the reply when it is sent back.
  ['compaction', 'pause'],
  ['model_context_window_exceeded', 'length'],
])
