import { estimateEntry } from '#contracts/estimate.js'
import type { TokenUsage, TranscriptEntry } from '#contracts/entry.js'
import type { ModelCapabilities, RequestConstants } from '#core/model-session.js'

/** What a model has to take to continue a conversation. Looks at each entry once. */
export class ConversationNeeds {
  readonly #media = new Set<string>()
  /** Tokens of the entries that were looked at: as the provider counted them, else a rough estimate. */
  #tokens = 0
  #seen = 0
  #generation: number | null = null

  /** The conversation of the next request. Under one generation it only grows. */
  note(view: readonly TranscriptEntry[], generation: number): void {
    if (generation !== this.#generation) {
      this.#media.clear()
      this.#tokens = 0
      this.#seen = 0
      this.#generation = generation
    }
    for (; this.#seen < view.length; this.#seen++) {
      const entry = view[this.#seen]
      if (entry === undefined) break
      this.#tokens += estimateEntry(entry)
      if (entry.role === 'assistant' || typeof entry.content === 'string') continue
      for (const { type } of entry.content) this.#media.add(type)
    }
  }

  /** The provider has counted the conversation so far. */
  measure({ inputTokens, outputTokens }: TokenUsage): void {
    if (inputTokens !== null && inputTokens > 0) this.#tokens = inputTokens + (outputTokens ?? 0)
    // The reply is counted already.
    this.#seen += 1
  }

  /** True unless the model is known not to take it. */
  fit(
    { inputs, hostedTools, contextTokens = Infinity }: ModelCapabilities,
    tools: RequestConstants['tools'] = [],
  ): boolean {
    if (this.#tokens > contextTokens) return false
    const hasAll = tools.every(({ hosted }) => hosted === undefined || hostedTools?.includes(hosted.kind) !== false)
    if (!hasAll) return false
    return inputs === undefined || [...this.#media].every((type) => type === 'text' || inputs.includes(type as 'image'))
  }
}
