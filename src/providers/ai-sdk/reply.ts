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
