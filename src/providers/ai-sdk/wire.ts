/** A reply in the form that `doGenerate` gives it and a stream adds up to, whatever the version. Unchecked. */
export interface AiSdkReply {
  readonly content: readonly Fields[]
  readonly finishReason: unknown
  readonly usage: unknown
  readonly providerMetadata: unknown
  /** `id`, `modelId`, `timestamp`, `headers`, and of a whole reply its `body`. */
  readonly response: Fields
  readonly warnings: readonly unknown[]
}

export type Fields = Readonly<Record<string, unknown>>

export function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as readonly unknown[]) : []
}

/** What a call shares with all others of its session; named as the specification names it. */
export type CallSettings = Readonly<Record<string, unknown>>

export type LanguageModelCall = CallSettings & {
  readonly prompt: readonly PromptMessage[]
  readonly abortSignal: AbortSignal
}

export type PromptMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user' | 'assistant' | 'tool'; readonly content: readonly PromptPart[] }

/** A part of a message, in the form of the model's specification. */
export interface PromptPart {
  readonly type: string
  readonly [field: string]: unknown
}
