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
