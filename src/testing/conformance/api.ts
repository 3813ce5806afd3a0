import type { JsonObject } from '#util/json.js'
import type { ScriptMessage } from '../conversation.js'
import type { ProviderApi } from '../scripted-provider.js'
import type { WireBody, WireReply, ApiRequest } from '../wire/api.js'
import { chatApi } from '../wire/chat.js'
import { messagesApi } from '../wire/messages.js'
import { responsesApi } from '../wire/responses.js'

/** The server's side of an API, for tests of its adapter: it reads requests and writes replies. */
export interface ConformanceApi {
  /** Reads a request. Throws for a request that the API rejects: the stricter, the better the tests. */
  read(request: ApiRequest): ReadRequest
  /** The body of a whole reply. */
  whole(reply: WireReply): JsonObject
  /** The same reply as a stream: the text of its events, in order. */
  stream(reply: WireReply): readonly string[]
  /** The body of an answer with an error status; it contains `message`. */
  error(status: number, message: string): JsonObject
  /** True if a request asks for a stream. Default: its `stream` is true. */
  isStreamed?(body: WireBody): boolean
  /** An id for the call of this number. Default `call_1` and so on. */
  callId?(ordinal: number): string
  /** A piece of a reply that the API does not have yet, with `mark` in it. Default: there can be none. */
  unknownBlock?(mark: string): JsonObject
  /** Is called with each reply, for an API that stores conversations. */
  keep?(request: ReadRequest, reply: WireReply): void
}

/** A request as a server understands it. */
export interface ReadRequest {
  /** The conversation, without instructions. */
  readonly messages: readonly ScriptMessage[]
  readonly instructions: string
  /** Names of the tools that are offered. */
  readonly tools: readonly string[]
  /** True if the server stores earlier messages and the request does not contain them. Default false. */
  readonly isContinuation?: boolean
}

/** The server's side of an API that is known here. */
export function knownApi(name: ProviderApi): ConformanceApi {
  switch (name) {
    case 'responses':
      return { ...responsesApi(), unknownBlock: (mark) => ({ type: 'future_item', id: `fu_${mark}`, note: mark }) }
    case 'chat':
      return { ...chatApi('openai'), unknownBlock: unknownField }
    case 'openrouter':
      return { ...chatApi('openrouter'), unknownBlock: unknownField }
    case 'messages':
      return { ...messagesApi, unknownBlock: (mark) => ({ type: 'future_block', note: mark }) }
  }
}

function unknownField(mark: string): JsonObject {
  return { future_field: { note: mark } }
}
