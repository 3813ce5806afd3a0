import { UNREPORTED_USAGE } from '#contracts/entry.js'
import type { AssistantPart, TranscriptEntry } from '#contracts/entry.js'
import type { Model, ModelCapabilities, ModelDelta, RequestConstants } from '#core/model-session.js'
import { parse } from '#contracts/parse.js'
import { isObject } from '#util/json.js'
import type { JsonObject } from '#util/json.js'
import { filledString, functionOf, object, optional, partial, record, string } from '#util/validate.js'
import { errorFromBody, providerError } from './http/provider-errors.js'
import type { ProviderOptions } from './http/options.js'
import type { DecodedReply, ReplyFoldOptions, TailOptions, WireFormat } from './http/wire-format.js'
import { ReplyCallIds } from './wire/call-ids.js'
import { wireModel } from './wire/wire-model.js'
import { parseModelOptions, PROVIDER_OPTIONS } from './wire/options.js'
import { emitPart } from './wire/wire-session.js'
import { settingsOf, withCallerFields } from './wire/request-settings.js'

/** A reply as an adapter of one's own reads it. */
export type HttpReply = Pick<DecodedReply, 'parts' | 'finishReason'> & Partial<DecodedReply>

/** What reading one reply needs. */
export interface HttpReplyOptions {
  /** The final id of the next call: the provider's, or a new one if that is missing or repeated. Once for each call. */
  readonly callId: (id: unknown) => string
  /** Emits a piece of a streamed reply. */
  readonly onDelta: (delta: ModelDelta) => void
  /** Emits a part of a streamed reply that came at once. */
  readonly emit: (part: AssistantPart) => void
}

/** Adds up a streamed reply. */
export interface HttpReplyFold {
  /** One server-sent event, parsed. Unknown ones are ignored. */
  add(event: unknown): void
  /** The reply, once the stream has ended. Throws if it was cut. */
  end(): HttpReply
}

/** An API over HTTP as functions without I/O. Its request is `{ ...head, [conversationField]: messages, ...tail }`. */
export interface HttpApi {
  /** Name of the provider in entries and events, and in `providerOptions`. */
  readonly provider: string
  readonly id: string
  readonly baseUrl: string
  /** Below the base URL, such as `/messages`. */
  readonly path: string
  /** The field of a request that holds the conversation. Default `messages`. */
  readonly conversationField?: string | undefined
  /** The environment variable that replaces `apiKey` of the options. Default: none, and a key is optional. */
  readonly apiKeyVariable?: string | undefined
  /** The headers with the key. Default `authorization: Bearer …`. */
  readonly auth?: ((key: string) => Readonly<Record<string, string>>) | undefined
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly capabilities?: ModelCapabilities | undefined
  /** The fields that all requests of a session share: model, instructions, tools, settings. */
  readonly head: (constants: RequestConstants) => JsonObject
  /**
   * Messages for entries that join the conversation together. Each call in them has its one result, directly after its reply.
   * `encode(a)` and `encode(b)` are `encode` of both.
   */
  readonly encode: (entries: readonly TranscriptEntry[], constants: RequestConstants) => readonly JsonObject[]
  /** The fields that differ between requests, such as `stream`. Default: none. */
  readonly tail?: ((options: TailOptions) => JsonObject) | undefined
  /** A whole reply. A body with an `error` never comes here, and its parts are emitted for you. */
  readonly decode: (reply: unknown, options: HttpReplyOptions) => HttpReply
  /** A new fold over the events of one streamed reply. Default: replies are not streamed. */
  readonly fold?: ((options: HttpReplyOptions) => HttpReplyFold) | undefined
}

const API = object<HttpApi>({
  provider: filledString,
  id: filledString,
  baseUrl: string,
  path: filledString,
  conversationField: optional(filledString),
  apiKeyVariable: optional(filledString),
  auth: optional(functionOf()),
  headers: optional(record(string)),
  capabilities: optional(PROVIDER_OPTIONS.capabilities),
  head: functionOf(),
  encode: functionOf(),
  tail: optional(functionOf()),
  decode: functionOf(),
  fold: optional(functionOf()),
})
const OPTIONS = partial<ProviderOptions>(PROVIDER_OPTIONS)

/**
 * A model of an API of one's own, with all that the built-in adapters have: transport, retries, time limits, classes of
 * failures, a mended history, requests that begin with the bytes of the earlier ones. `options` are those of every model.
 * Throws `invalid_options`.
 */
export function httpModel(api: HttpApi, options: Omit<ProviderOptions, 'client'> = {}): Model {
  const given = parse(API, api, '`httpModel`')
  const defaults = parseModelOptions(OPTIONS, options, 'httpModel')
  const { provider, id, baseUrl, apiKeyVariable = '', capabilities = {} } = given
  return wireModel({
    ...{ provider, id, apiKeyVariable, capabilities, headers: given.headers ?? {} },
    options: { ...defaults, baseUrl: defaults.baseUrl ?? baseUrl },
    format: formatOf(given, defaults),
    defaultBaseUrl: baseUrl,
    keyOptional: apiKeyVariable === '',
    auth: given.auth ?? ((key) => ({ authorization: `Bearer ${key}` })),
    clientCall: '',
  })
}

function formatOf(api: HttpApi, defaults: ProviderOptions): WireFormat {
  const { provider, conversationField = 'messages', tail, decode, fold } = api
  return {
    path: api.path,
    conversationField,
    head(constants) {
      const { settings } = constants
      const own = api.head({ ...constants, settings: { ...settings, ...settingsOf(settings, defaults) } })
      return [defaults.extraBody, settings.providerOptions?.[provider]].reduce(withCallerFields, own)
    },
    opening: () => [],
    encode: (entries, constants) => api.encode(entries, constants),
    tail: (options) => tail?.(options) ?? {},
    decode: (reply, options) => whole(decode(checked(reply), readingOf({ ...options, onDelta: undefined })), reply),
    fold(options) {
      if (fold === undefined)
        throw providerError('The provider sent a stream, which was not asked for.', { failure: 'server' })
      const own = fold(readingOf(options))
      const events: unknown[] = []
      return {
        add({ data }) {
          if (data === null) return
          events.push(data)
          own.add(checked(data))
        },
        end: () => whole(own.end(), events),
      }
    },
  }
}

function readingOf({ callIdFor, onDelta = () => undefined }: ReplyFoldOptions): HttpReplyOptions {
  const ids = new ReplyCallIds(callIdFor)
  return { callId: (id) => ids.take(id), onDelta, emit: (part) => emitPart(part, { onDelta }) }
}

/** Throws for an error in a body of status 200, or in an event. */
function checked(data: unknown): unknown {
  const error = isObject(data) ? data['error'] : undefined
  if (error === undefined || error === null || error === false) return data
  throw errorFromBody(200, {}, data)
}

function whole(reply: HttpReply, raw: unknown): DecodedReply {
  const none = { nativeFinishReason: null, usage: UNREPORTED_USAGE, responseId: null, responseModel: null, raw }
  return { ...none, ...reply }
}
