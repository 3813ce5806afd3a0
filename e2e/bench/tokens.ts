import type { TokenUsage } from 'thinharness'

/** Usage of a reply without tokens: scripted models say what differs. */
export const NO_TOKENS: TokenUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
}
