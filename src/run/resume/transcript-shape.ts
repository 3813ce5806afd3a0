import { FINISH_REASONS, tokenCounts } from '#contracts/entry.js'
import type { AssistantPart, ContentPart, NativePart, TokenUsage, TranscriptEntry } from '#contracts/entry.js'
import { CONTENT_SOURCE } from '#core/extension/hooks.js'
import type { JsonValue } from '#util/json.js'
import {
  anything,
  boolean,
  either,
  integer,
  list,
  nullable,
  object,
  oneOf,
  optional,
  string,
  union,
} from '#util/shape.js'

export const json = anything<JsonValue>()
export const count = integer(0)
export const maybeCount = nullable(count)

export const native = optional(object<NativePart>({ provider: string, data: json }))

type Media<Type> = Extract<ContentPart, { readonly type: Type; readonly data: string }>

const contentPart = union<ContentPart, 'type'>('type', {
  text: object({ type: oneOf('text'), text: string }),
  image: either(
    object<Extract<ContentPart, { readonly url: string }>>({ type: oneOf('image'), url: string }),
    object<Media<'image'>>({ type: oneOf('image'), data: string, mediaType: string }),
  ),
  file: object({ type: oneOf('file'), data: string, mediaType: string, name: optional(string) }),
  audio: object({ type: oneOf('audio'), data: string, mediaType: string }),
})

const assistantPart = union<AssistantPart, 'type'>('type', {
  text: object({ type: oneOf('text'), text: string, native }),
  reasoning: object({ type: oneOf('reasoning'), text: string, native }),
  tool_call: object({
    type: oneOf('tool_call'),
    callId: string,
    name: string,
    arguments: string,
    native,
  }),
  opaque: object({ type: oneOf('opaque'), native }),
})

const tokenUsage = object<TokenUsage>({
  ...tokenCounts(() => maybeCount),
  longCacheWriteTokens: optional(count),
})

export const parts = list(contentPart)
export const content = either(string, parts)

const entry = union<TranscriptEntry, 'role'>('role', {
  user: object({
    id: string,
    at: string,
    role: oneOf('user'),
    content: parts,
    notice: optional(oneOf(true)),
    messageId: optional(string),
    callId: optional(string),
    source: optional(CONTENT_SOURCE),
    native,
  }),
  assistant: object({
    id: string,
    at: string,
    role: oneOf('assistant'),
    parts: list(assistantPart),
    provider: string,
    model: string,
    finishReason: oneOf(...FINISH_REASONS),
    usage: tokenUsage,
    native,
  }),
  tool: object({
    id: string,
    at: string,
    role: oneOf('tool'),
    callId: string,
    name: string,
    content,
    isError: boolean,
    source: optional(CONTENT_SOURCE),
  }),
})

/** The entries of a conversation. */
export const transcriptShape = list(entry)
