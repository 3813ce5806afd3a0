import { withCallIds } from './call-ids.js'
import type { TokenUsage } from '../index.js'
import type { Rendering } from './delivery.js'
import { resolveReply } from './reply.js'
import type { Reply } from './reply.js'
import type { WireApi, WireConversation, WireReply } from './wire/api.js'
import { outputOf, PromptCache } from './wire/prompt-cache.js'

/** Of what a reply is made beside the reply itself. */
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
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = given
    const isInputSaid = inputTokens !== undefined && cacheReadTokens !== undefined && cacheWriteTokens !== undefined
    if (isInputSaid && outputTokens !== undefined && reasoningTokens !== undefined) {
      return { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens }
    }
    const input = this.#cache.inputOf(conversation, model)
    const free = api.chargesCacheWrites ? {} : { cacheWriteTokens: 0 }
    return { ...input, ...free, ...outputOf(parts), ...given }
  }
}
