import type { AssistantEntry, AssistantPart, ContentPart, JsonObject, ToolEntry, UserEntry } from '../index.js'
import type { Content } from './options.js'
import { CONTENT } from './names.js'

/** A message as the semantic conventions write it. */
export type Message = JsonObject

/** A message of a request. */
export function inputMessage(entry: UserEntry | ToolEntry, content: Content): Message {
  if (entry.role === 'user') return { role: 'user', parts: entry.content.map((part) => inputPart(part, content)) }
  const { callId, content: given } = entry
  if (typeof given === 'string') return toolMessage({ callId, output: given }, content)
  const [first, ...parts] = given
  return toolMessage({ callId, output: first?.type === 'text' ? first.text : '', parts }, content)
}

/** The result of a tool call as the model reads it. */
export function toolMessage(
  { callId, output, parts = [] }: { callId: string; output: string; parts?: readonly ContentPart[] },
  content: Content,
): Message {
  const response = content.kinds.toolResults ? content.redactJson(output, CONTENT.input) : NOT_CAPTURED
  const others = parts.map((part) => inputPart(part, content))
  return { role: 'tool', parts: [{ type: 'tool_call_response', id: callId, response }, ...others] }
}

/** A reply: reasoning as far as it is text, text, and tool calls. */
export function outputMessage({ parts, finishReason }: AssistantEntry, content: Content): Message {
  return {
    role: 'assistant',
    parts: parts.flatMap((part) => outputPart(part, content)),
    finish_reason: finishReason === 'tool_calls' ? 'tool_call' : finishReason,
  }
}

const NOT_CAPTURED = '[not captured]'

function inputPart(part: ContentPart, content: Content): JsonObject {
  if (part.type === 'text') return { type: 'text', content: content.redact(part.text, CONTENT.input) }
  const modality = part.type === 'file' ? 'document' : part.type
  if (!('url' in part)) return leftOut(modality, part.mediaType, part.data.length)
  const inline = /^data:([^;,]*)/i.exec(part.url)
  if (inline !== null) return leftOut(modality, inline[1] ?? '', part.url.length)
  return { type: 'uri', modality, uri: content.redact(part.url, CONTENT.input) }
}

/** The kind of the data is recorded; the data never reach a trace. */
function leftOut(modality: string, mediaType: string, characters: number): JsonObject {
  return { type: 'blob_left_out', modality, mime_type: mediaType, characters }
}

/** Signatures and other native data of a provider are never traced. */
function outputPart(part: AssistantPart, content: Content): JsonObject[] {
  switch (part.type) {
    case 'reasoning':
      return part.text === '' ? [] : [{ type: 'reasoning', content: content.redact(part.text, CONTENT.output) }]
    case 'text':
      return [{ type: 'text', content: content.redact(part.text, CONTENT.output) }]
    case 'tool_call': {
      const { callId: id, name, arguments: text } = part
      const given = content.kinds.toolArguments ? content.redactJson(text, CONTENT.output) : NOT_CAPTURED
      return [{ type: 'tool_call', id, name, arguments: given }]
    }
    case 'opaque':
      return []
  }
}
