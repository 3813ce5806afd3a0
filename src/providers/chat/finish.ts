import type { FinishReason } from '../../contracts/entry.js'

/** The content of a reply, as far as it determines the finish reason. */
interface ReplyContent {
  readonly hasCalls: boolean
  readonly hasRefusal: boolean
}

/**
 * The finish reason of a reply. Servers label replies unreliably: one with tool calls may have `stop` or nothing, a refusal
 * always has `stop`. `upstream` is the word of the provider behind a gateway.
 */
export function finishReasonOf(word: string, upstream: string, { hasCalls, hasRefusal }: ReplyContent): FinishReason {
  const reason = REASONS.get(word.toLowerCase()) ?? 'other'
  if (reason !== 'stop' && reason !== 'other') return reason
  if (hasRefusal || upstream.toLowerCase() === 'refusal') return 'refusal'
  return hasCalls ? 'tool_calls' : reason
}

/** The words of OpenAI and other servers, by finish reason. */
const WORDS_BY_REASON: readonly (readonly [FinishReason, string])[] = [
  ['stop', 'stop eos eos_token stop_token end_turn stop_sequence completed complete'],
  ['tool_calls', 'tool_calls function_call function_calls tool_call tool_use'],
  ['length', 'length max_tokens max_output_tokens max_completion_tokens max_new_tokens model_length'],
  ['length', 'model_context_window_exceeded'],
  ['content_filter', 'content_filter content_filtered sensitive safety image_safety prohibited_content'],
  ['content_filter', 'blocklist spii guardrail_intervened recitation'],
  ['refusal', 'refusal'],
  ['pause', 'pause_turn'],
  ['error', 'error abort aborted cancelled network_error insufficient_system_resource'],
]

const REASONS: ReadonlyMap<string, FinishReason> = new Map(
  WORDS_BY_REASON.flatMap(([reason, words]) => words.split(' ').map((word) => [word, reason] as const)),
)
