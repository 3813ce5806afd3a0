import { atOnce } from '#util/wrapped.js'
import type { ContentPart } from '#contracts/entry.js'
import type { JsonSchema } from '#util/json.js'
import type { ClientTool } from '#session/tools/client-tools.js'
import { isObject } from '#util/json.js'
import { InputError } from '../input-error.js'
import type { HeldMessage } from './sink.js'
import type { ClientResult, ResumeEntry } from './interrupts.js'

/** What a client posts, as far as it is read. */
export interface AgUiInput {
  readonly threadId: string
  readonly runId: string
  /** The messages that the client has. Only the last is read, if a person wrote it. */
  readonly messages: readonly HeldMessage[]
  /** The last message, if a person wrote it. */
  readonly message: { readonly id: string; readonly content: unknown } | null
  readonly resume: readonly ResumeEntry[] | null
  /** The results of the page's own tools with which the messages end. */
  readonly results: readonly ClientResult[]
  readonly tools: readonly ClientTool[]
}

const ROLES = ['developer', 'system', 'assistant', 'user', 'tool', 'activity', 'reasoning']

/**
 * Reads a `RunAgentInput`. Of `messages` only what they end with is read: a person's message, or results of the page's tools; `state`
 * and `context` are not. Throws an `InputError` that names the first mistake.
 */
export function readAgUiInput(body: unknown): AgUiInput {
  if (!isObject(body)) throw new InputError('Expected the body to be a RunAgentInput.')
  const [threadId, runId] = [readString(body, 'threadId'), readString(body, 'runId')]
  const given = readList(body, 'messages')
  const messages = given.map((message, index) => readMessage(message, `messages[${index}]`))
  const last = messages.at(-1)
  const message = last?.role === 'user' ? { id: last.id, content: last.content } : null
  const resume = body['resume'] === undefined ? null : readList(body, 'resume').map(readResumeEntry)
  if (body['context'] !== undefined) readList(body, 'context')
  const tools = body['tools'] === undefined ? [] : readList(body, 'tools').map(readTool)
  const held = messages.map(({ id, role }) => ({ id, role }))
  return { threadId, runId, messages: held, message, resume, results: clientResults(given), tools }
}

function readString(body: Readonly<Record<string, unknown>>, name: string): string {
  const value = body[name]
  if (typeof value === 'string' && value !== '') return value
  throw new InputError(`Expected \`${name}\` to be a string that is not empty, got ${shortJson(value)}.`)
}

function readList(body: Readonly<Record<string, unknown>>, name: string): readonly unknown[] {
  const value = body[name]
  if (Array.isArray(value)) return value
  throw new InputError(`Expected \`${name}\` to be a list, got ${shortJson(value)}.`)
}

function readMessage(value: unknown, path: string): HeldMessage & { readonly content: unknown } {
  const { id, role, content } = isObject(value) ? value : {}
  if (typeof id !== 'string' || id === '') throw new InputError(`Expected \`${path}.id\` to be a string.`)
  if (typeof role !== 'string' || !ROLES.includes(role))
    throw new InputError(`Expected \`${path}.role\` to be one of ${ROLES.join(', ')}, got ${shortJson(role)}.`)
  return { id, role, content }
}

/** The page's results at the end of the messages. Those that the server has sent have ids of its making. */
function clientResults(messages: readonly unknown[]): readonly ClientResult[] {
  const from = messages.findLastIndex((message) => isObject(message) && ENDS_RESULTS.has(message['role']))
  return messages.slice(from + 1).flatMap((message): ClientResult[] => {
    const { id, role, toolCallId, content, error } = isObject(message) ? message : {}
    if (role !== 'tool' || typeof toolCallId !== 'string' || String(id).endsWith(`${toolCallId}:result`)) return []
    const text = typeof content === 'string' ? content : messageText(content)
    return [{ toolCallId, content: text, ...(typeof error === 'string' && { error }) }]
  })
}

const ENDS_RESULTS: ReadonlySet<unknown> = new Set(['user', 'assistant'])

/** The text of a list of parts; pages send others to people, not to the model. */
function messageText(content: unknown): string {
  const parts: readonly unknown[] = Array.isArray(content) ? content : []
  return parts.flatMap((part) => (isObject(part) && typeof part['text'] === 'string' ? [part['text']] : [])).join('\n')
}

function readTool(value: unknown, index: number): ClientTool {
  const { name, description, parameters = { type: 'object' } } = isObject(value) ? value : {}
  const path = `tools[${index}]`
  if (typeof name !== 'string' || name === '')
    throw new InputError(`Expected \`${path}.name\` to be a string that is not empty, got ${shortJson(name)}.`)
  if (typeof description !== 'string')
    throw new InputError(`Expected \`${path}.description\` to be a string, got ${shortJson(description)}.`)
  if (!isObject(parameters))
    throw new InputError(`Expected \`${path}.parameters\` to be a JSON Schema, got ${shortJson(parameters)}.`)
  return { name, description, parameters: parameters as JsonSchema }
}

function readResumeEntry(value: unknown, index: number): ResumeEntry {
  const { interruptId, status, payload } = isObject(value) ? value : {}
  if (typeof interruptId !== 'string' || interruptId === '')
    throw new InputError(`Expected \`resume[${index}].interruptId\` to be a string.`)
  if (status !== 'resolved' && status !== 'cancelled')
    throw new InputError(
      `Expected \`resume[${index}].status\` to be "resolved" or "cancelled", got ${shortJson(status)}.`,
    )
  return { interruptId, status, ...(payload !== undefined && { payload }) }
}

function shortJson(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 80)
}

/**
 * The content of a person's message as a prompt: text, images, audio and documents. Throws an `InputError` for other parts, and
 * for a link that `allowUrl` does not allow.
 */
export function fromAgUiContent(
  content: unknown,
  allowUrl: (url: URL) => boolean = () => false,
): readonly ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content))
    throw new InputError('Expected `content` of the last message to be a string or a list of parts.')
  return content.map((part: unknown, index) => readPart(part, `content[${index}]`, allowUrl))
}

function readPart(part: unknown, path: string, allowUrl: (url: URL) => boolean): ContentPart {
  const { type, text, source, metadata } = isObject(part) ? part : {}
  if (type === 'text' && typeof text === 'string') return { type, text }
  const { type: from, value, mimeType } = isObject(source) ? source : {}
  const isMedia = type === 'image' || type === 'audio' || type === 'document'
  if (!isMedia || typeof value !== 'string')
    throw new InputError(
      `Expected \`${path}\` to be a part of type text, image, audio or document with its source, got ${shortJson(type)}.`,
    )
  if (from === 'url') {
    if (type === 'image' && URL.canParse(value) && atOnce('`allowUrl`', allowUrl(new URL(value))))
      return { type, url: value }
    throw new InputError(`The link in \`${path}\` is not allowed: send the content.`)
  }
  if (from !== 'data' || typeof mimeType !== 'string')
    throw new InputError(`Expected \`${path}.source\` to be data with a \`mimeType\`, or a link.`)
  if (type === 'image') return { type, data: value, mediaType: mimeType }
  if (type === 'audio') return { type, data: value, mediaType: mimeType }
  const name = isObject(metadata) ? metadata['name'] : undefined
  return { type: 'file', data: value, mediaType: mimeType, ...(typeof name === 'string' && { name }) }
}
