import type { FinishReason } from '../../contracts/entry.js'

const FINISH_REASONS = new Map<string, FinishReason>([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['tool_use', 'tool_calls'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'refusal'],
  ['pause_turn', 'pause'],
  // Sent when a compaction alone was made: like `pause_turn`, the reply goes on when it is sent back.
  ['compaction', 'pause'],
])

/** The API's `stop_reason` as one of ours; `other` for a word that is not known, and for none (H-05). */
export function finishReason(stopReason: string | null): FinishReason {
  return FINISH_REASONS.get(stopReason ?? '') ?? 'other'
}
