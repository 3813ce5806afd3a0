import { mediumOf } from '#run/messages/message-media.js'
import { At } from '#run/messages/message-place.js'
import { plainBase64 } from '#util/base64.js'
import { isObject } from '#util/json.js'
import type { ContentPart } from '#contracts/entry.js'
import { inside, listOf, saidIn, textIn, timeOf } from './record-fields.js'
import { leftOut } from './session.js'
import type { FileRecord, ReplyFacts, Session } from './session.js'

/** The content of a message as parts: text for itself, or text among parts, is a part of its own. */
export function partsOf(content: unknown): readonly FileRecord[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  const list = Array.isArray(content) ? listOf(content) : [content]
  return list.flatMap((part) => {
    if (typeof part === 'string') return [{ type: 'text', text: part }]
    return isObject(part) ? [part] : []
  })
}

const MEDIA = new Set([
  ...['image', 'image_url', 'input_image', 'image-url', 'image-data', 'document', 'file', 'input_file', 'file-data'],
  ...['file-url', 'media', 'audio', 'input_audio', 'video'],
])

/** The text of a part, whatever its field is called. */
function textOfPart({ type, text, content }: FileRecord): string | undefined {
  if (type !== undefined && !TEXT_TYPES.has(type as string)) return undefined
  return [text, content].find((each) => typeof each === 'string')
}

const TEXT_TYPES = new Set(['text', 'input_text', 'output_text', 'summary_text', 'reasoning_text', 'refusal'])

/** A message of a person, with the results of tools that some files have in it. `isMeta`: no person wrote its texts. */
export function readUser(session: Session, content: unknown, { at = null, isMeta = false }: Message = {}): void {
  const said: ContentPart[] = []
  for (const part of partsOf(content)) {
    const text = textOfPart(part)
    if (typeof part['type'] === 'string' && isResult(part['type'])) readToolResult(session, part, at)
    else if (text !== undefined) {
      const own = saidIn(text)
      if (own !== null) said.push({ type: 'text', text: own })
    } else if (MEDIA.has(part['type'] as string))
      said.push(mediumIn(part) ?? { type: 'text', text: leftOut(part['type']) })
    else session.leave(part['type'])
  }
  if (!isMeta) session.said(said, at)
}

interface Message {
  readonly at?: string | null
  readonly isMeta?: boolean
}

function isResult(type: string): boolean {
  return type === 'tool_result' || type === 'tool-result' || type.endsWith('_tool_result') || type === 'toolResult'
}

/** The parts of a reply. */
export function readAssistant(session: Session, content: unknown, facts: ReplyFacts): void {
  session.reply(facts)
  for (const part of partsOf(content)) readReplyPart(session, part, facts.at ?? null)
}

function readReplyPart(session: Session, part: FileRecord, at: string | null): void {
  const { type } = part
  switch (type) {
    case 'thinking':
    case 'reasoning':
    case 'redacted_thinking':
    case 'redacted-reasoning':
      return session.reasoning(
        [part['thinking'], part['text'], part['content']].find((each) => typeof each === 'string'),
      )
    case 'tool_use':
    case 'tool-call':
    case 'toolCall':
    case 'server_tool_use':
    case 'mcp_tool_use': {
      const hosted = type === 'server_tool_use' || type === 'mcp_tool_use' || part['providerExecuted'] === true
      const input = part['input'] ?? part['arguments'] ?? part['args']
      return session.call({
        id: part['id'] ?? part['toolCallId'],
        name: part['name'] ?? part['toolName'],
        input,
        hosted,
      })
    }
    default:
      if (typeof type === 'string' && isResult(type)) return readToolResult(session, part, at)
      if (type === 'refusal') return session.text(part['refusal'])
      if (textOfPart(part) !== undefined) return session.text(textOfPart(part))
      if (!NO_CONTENT.has(type as string)) session.leave(type)
  }
}

/** Parts that say nothing: marks, and pictures of a reply. */
const NO_CONTENT = new Set(['step-start', 'source-url', 'source-document', 'tool-approval-request', ...MEDIA])

/** A result of a tool, as a part of a message or as a message of its own. */
export function readToolResult(session: Session, part: FileRecord, at: string | null): void {
  const { content, output, result, tool_use_id: used, tool_call_id: called, toolCallId, call_id: item } = part
  const value = content ?? output ?? result ?? ''
  const isWrapped = isObject(value) && typeof value['type'] === 'string' && 'value' in value
  const kind = isWrapped ? String(value['type']) : ''
  const isError = [part['is_error'], part['isError']].includes(true) || /^(?:error|execution-denied)/.test(kind)
  session.result({
    id: used ?? called ?? toolCallId ?? item,
    ...outputOf(isWrapped ? value['value'] : value),
    isError,
    at,
  })
}

