import type { ModelDelta, RequestConstants, ToolChoice } from '../../contracts/model.js'
import type { AssistantPart, FinishReason, NativePart, TokenUsage, TranscriptEntry } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'

/**
 * One provider's API as pure functions, without I/O, clock or environment: how a transcript becomes a request, and how
 * a reply becomes parts. The request body is `{ ...head, [conversationField]: [...messages], ...tail }`, in this order,
 * so that the body of a longer conversation begins with the bytes of the shorter one.
 */
export interface WireFormat {
  /** Path below the base URL, such as `/responses`. */
  readonly path: string
  readonly conversationField: string
  /** What all requests of a session share: model, instructions, tools, settings. Empty fields are left out. */
  head(constants: RequestConstants): JsonObject
  /** Messages before the first entry, such as a system message. */
  opening(constants: RequestConstants): readonly JsonObject[]
  /**
   * Messages for entries that join the conversation together: never a part of a tool batch. Looks at `entries` and at
   * the constants that all requests of the session share, so `encode(a) ++ encode(b)` is what `encode(a ++ b)` gives.
   */
  encode(entries: readonly TranscriptEntry[], constants: RequestConstants): readonly JsonObject[]
  /** What differs between requests. */
  tail(options: TailOptions): JsonObject
  /** Fields of a request that the conversation before it asks for, such as the container in which programs of it ran. */
  carried?(transcript: readonly TranscriptEntry[], constants: RequestConstants): JsonObject
  /** A fresh fold over the chunks of one streamed reply. */
  fold(options: FoldOptions): ReplyFold
  /** A whole reply. Throws a `HarnessError` of code `provider_error` for an error in the guise of a reply. */
  decode(reply: unknown, options: FoldOptions): DecodedReply
}

export interface TailOptions {
  readonly streamed: boolean
  /** In place of the settings' choice. */
  readonly toolChoice: ToolChoice | undefined
  /** In place of the settings' cap of a reply. */
  readonly maxOutputTokens?: number | undefined
  /** The response that the server goes on from, when it keeps the conversation. */
  readonly previousResponseId: string | null
}

export interface FoldOptions {
  /** An id for the call at `index` of this reply, unique in the transcript, for a provider that gives none. */
  readonly callIdFor: (index: number) => string
  readonly onDelta: ((delta: ModelDelta) => void) | undefined
}

/** Adds up a streamed reply. Ends in the same `DecodedReply` as the whole reply would. */
export interface ReplyFold {
  /** Passes over chunks that it does not know. Throws `provider_error` for an error that comes inside the stream. */
  add(chunk: WireChunk): void
  /** Throws `provider_error` when the stream stopped before its terminal event. */
  end(): DecodedReply
}

/**
 * The `event` of a chunk that is no event: the server sent a whole reply where a stream was asked for, and `data` is
 * that reply. It comes alone, and no format sees it.
 */
export const WHOLE_REPLY = 'thinharness:whole_reply'

/** One server-sent event, its `data` parsed; `data` is null for `[DONE]`. */
export interface WireChunk {
  readonly event: string | null
  readonly data: unknown
}

export interface DecodedReply {
  readonly parts: readonly AssistantPart[]
  readonly finishReason: FinishReason
  readonly nativeFinishReason: string | null
  /** As in `ModelTurn`. */
  readonly refusal?: string
  readonly usage: TokenUsage
  /** As in `AssistantEntry`. */
  readonly native?: NativePart
  readonly responseId: string | null
  readonly responseModel: string | null
  readonly raw: unknown
}

/** One attempt at a request over some connection: the default transport, a handed-in `fetch`, an official client. */
export interface Transport {
  /** The form of body that it takes. */
  readonly bodies: 'bytes' | 'json'
  /** The whole reply, parsed. Rejects with `provider_error`, or with the reason of `request.signal`. */
  send(request: WireRequest): Promise<WireReply>
  /** The events of a streamed reply, all those of a network chunk at once. Rejects like `send`. */
  stream(request: WireRequest): AsyncIterable<readonly WireChunk[]>
  close(): Promise<void>
}

export interface WireRequest {
  readonly path: string
  /** What the provider wants beside authentication and content type. */
  readonly headers: Readonly<Record<string, string>>
  /** Pieces to be sent one after the other, or the body as an object: as `Transport.bodies` says. */
  readonly body: readonly Uint8Array[] | JsonObject
  readonly signal: AbortSignal
}

export interface WireReply {
  readonly json: unknown
  readonly headers: Readonly<Record<string, string>>
}
