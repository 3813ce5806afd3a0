import type { ModelDelta, RequestConstants, ToolChoice } from '#core/model-session.js'
import type { AssistantPart, FinishReason, NativePart, TokenUsage, TranscriptEntry } from '#contracts/entry.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import type { Late } from '#util/late.js'

/**
 * One provider's API as functions without I/O, clock or environment: from a transcript to a request, and from a reply to
 * parts. The request body is `{ ...head, [conversationField]: [...messages], ...tail }`, in this order, so that the body
 * of a longer conversation begins with the bytes of the shorter one.
 */
export interface WireFormat {
  /** Path below the base URL, such as `/responses`. */
  readonly path: string
  /** Path of a request for a stream, with its query, if it is another one. */
  readonly streamPath?: string
  readonly conversationField: string
  /** Bytes that a request may have, if the API says so. */
  readonly requestBytes?: number
  /** The fields that all requests of a session share: model, instructions, tools, settings. Empty fields are omitted. */
  head(constants: RequestConstants): JsonObject
  /** Messages before the first entry, such as a system message. */
  opening(constants: RequestConstants): readonly JsonObject[]
  /**
   * Messages for entries that join the conversation together: never a part of a tool batch. Depends on `entries` and on
   * the constants of the session only, so `encode(a) ++ encode(b)` equals `encode(a ++ b)`.
   */
  encode(entries: readonly TranscriptEntry[], constants: RequestConstants): readonly JsonObject[]
  /** Headers that the constants need, such as those of beta features. Default: none. */
  headers?(constants: RequestConstants): Readonly<Record<string, string>>
  /** The fields that differ between requests; one with the name of a field of the head replaces it. */
  tail(options: TailOptions, constants: RequestConstants): JsonObject
  /** Fields that depend on the conversation so far, such as the container in which its programs ran. */
  carried?(transcript: () => readonly TranscriptEntry[], constants: RequestConstants): JsonObject
  /** The API's own counter of tokens. */
  readonly counter?: TokenCounter
  /** The API's own compaction of conversations. */
  readonly compactor?: Compactor
  /** How the server keeps conversations, if that takes more than the id of a response. */
  readonly threads?: { readonly headers: Readonly<Record<string, string>>; readonly kept: readonly string[] }
  /** A new fold over the chunks of one streamed reply. */
  fold(options: ReplyFoldOptions): ReplyFold
  /** A whole reply. Throws `provider_error` if the reply is an error. */
  decode(reply: unknown, options: ReplyFoldOptions): DecodedReply
  /** Loads the functions of the format, which are missing before. Absent if all are there. */
  readonly load?: (() => Promise<void>) | undefined
}

/** What is known of a format before its functions are loaded. */
export interface KnownFormat extends Pick<WireFormat, 'path' | 'conversationField' | 'requestBytes' | 'counter'> {
  readonly compactor?: Pick<Compactor, 'path'>
}

/**
 * A format that is loaded by the first request to one of the models of an adapter: programs that import all adapters mostly use one. Once its
 * module is loaded, further models have the whole format at once.
 */
export function lateFormat<Module>(
  known: KnownFormat,
  source: Late<Module>,
  formatOf: (module: Module) => WireFormat,
): WireFormat {
  if (source.module !== null) return formatOf(source.module)
  let loading: Promise<void> | undefined
  const complete = async (): Promise<void> =>
    void Object.assign(format, formatOf(await source.load()), { load: undefined })
  // After a failure, the next request tries again.
  const format = { ...known, load: () => (loading ??= complete().finally(() => (loading = undefined))) }
  return format as KnownFormat as WireFormat
}

export interface TokenCounter {
  readonly path: string
  /** The fields of a request that it takes. */
  readonly fields: readonly string[]
  /** Its request, made of these fields. Default: the fields themselves. */
  readonly request?: (fields: JsonObject) => JsonObject
  /** The member of its answer. Default `input_tokens`. */
  readonly answer?: string
}

