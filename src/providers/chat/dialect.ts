import { acceptedCallId } from '../wire/call-ids.js'
import type { KnownFormat } from '../http/wire-format.js'
import { hostOf } from '../wire/credentials.js'
import type { AssistantPart } from '#contracts/entry.js'
import type { ReasoningEffort } from '#core/model-session.js'
import { isObject } from '#util/json.js'
import type { JsonObject, JsonValue } from '#util/json.js'
import { sha256 } from '#util/platform/sha256.js'
import { boolean, either, list, oneOf, partial, string } from '#util/validate.js'

/** What is known of the API before its format is loaded. */
export const COMPLETIONS = { path: '/chat/completions', conversationField: 'messages' } satisfies KnownFormat

/** Message fields with reasoning as plain text, by server. If a message has both, they are equal. */
export const REASONING_FIELDS = ['reasoning_content', 'reasoning'] as const

export type ReasoningField = (typeof REASONING_FIELDS)[number]

/**
 * A part's original form and place in the message, for sending it back.
 * `detail`: an entry of `reasoning_details`. `field`: the message field with the reasoning's text. `block`: an element of
 * a `content` list. `call`: the fields of a tool call other than id, name and arguments. `message`: any other field of
 * the message, such as `annotations`.
 */
export type ChatNative =
  | { readonly form: 'detail'; readonly value: JsonObject }
  | { readonly form: 'field'; readonly value: ReasoningField }
  | { readonly form: 'block'; readonly value: JsonObject }
  | { readonly form: 'call'; readonly value: JsonObject }
  | { readonly form: 'message'; readonly value: JsonObject }

/** The original form of `part`; undefined for a part of another provider. */
export function chatNativeOf(part: AssistantPart, provider: string): ChatNative | undefined {
  const { native } = part
  if (native?.provider !== provider || !isObject(native.data)) return undefined
  const { form, value } = native.data
  if (form === 'field') {
    const field = REASONING_FIELDS.find((name) => name === value)
    return field === undefined ? undefined : { form, value: field }
  }
  const isKnown = form === 'detail' || form === 'block' || form === 'call' || form === 'message'
  return isKnown && isJsonObject(value) ? { form, value } : undefined
}

/** The same, in the form that a part stores. */
export function chatNativePart(
  provider: string,
  { form, value }: ChatNative,
): { readonly provider: string; readonly data: JsonValue } {
  return { provider, data: { form, value } }
}

/** True for an object; values in parsed JSON are JSON. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isObject(value)
}

/**
 * How requests to a server of the chat completions API differ from those to others. Replies need no entry here: all
 * known forms are read from every server.
 */
export interface ChatDialect {
  /** Role of the message that holds the instructions. */
  readonly instructionsRole: 'system' | 'developer'
  /** Field of the cap of one reply. */
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens'
  /** Field of the reasoning effort: `reasoning_effort`, or `effort` within `reasoning`. */
  readonly effortField: 'reasoning_effort' | 'reasoning'
  /** The server's names for efforts that it calls differently. */
  readonly efforts: Readonly<Partial<Record<ReasoningEffort, string>>>
  /** The usage of a stream is requested with `stream_options`. */
  readonly streamOptions: boolean
  /** The server's own reasoning is sent back to it, in its original form. If false, it is left out. */
  readonly replaysReasoning: boolean
  /** Field that every assistant message must have in a conversation of a reasoning model, possibly empty. */
  readonly requiredReasoningField: ReasoningField | null
  /** Other fields of the server's own messages that are sent back to it. */
  readonly replayedFields: 'all' | readonly string[]
  /** The `content` of an assistant message without text. */
  readonly emptyContent: 'absent' | 'null'
  /** The content of a user message may be a list of parts; if false, only text can be sent. */
  readonly contentLists: boolean
  /** Call ids that are accepted; others are translated. */
  readonly callIds: 'any' | 'up_to_40' | 'nine_alphanumeric'
  /** Arguments of a tool call in the history may be any string; if false, anything but a JSON object is wrapped in one. */
  readonly anyArguments: boolean
  /**
   * Keys of tools' properties may be any string; if false, those outside of `[a-zA-Z0-9_.-]{1,64}` are left out of requests, which
   * Claude models would reject. Default: false for OpenRouter and for names with `claude`.
   */
  readonly anyKeys: boolean
  /** Requests with the same beginning get the same `prompt_cache_key`, so that they use the same cache. */
  readonly cacheKeys: boolean
  /** The server understands the marks of Anthropic's prompt cache. */
  readonly cacheMarks: boolean
  /** Accepted media types of each kind of part. */
  readonly imageTypes: MediaTypes
  readonly fileTypes: MediaTypes
  readonly audioTypes: MediaTypes
}

/** Accepted media types; `any`: the server decides. */
export type MediaTypes = 'any' | readonly string[]

