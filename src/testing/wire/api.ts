import type { ResolvedPart } from '../reply.js'
import type { ScriptMessage } from '../script-request.js'
import type { FinishReason, TokenUsage } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'

/** A wire format as a server speaks it: reads requests strictly, writes replies whole and as events. */
export interface WireApi {
  /** Throws a `WireRefusal` for requests that the API rejects. */
  readonly read: (request: ApiRequest) => WireConversation
  /** An id for the tool call of this number, in the API's form. */
  readonly callId: (ordinal: number) => string
  readonly whole: (reply: WireReply) => JsonObject
  /** The server-sent events of a streamed reply, each with its blank line. */
  readonly stream: (reply: WireReply) => string[]
  /** The body of an error answer. */
  readonly error: (status: number, message: string, details?: ErrorDetails) => JsonObject
  /** An error in the middle of a stream. */
  readonly errorEvent: (message: string) => string
  /** Writes to the prompt cache have a price of their own. */
  readonly chargesCacheWrites: boolean
  /** Is called with each reply, for an API that stores them. */
  readonly keep?: (conversation: WireConversation, reply: WireReply) => void
}

export interface ApiRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: WireBody
}

export type WireBody = Readonly<Record<string, unknown>>

/** The content of a request, in the same form for all APIs. */
export interface WireConversation {
  readonly messages: readonly ScriptMessage[]
  readonly instructions: string
  /** Names of the tools that are offered. */
  readonly tools: readonly string[]
  readonly body: WireBody
  /** The request in the order in which a prompt cache compares it. */
  readonly prefix: readonly unknown[]
  /** How many members of `prefix` the API may keep for a later request. */
  readonly cacheable: number
  /** The request names an earlier reply in place of the messages before it. Default false. */
  readonly isContinuation?: boolean
}

/** A reply with its ids and its price. */
export interface WireReply {
  /** Unique among the replies of a server: hexadecimal digits. */
  readonly id: string
  /** Unix time in seconds. */
  readonly created: number
  readonly model: string
  readonly parts: readonly ResolvedPart<string | null>[]
  readonly finishReason: FinishReason
  readonly nativeFinishReason: string | undefined
  /** `null`: it is not reported. A field that is null is left out. */
  readonly usage: TokenUsage | null
  /** The request that it answers. */
  readonly body: WireBody
}

export interface ErrorDetails {
  readonly param?: string | null
  readonly code?: string | null
}

/** A request that the API rejects, with its own message. */
export class WireRefusal extends Error {
  override readonly name = 'WireRefusal'
  readonly status: number
  readonly details: ErrorDetails

  constructor(message: string, details: ErrorDetails = {}, status = 400) {
    super(message)
    this.status = status
    this.details = details
  }
}

/** One server-sent event. */
export function sseFrame(data: unknown, event?: string): string {
  const line = `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  return event === undefined ? line : `event: ${event}\n${line}`
}

/** An object without its members that are null. */
export function withoutNulls(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null))
}

/** The body of an error answer of OpenAI. */
export function openAiError(status: number, message: string, { param = null, code }: ErrorDetails = {}): JsonObject {
  return { error: { message, type: openAiErrorType(status), param, code: code ?? openAiErrorCode(status) } }
}

function openAiErrorType(status: number): string {
  if (status === 429) return 'requests'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

function openAiErrorCode(status: number): string | null {
  if (status === 401) return 'invalid_api_key'
  return status === 429 ? 'rate_limit_exceeded' : null
}
