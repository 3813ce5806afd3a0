import type { TokenUsage } from '../../index.js'
import { withoutMarks } from './checks.js'
import type { WireConversation, WireReply } from './api.js'

interface Prefix {
  readonly longer: Map<string, Prefix>
}

const CHARACTERS_A_TOKEN = 4
/** Then everything is forgotten: about 64 MiB. */
const MOST_CHARACTERS = 32 * 1024 * 1024

/**
 * What requests and replies cost, estimated from the lengths of their texts: the same for the same conversation. What
 * an earlier request began with, tools and instructions included, is read from the cache; no beginning is too short.
 */
export class PromptCache {
  #root: Prefix = { longer: new Map() }
  #characters = 0

  /** What a request costs. Keeps its beginning, as far as the API may; `scope` is what shares a cache. */
  inputOf(
    { prefix, cacheable }: WireConversation,
    scope: string,
  ): Pick<TokenUsage, 'inputTokens' | 'cacheReadTokens' | 'cacheWriteTokens'> {
    if (this.#characters > MOST_CHARACTERS) {
      this.#root = { longer: new Map() }
      this.#characters = 0
    }
    let at = this.#root.longer.get(scope) ?? this.#keep(this.#root, scope)
    let [all, read, written] = [0, 0, 0]
    for (const [index, member] of prefix.entries()) {
      const text = withoutMarks(member)
      const tokens = tokensIn(text.length)
      all += tokens
      if (index >= cacheable) continue
      const known = at.longer.get(text)
      if (known === undefined) written += tokens
      else read += tokens
      at = known ?? this.#keep(at, text)
    }
    return { inputTokens: all, cacheReadTokens: read, cacheWriteTokens: written }
  }

  #keep(at: Prefix, text: string): Prefix {
    const prefix = { longer: new Map<string, Prefix>() }
    at.longer.set(text, prefix)
    this.#characters += text.length
    return prefix
  }
}

/** What a reply costs. */
export function outputOf(parts: WireReply['parts']): Pick<TokenUsage, 'outputTokens' | 'reasoningTokens'> {
  let [outputTokens, reasoningTokens] = [0, 0]
  for (const part of parts) {
    const tokens = tokensIn(part.type === 'call' ? part.name.length + part.arguments.length : lengthOf(part))
    outputTokens += tokens
    if (part.type === 'reasoning') reasoningTokens += tokens
  }
  return { outputTokens, reasoningTokens }
}

function lengthOf(part: Exclude<WireReply['parts'][number], { type: 'call' }>): number {
  return part.type === 'block' ? JSON.stringify(part.data).length : part.text.length
}

function tokensIn(characters: number): number {
  return Math.ceil(characters / CHARACTERS_A_TOKEN)
}
