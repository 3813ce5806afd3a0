import { FINISH_REASONS, tokenCounts } from '#contracts/entry.js'
import type {
  AssistantPart,
  Citation,
  ContentPart,
  NativePart,
  StoredFile,
  TokenUsage,
  TranscriptEntry,
} from '#contracts/entry.js'
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
  record,
  string,
  union,
} from '#util/validate.js'

export const json = anything<JsonValue>()
export const count = integer(0)
export const maybeCount = nullable(count)

export const native = optional(object<NativePart>({ provider: string, data: json }))

type Media<Type> = Extract<ContentPart, { readonly type: Type; readonly data: string }>

type LinkedImage = Extract<ContentPart, { readonly url: string }>
type WithNative<Part> = Part & { readonly native?: NativePart }

const imageFields = {
  linked: { type: oneOf('image'), url: string },
  inline: { type: oneOf('image'), data: string, mediaType: string },
} as const

const contentPart = union<ContentPart, 'type'>('type', {
  text: object({ type: oneOf('text'), text: string }),
  image: either(object<LinkedImage>(imageFields.linked), object<Media<'image'>>(imageFields.inline)),
  file: either(
    object<StoredFile>({
      ...{ type: oneOf('file'), id: string, provider: string },
      ...{ mediaType: optional(string), name: optional(string) },
    }),
    object<Media<'file'>>({ type: oneOf('file'), data: string, mediaType: string, name: optional(string) }),
  ),
  audio: object({ type: oneOf('audio'), data: string, mediaType: string }),
})

const citation = object<Citation>({
  url: optional(string),
  title: optional(string),
  from: count,
  to: count,
  fileId: optional(string),
  quote: optional(string),
})

const assistantPart = union<AssistantPart, 'type'>('type', {
  text: object({ type: oneOf('text'), text: string, annotations: optional(list(citation)), native }),
  reasoning: object({ type: oneOf('reasoning'), text: string, native }),
  tool_call: object({
    type: oneOf('tool_call'),
    callId: string,
    name: string,
    arguments: string,
    native,
  }),
  hosted: object({
    type: oneOf('hosted'),
    callId: string,
    name: string,
    source: CONTENT_SOURCE,
    arguments: optional(string),
    result: optional(string),
    isError: optional(oneOf(true)),
    native,
  }),
  image: either(
    object<WithNative<LinkedImage>>({ ...imageFields.linked, native }),
    object<WithNative<Media<'image'>>>({ ...imageFields.inline, native }),
  ),
  opaque: object({ type: oneOf('opaque'), native }),
})

const tokenUsage = object<TokenUsage>({
  ...tokenCounts(() => maybeCount),
  longCacheWriteTokens: optional(count),
  hostedCalls: optional(record(count)),
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