export interface Compactor {
  readonly path: string
  /** Of the request for a compaction, and of later ones that have it. */
  readonly headers: Readonly<Record<string, string>>
  /** The request for a compaction, made of an ordinary request for a reply to the conversation. */
  request(whole: JsonObject): JsonObject
  /** Throws `provider_error` for an answer without a compaction. */
  decode(reply: unknown): { readonly data: JsonValue; readonly text: string; readonly usage: TokenUsage }
}

export interface TailOptions {
  readonly streamed: boolean
  /** Replaces the choice of the settings. */
  readonly toolChoice: ToolChoice | undefined
  /** Replaces the limit of the settings. */
  readonly maxOutputTokens?: number | undefined
  /** The response that the server continues, if it stores the conversation. */
  readonly previousResponseId: string | null
  /** The server is to store the conversation. Default false. */
  readonly isChained?: boolean
}

export interface ReplyFoldOptions {
  /** An id for the call at `index` of this reply, unique in the transcript, if the provider sends none. */
  readonly callIdFor: (index: number) => string
  readonly onDelta: ((delta: ModelDelta) => void) | undefined
}

/** Adds up a streamed reply, to the same `DecodedReply` as the whole reply would give. */
export interface ReplyFold {
  /** Usage that was reported so far; absent if the API reports it at the end only. */
  readonly usage?: TokenUsage
  /** The reply has told how it ended. Default: only the end of the stream tells that. */
  readonly isComplete?: boolean
  /** Ignores unknown chunks. Throws `provider_error` for an error inside the stream. */
  add(chunk: WireChunk): void
  /** Throws `provider_error` if the stream stopped before its terminal event. */
  end(): DecodedReply
}

/**
 * The `event` of a chunk that is a whole reply (`data`), sent by the server in place of a stream. It is the only chunk,
 * and no fold receives it.
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

/** One attempt at a request over some connection: the default transport, the caller's `fetch`, an official client. */
export interface Transport {
  /** The form of the bodies of its requests. */
  readonly bodies: 'bytes' | 'json'
  /** The whole reply, parsed, or a `StreamedAnswer`. Rejects with `provider_error`, or with the reason of `request.signal`. */
  send(request: TransportRequest): Promise<unknown>
  /** The events of a streamed reply, all those of a network chunk at once. Rejects like `send`. */
  stream(request: TransportRequest): AsyncIterable<readonly WireChunk[]>
  /** Another request to the same server, such as for a file: its answer as text. Absent if the connection has none. Rejects like `send`. */
  call?(request: OtherRequest): Promise<string>
  /** False if the server has forgotten this response, which it kept with a connection. Default: the server itself is asked. */
  holds?(responseId: string): boolean
  /** Opens a connection that the next request takes. Absent if it cannot. Rejects like `send`. */
  connect?(to: Pick<TransportRequest, 'path' | 'headers'>): Promise<void>
  close(): Promise<void>
}

/** An answer to a request that asked for no stream, which came as one: some gateways always stream. */
export class StreamedAnswer {
  readonly chunks: readonly WireChunk[]

  constructor(chunks: readonly WireChunk[]) {
    this.chunks = chunks
  }
}

export interface OtherRequest extends Pick<TransportRequest, 'path' | 'headers' | 'signal'> {
  readonly method: 'GET' | 'POST'
  readonly body: readonly Uint8Array[]
}

export interface TransportRequest {
  readonly path: string
  /** The provider's headers, without authentication and content type. */
  readonly headers: Readonly<Record<string, string>>
  /** Pieces that are sent one after the other, or the body as an object, depending on `Transport.bodies`. */
  readonly body: readonly Uint8Array[] | JsonObject
  readonly signal: AbortSignal
  /** The longest wait for the first byte and between two pieces, in ms, for this request. Default: the model's limits. */
  readonly idleMs?: number | undefined
  /** Gets the headers of the answer, as in `TurnOptions`. */
  readonly onHeaders?: ((headers: Readonly<Record<string, string>>) => void) | undefined
  /** Stores the id under which the provider works on the request, as in `TurnOptions`. */
  readonly submitted?: ((id: string) => Promise<void>) | undefined
  /** The id under which it was submitted earlier. */
  readonly resume?: string | undefined
  /** True once a stream has told how its reply ended: its end is then waited for briefly, and is not required. */
  readonly isComplete?: () => boolean
}
