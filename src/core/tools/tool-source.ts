import type { ContentPart } from '#contracts/entry.js'
import type { JsonObject, JsonSchema } from '#util/json.js'

/** The services of a host for its sources: one object per harness, the same in every call. */
export interface ToolSourceHost {
  /** Absolute paths of the folders that a source may know. */
  readonly roots: readonly string[]
  /** Reports events for the host that do not concern the model: a lost connection, a changed definition. */
  warn(message: string): void
  /** Asks the host's model, within its budget. Absent: a source that asks is refused. */
  readonly sample?: (request: SamplingRequest, call: SourceCall) => Promise<SamplingReply>
  /** Asks a person while the call waits. Absent: the call is suspended if its run can be paused, and refused otherwise. */
  readonly elicit?: (question: SourceQuestion, call: SourceCall) => Promise<SourceAnswer>
}

/** The call for which a source asks, if known; one of the open calls. */
export interface SourceCall {
  readonly sourceId: string
  readonly runId: string | null
  readonly callId: string | null
  /** Aborted when the source no longer waits for the answer. */
  readonly signal: AbortSignal
}

/** A source's request for a model's reply. Its texts come from the source: they are no instructions of the host. */
export interface SamplingRequest {
  /** System prompt; may be empty. */
  readonly instructions: string
  readonly messages: readonly SamplingMessage[]
  /** Cap of the reply, in tokens. */
  readonly maxOutputTokens: number
  readonly temperature: number | null
}

export interface SamplingMessage {
  readonly role: 'user' | 'assistant'
  readonly content: readonly ContentPart[]
}

export interface SamplingReply {
  readonly text: string
  /** The model that answered. */
  readonly model: string
  readonly stopReason: 'end_turn' | 'max_tokens'
}

/** A source wants something from a person. */
export interface SourceQuestion {
  readonly message: string
  /** Shape of the answer's `content`; null if an address is to be opened instead. */
  readonly schema: JsonSchema | null
  /** A page that the person is asked to open. Never opened by the harness. */
  readonly url: string | null
}

/** `decline`: the person said no. `cancel`: nobody answered. */
export type SourceAnswer =
  { readonly action: 'accept'; readonly content: JsonObject } | { readonly action: 'decline' | 'cancel' }
