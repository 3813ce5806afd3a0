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
  const reason = WORDS.get(word.toLowerCase()) ?? 'other'
  if (reason !== 'stop' && reason !== 'other') return reason
  if (hasRefusal || upstream.toLowerCase() === 'refusal') return 'refusal'
  return hasCalls ? 'tool_calls' : reason
}

/** The words of OpenAI and other servers. */
const WORDS: ReadonlyMap<string, FinishReason> = new Map(
  Object.entries({
    stop: 'stop',
    eos: 'stop',
    eos_token: 'stop',
    stop_token: 'stop',
    end_turn: 'stop',
    stop_sequence: 'stop',
    completed: 'stop',
    complete: 'stop',
    tool_calls: 'tool_calls',
    function_call: 'tool_calls',
    function_calls: 'tool_calls',
    tool_call: 'tool_calls',
    tool_use: 'tool_calls',
    length: 'length',
    max_tokens: 'length',
    max_output_tokens: 'length',
    max_completion_tokens: 'length',
    max_new_tokens: 'length',
    model_length: 'length',
    model_context_window_exceeded: 'length',
    content_filter: 'content_filter',
    content_filtered: 'content_filter',
    sensitive: 'content_filter',
    safety: 'content_filter',
    image_safety: 'content_filter',
    prohibited_content: 'content_filter',
    blocklist: 'content_filter',
    spii: 'content_filter',
    guardrail_intervened: 'content_filter',
    recitation: 'content_filter',
    refusal: 'refusal',
    pause_turn: 'pause',
    error: 'error',
    abort: 'error',
    aborted: 'error',
    cancelled: 'error',
    network_error: 'error',
    insufficient_system_resource: 'error',
  } as const),
)
