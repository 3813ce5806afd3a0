import { failureOfStatus } from '#contracts/provider-failure.js'
import type { ProviderFailure } from '#contracts/provider-failure.js'

/** What a refusal means. */
export interface Refusal {
  readonly failure: ProviderFailure
  readonly retryable: boolean
  /** It has too many bytes or pictures. */
  readonly isOversized: boolean
}

/** `words` are the types and codes of the error. Without a status, only they are believed. */
export function refusalOf(status: number | undefined, words: readonly string[], message: string): Refusal {
  const failure = failureOf(status, words, message)
  if (failure === 'oversized') return { failure: 'invalid', retryable: false, isOversized: true }
  const lasts = failure === 'quota' || failure === 'context'
  const passes = failure === 'rate_limit' || failure === 'overloaded'
  return { failure, retryable: passes || (!lasts && isRetryable(status, failure)), isOversized: false }
}

/** By status and type, which are certain, and only then by the words of a sentence. */
function failureOf(
  status: number | undefined,
  words: readonly string[],
  message: string,
): ProviderFailure | 'oversized' {
  const hasWord = (pattern: RegExp): boolean => words.some((word) => pattern.test(word))
  if (hasWord(UNPAID) || ((status ?? 0) < 500 && UNPAID_SENTENCE.test(message))) return 'quota'
  if (status === 429 || (status !== 413 && hasWord(THROTTLED_CODE))) return 'rate_limit'
  if (NEVER_OF_LENGTH.has(status)) return (status === 403 ? kindOf(words, message) : null) ?? failureOfStatus(status)
  if (hasWord(OVERFLOW_CODE)) return 'context'
  if (status !== 413 && (status === 503 || THROTTLED.test(message))) return throttled(status, message)
  const isOversized = status === 413 || hasWord(/request_too_large/i) || OVERSIZED.test(message)
  if (OVERFLOW.some((sentence) => sentence.test(message))) return 'context'
  if (isOversized) return 'oversized'
  if (message.split(/(?<=[.!?])\s+|\n/).some(isAboutLength)) return 'context'
  if (status !== undefined && status >= 500) return hasWord(OVERLOADED) ? 'overloaded' : failureOfStatus(status)
  return kindOf(words, status === undefined ? '' : message) ?? unnamed(status, hasWord)
}

function throttled(status: number | undefined, message: string): ProviderFailure {
  if (RATE.test(message)) return 'rate_limit'
  return status !== undefined && status >= 500 ? failureOfStatus(status) : 'overloaded'
}

/** The kind that a word of a refusal names, or else its sentence. */
function kindOf(words: readonly string[], message: string): ProviderFailure | null {
  const byWord = KINDS.find(([, word]) => words.some((each) => word.test(each)))
  return (byWord ?? KINDS.find(([, , sentence]) => sentence.test(message)))?.[0] ?? null
}

const KINDS: readonly (readonly [ProviderFailure, word: RegExp, sentence: RegExp])[] = [
  [
    'content',
    /content_?(?:filter|policy|moderation)|policy_?violation|safety|moderation|flagged|inspection_failed|prohibited/i,
    /content.?(?:filter|management|moderation|polic)|\b(?:usage|safety|content) polic|flagged|moderation|inappropriate content/i,
  ],
  [
    'auth',
    /auth|api_?key|permission|forbidden|access_?denied/i,
    /\b(?:invalid|incorrect|missing|wrong|expired|no) (?:api[ _-]?key|credentials)|api[ _-]?key (?:is |was )?(?:not|invalid|missing|expired)|unauthori[sz]ed/i,
  ],
  [
    'not_found',
    /^(?:model_?)?not_?found(?:_?error)?$/i,
    /\bmodel\b.{0,100}\b(?:does not exist|not exist|not found|is not (?:a )?valid|is not available)|not a valid model/i,
  ],
]

