import { TOKEN_FIELDS, UNREPORTED_USAGE } from '#contracts/entry.js'
import type { TokenUsage } from '#contracts/entry.js'
import type { Rendering } from './delivery.js'
import { resolveReply, withCallIds } from './reply.js'
import type { Reply } from './reply.js'
import { withoutMarks } from './wire/checks.js'
import type { WireApi, WireConversation, WireReply } from './wire/api.js'

/** The request of a reply and the form of the answer. */
export interface ReplyTo {
  readonly api: WireApi
  readonly conversation: WireConversation
  readonly model: string
  readonly streamed: boolean
}

/** 2026-01-01, in seconds: times are counted, not read, so that the same script gives the same bytes. */
const FIRST_CREATED = 1_767_225_600

/** Gives replies their ids and prices, and writes them in the form of an API. */
export class Renderer {
  readonly #cache = new PromptCache()
  #count = 0

  render(reply: Reply | string, to: ReplyTo): Rendering {
    const wireReply = this.#finish(reply, to)
    to.api.keep?.(to.conversation, wireReply)
    if (to.streamed) return { events: to.api.stream(wireReply), isStream: true }
    return { events: [JSON.stringify(to.api.whole(wireReply))], isStream: false }
  }

  #finish(reply: Reply | string, to: ReplyTo): WireReply {
    const { api, conversation, model } = to
    const { parts, finishReason, nativeFinishReason, usage } = resolveReply(reply)
    const count = ++this.#count
    const numbered = withCallIds(parts, conversation.messages, api.callId)
    return {
      id: count.toString(16).padStart(24, '0'),
      created: FIRST_CREATED + count,
      model,
      parts: numbered,
      finishReason,
      nativeFinishReason,
      usage: usage === null ? null : this.#price(usage, numbered, to),
      body: conversation.body,
    }
  }

  #price(given: Partial<TokenUsage>, parts: WireReply['parts'], { api, conversation, model }: ReplyTo): TokenUsage {
    if (TOKEN_FIELDS.every((field) => given[field] !== undefined)) return { ...UNREPORTED_USAGE, ...given }
    const input = this.#cache.inputOf(conversation, model)
    const free = api.chargesCacheWrites ? {} : { cacheWriteTokens: 0 }
    return { ...UNREPORTED_USAGE, ...input, ...free, ...outputOf(parts), ...given }
  }
}

interface Prefix {
  readonly longer: Map<string, Prefix>
}

const CHARACTERS_A_TOKEN = 4
/** The cache is cleared above this: about 64 MiB. */
const MOST_CHARACTERS = 32 * 1024 * 1024

/**
 * The cost of requests and replies, estimated from the lengths of their texts: the same for the same conversation. The
 * common beginning with an earlier request, tools and instructions included, is read from the cache, however short.
 */
class PromptCache {
  #root: Prefix = { longer: new Map() }
  #characters = 0

  /** The cost of a request. Remembers its beginning as far as the API may; `scope` names the cache. */
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

/** The cost of a reply. */
function outputOf(parts: WireReply['parts']): Pick<TokenUsage, 'outputTokens' | 'reasoningTokens'> {
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