/** What a tool gave: its text, and its pictures and files. */
export function outputOf(value: unknown): { readonly content: string; readonly media: readonly ContentPart[] } {
  if (typeof value === 'string') return { content: value, media: [] }
  const isParts = Array.isArray(value) || (isObject(value) && textOfPart(value) !== undefined)
  if (!isParts) return { content: value === undefined ? '' : JSON.stringify(value), media: [] }
  const media: ContentPart[] = []
  const texts = partsOf(value).map((part) => {
    const text = textOfPart(part)
    if (text !== undefined) return text
    const medium = MEDIA.has(part['type'] as string) ? mediumIn(part) : null
    if (medium === null) return MEDIA.has(part['type'] as string) ? leftOut(part['type']) : JSON.stringify(part)
    media.push(medium)
    return ''
  })
  return { content: texts.filter((text) => text !== '').join('\n'), media }
}

/** A picture or a file, if its bytes or its address are there; null if not. */
function mediumIn(part: FileRecord): ContentPart | null {
  try {
    const { source, mime } = part
    const data = part['data'] ?? part['url'] ?? inside(source)['value']
    const medium = mediumOf(
      {
        ...part,
        ...(data !== undefined && { data, image: data, source: undefined }),
        ...(mime !== undefined && { mediaType: mime }),
      },
      new At('file'),
    )
    return 'data' in medium && (medium.data === '' || plainBase64(medium.data) === null) ? null : medium
  } catch {
    return null
  }
}

/** An item of the Responses API. False: it is none that is known. */
export function readItem(session: Session, item: FileRecord, at: string | null = null): boolean {
  const type = textIn(item['type']) ?? 'message'
  const id = item['call_id'] ?? item['id']
  if (type === 'message') return readAgentMessage(session, item, { at })
  if (type === 'reasoning') {
    const texts = [...partsOf(item['summary'] ?? []), ...partsOf(item['content'] ?? [])].map(textOfPart)
    session.reply({ at })
    session.reasoning(texts.filter((text) => text !== undefined).join('\n\n'))
    return true
  }
  if (type === 'function_call' && typeof item['name'] !== 'string') return false
  if (CALL_ITEMS.test(type)) {
    session.reply({ at })
    const input = item['arguments'] ?? item['input'] ?? item['action'] ?? item['queries'] ?? item['code']
    const hosted = HOSTED_ITEMS.test(type)
    session.call({ id, name: item['name'] ?? type.replace(/_call$/, ''), input, hosted })
    return true
  }
  if (!OUTPUT_ITEMS.test(type)) return false
  const { output, tools } = item
  const success = inside(item, 'output')['success']
  const given = isObject(output) && output['content'] !== undefined ? output['content'] : (output ?? tools)
  session.result({ id, ...outputOf(given), isError: success === false || item['status'] === 'failed', at })
  return true
}

const HOSTED_ITEMS = /^(?:web_search|file_search|code_interpreter|image_generation|mcp)_call$/
const CALL_ITEMS =
  /^(?:function|custom_tool|local_shell|shell|apply_patch|computer|tool_search|web_search|file_search|code_interpreter|image_generation|mcp)_call$|^custom_tool_call$/
const OUTPUT_ITEMS =
  /^(?:function|custom_tool|local_shell|shell|apply_patch|computer)_call_output$|^tool_search_output$/

/** The calls of a message of chat completions, or of a record like it. */
export function readCalls(session: Session, calls: unknown): void {
  for (const call of partsOf(calls ?? [])) {
    const { id, custom, function: called = custom ?? call } = call
    const { name, arguments: given, input } = inside(called)
    session.call({ id, name, input: given ?? input })
  }
}

/** A message of chat completions, of Anthropic, or of the AI SDK. False: nobody knows its role. */
export function readAgentMessage(session: Session, message: FileRecord, facts: ReplyFacts = {}): boolean {
  const { role, content } = message
  const at = facts.at ?? timeOf(message['timestamp'])
  switch (role) {
    case 'user':
    case 'human':
      readUser(session, content, { at })
      return true
    case 'assistant': {
      readAssistant(session, [], { at, model: textIn(message['model']), ...facts })
      const thoughts = [message['reasoning'], message['reasoning_content'], message['thinking']].find(textIn)
      if (thoughts !== undefined) session.reasoning(thoughts)
      for (const part of partsOf(content ?? [])) readReplyPart(session, part, at)
      session.text(message['refusal'])
      readCalls(session, message['tool_calls'])
      return true
    }
    case 'tool':
    case 'function':
    case 'toolResult':
      readToolMessage(session, message, at)
      return true
    default:
      return role === 'system' || role === 'developer'
  }
}

/** A message of a tool: with parts in the AI SDK, with an id of its own elsewhere. */
function readToolMessage(session: Session, message: FileRecord, at: string | null): void {
  const parts = partsOf(message['content'])
  const results = parts.filter(({ type }) => type === 'tool-result')
  for (const part of results) readToolResult(session, part, at)
  const isAnswer = parts.some(({ type }) => type === 'tool-approval-response')
  if (results.length === 0 && !isAnswer) readToolResult(session, message, at)
}