/** A refusal that nothing but its status, or a word without a status, explains. */
function unnamed(status: number | undefined, hasWord: (pattern: RegExp) => boolean): ProviderFailure {
  if (status !== undefined) return failureOfStatus(status)
  if (hasWord(OVERLOADED)) return 'overloaded'
  if (hasWord(/time_?d?_?out|deadline/i)) return 'timeout'
  return hasWord(LASTING) ? 'invalid' : 'server'
}

const OVERLOADED = /overload|unavailable|capacity|\bbusy\b/i

function isRetryable(status: number | undefined, failure: ProviderFailure): boolean {
  return status === undefined ? PASSING.includes(failure) : isRetryableStatus(status)
}

const PASSING: readonly ProviderFailure[] = ['timeout', 'server']

/** 408, 409 (a lock that was not free), 425, 429, and all faults of the server except permanent ones. */
function isRetryableStatus(status: number): boolean {
  if (status >= 500) return status !== 501 && status !== 505
  return status === 408 || status === 409 || status === 425 || status === 429
}

/** Never retried, with any status: someone has to pay first. */
const UNPAID = /insufficient_(quota|balance|credits?|funds)|billing|payment|credit_balance|out_of_credits|PerDay/i

const UNPAID_SENTENCE =
  /insufficient_quota|credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds)|out of credits/i

/** Errors of a stream or a 200 body that would occur again. */
const LASTING =
  /invalid|unsupported|not_supported|missing|not_?found|permission|forbidden|auth|too_large|too_many_prompt|context_length|bad_request|policy|safety|filter|moderation|tool_use_failed/i

const THROTTLED_CODE = /throttl|rate_?limit|too_?many_?requests|slow_?down/i

/** Sentences of a server that takes the same request later. One that asks for a change, 'and try again' or 'try again with', is none. */
const THROTTLED =
  /throttl|rate.?limit|too many requests|\bplease wait\b|\bwait (?:a|for|until|before)\b|(?<!\band )\btry(?:ing)? again\b(?! (?:with|using|by)\b)/i

const RATE = /throttl|rate.?limit|too many requests/i

/** Statuses of refusals that have nothing to do with the length of the request. */
const NEVER_OF_LENGTH: ReadonlySet<number | undefined> = new Set([401, 402, 403, 404, 408, 409])

/** Codes of providers and servers for a request that is longer than the model's window. */
const OVERFLOW_CODE = /context_length|context_window|context_size|too_many_prompt_tokens/i

/** Their sentences. */
const OVERFLOW = [
  /(prompt|input|messages?) (is|are) too (long|large)/i,
  /maximum (context|prompt|input) length/i,
  /context (length|window|size|limit)/i,
  /too many tokens|token limit/i,
  /token count.* exceeds/i,
  /tokens \+ .*max_(new_)?tokens.* must be/i,
  /reduce the length of the (messages|prompt)/i,
]

/** Sentences on the bytes of a request, or on all of its pictures. */
const OVERSIZED =
  /\b(?:request|payload|entity|body)\b.*\btoo large|\b(?:request|payload|body) size\b|\b(?:images?|pictures?|media|attachments?)\b.*\b(?:exceeds?|exceeded|too (?:many|large)|maximum)|\btoo many (?:images|pictures)|\bexceeds?\b.*\b(?:\d+ ?[KMG]i?B|bytes)\b/i

/** A sentence with a word of length and one of excess that is about nothing else that has a length. */
function isAboutLength(sentence: string): boolean {
  return LENGTH.test(sentence) && EXCESS.test(sentence) && !OTHER_LENGTH.test(sentence)
}

const LENGTH = /\b(?:length|tokens?|prompt|input|context)\b/i
const EXCESS = /\bexceed|\btoo (?:long|large)|\bmaximum\b|\b(?:length|tokens?|prompt|context)\b.*\bshould be\b/i

/** Limits of replies, strings, images, credits, rates and definitions. */
const OTHER_LENGTH =
  /\bmax_?\w*tokens|\b(?:output|completion|response|generated|new) tokens|\bstring|\bimages?\b|pixel|\bbytes\b|credit|balance|quota|\bper[ -](?:second|minute|min|hour|day)|\bschema|\btools?\b|\bfunctions?\b|\bpropert|\btemperature\b/i