/** An unknown server: requests are cautious. */
const UNKNOWN_SERVER: ChatDialect = {
  instructionsRole: 'system',
  maxTokensField: 'max_tokens',
  effortField: 'reasoning_effort',
  efforts: {},
  streamOptions: true,
  replaysReasoning: true,
  requiredReasoningField: null,
  replayedFields: 'all',
  emptyContent: 'null',
  contentLists: true,
  callIds: 'any',
  anyArguments: false,
  anyKeys: true,
  cacheKeys: false,
  cacheMarks: false,
  imageTypes: 'any',
  fileTypes: 'any',
  audioTypes: 'any',
}

export const OPENAI: ChatDialect = {
  ...UNKNOWN_SERVER,
  maxTokensField: 'max_completion_tokens',
  replayedFields: ['refusal', 'audio'],
  callIds: 'up_to_40',
  anyArguments: true,
  cacheKeys: true,
  imageTypes: ['image/png', 'image/jpeg', 'image/webp', 'image/gif'],
  fileTypes: ['application/pdf'],
  audioTypes: ['audio/wav', 'audio/mpeg'],
}

export const OPENROUTER: ChatDialect = {
  ...UNKNOWN_SERVER,
  effortField: 'reasoning',
  anyKeys: false,
  emptyContent: 'absent',
}

/** Rejects unknown fields of messages and requests; always reports the usage of a stream. */
const MISTRAL: Partial<ChatDialect> = { callIds: 'nine_alphanumeric', replayedFields: [], streamOptions: false }
/** Rejects unknown fields of messages. */
const GROQ: Partial<ChatDialect> = { replayedFields: [] }
/** When reasoning, rejects assistant messages without `reasoning_content`; rejects lists as content. */
const DEEPSEEK: Partial<ChatDialect> = { requiredReasoningField: 'reasoning_content', contentLists: false }

/** Rejects fields that its version of the API does not have. */
const AZURE: Partial<ChatDialect> = { ...OPENAI, cacheKeys: false }

/** Known servers, by the end of their host name. */
const KNOWN_SERVERS: readonly (readonly [host: string, dialect: Partial<ChatDialect>])[] = [
  ['api.mistral.ai', MISTRAL],
  ['api.groq.com', GROQ],
  ['api.deepseek.com', DEEPSEEK],
  ['api.openai.com', OPENAI],
  ['.openai.azure.com', AZURE],
]

/** The dialect of the server at `baseUrl`; the user's fields take precedence. */
export function dialectFor(baseUrl: string, given: Partial<ChatDialect>): ChatDialect {
  const host = hostOf(baseUrl).replace(/:\d+$/, '')
  const known = KNOWN_SERVERS.find(([end]) => (end.startsWith('.') ? host.endsWith(end) : host === end))
  return { ...UNKNOWN_SERVER, ...known?.[1], ...given }
}

const mediaTypes = either(oneOf('any'), list(string, 'a list of media types'))

/** A part of a dialect, as users give it. */
export const DIALECT = partial<Partial<ChatDialect>>({
  instructionsRole: oneOf('system', 'developer'),
  maxTokensField: oneOf('max_tokens', 'max_completion_tokens'),
  effortField: oneOf('reasoning_effort', 'reasoning'),
  efforts: partial({
    none: string,
    minimal: string,
    low: string,
    medium: string,
    high: string,
    xhigh: string,
    max: string,
  }),
  streamOptions: boolean,
  replaysReasoning: boolean,
  requiredReasoningField: oneOf(...REASONING_FIELDS, null),
  replayedFields: either(oneOf('all'), list(string, 'a list of names')),
  emptyContent: oneOf('absent', 'null'),
  contentLists: boolean,
  callIds: oneOf('any', 'up_to_40', 'nine_alphanumeric'),
  anyArguments: boolean,
  anyKeys: boolean,
  cacheKeys: boolean,
  cacheMarks: boolean,
  imageTypes: mediaTypes,
  fileTypes: mediaTypes,
  audioTypes: mediaTypes,
})

/**
 * A call id as the server accepts it: unchanged, or a digest, the same for the call and its result. A server that accepts
 * any id gets its own back unchanged; a server behind a gateway may require short ids for those of others.
 */
export function wireCallId(callId: string, rule: ChatDialect['callIds'], isOwn: boolean): string {
  if (rule === 'any' && isOwn) return callId
  if (rule !== 'nine_alphanumeric') return acceptedCallId(callId, /^[^]{0,40}$/)
  if (/^[a-zA-Z0-9]{9}$/.test(callId)) return callId
  const bytes = sha256(callId).match(/../g)?.slice(0, 9) ?? []
  return bytes.map((byte) => ALPHABET[Number.parseInt(byte, 16) % ALPHABET.length]).join('')
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
