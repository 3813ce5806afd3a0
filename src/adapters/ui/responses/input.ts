import { atOnce } from '#util/wrapped.js'
import type { Answer } from '#core/state/answers.js'
import type { ContentPart } from '#contracts/entry.js'
import type { JsonSchema } from '#util/json.js'
import type { PendingItem } from '#contracts/result.js'
import type { ClientTool } from '#session/tools/client-tools.js'
import { isObject } from '#util/json.js'
import { InputError } from '../input-error.js'
import { clientAnswers } from '../ag-ui/interrupts.js'
import type { ClientResult } from '../ag-ui/interrupts.js'

type Members = Readonly<Record<string, unknown>>

/** An answer to an approval, as an item of the input. */
export interface ApprovalResponse {
  readonly callId: string
  readonly approved: boolean
  readonly reason?: string
}

/** A request for a response, as far as it is read. */
export interface ResponsesInput {
  readonly model: string | null
  /** The response that it continues. */
  readonly previous: string | null
  readonly stream: boolean
  readonly background: boolean
  readonly metadata: Readonly<Record<string, string>>
  readonly tools: readonly ClientTool[]
  /** The messages of a person that the input ends with, as one. */
  readonly content: readonly ContentPart[]
  /** The id of the last of them. */
  readonly messageId: string | null
  readonly results: readonly ClientResult[]
  readonly approvals: readonly ApprovalResponse[]
}

/**
 * Reads the request for a response. Of `input` only what it ends with is read: messages of a person, outputs of the client's calls
 * and answers to approvals. What comes before them, messages of the system and `instructions` are not: the log has the
 * conversation, and the host the instructions. Throws a `InputError` that names the first mistake.
 */
export function readResponsesInput(body: Members, allowUrl: (url: URL) => boolean = () => false): ResponsesInput {
  const { input, tools, metadata } = body
  if (typeof input !== 'string' && input !== undefined && input !== null && !Array.isArray(input))
    throw notOfForm('input', 'a string or a list of items')
  const items: readonly unknown[] =
    typeof input === 'string' ? [{ role: 'user', content: input }] : ((input ?? []) as readonly unknown[])
  const read = items.map((item, index) => readItem(item, `input[${index}]`))
  const last = read.slice(read.findLastIndex(({ kind }) => kind === 'past') + 1)
  const messages = last.flatMap((item, index) =>
    item.kind === 'message' ? [{ ...item, path: `input[${items.length - last.length + index}].content` }] : [],
  )
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) throw notOfForm('tools', 'a list')
  return {
    model: readText(body, 'model'),
    previous: readText(body, 'previous_response_id'),
    stream: readFlag(body, 'stream'),
    background: readFlag(body, 'background'),
    metadata: readMetadata(metadata),
    tools: ((tools ?? []) as readonly unknown[]).map(readTool),
    content: messages.flatMap(({ content, path }) => readContent(content, path, allowUrl)),
    messageId: messages.at(-1)?.id ?? null,
    results: last.flatMap((item) => (item.kind === 'result' ? [item.result] : [])),
    approvals: last.flatMap((item) => (item.kind === 'approval' ? [item.approval] : [])),
  }
}

/** The answers in a request to the items that wait. The run checks whether they fit. */
export function responseAnswers(
  { results, approvals }: Pick<ResponsesInput, 'results' | 'approvals'>,
  pending: readonly PendingItem[],
): readonly Answer[] {
  const waiting = new Set(pending.map(({ callId }) => callId))
  return [...approvals.filter(({ callId }) => waiting.has(callId)), ...clientAnswers(results, pending)]
}

function notOfForm(param: string, expected: string): InputError {
  return new InputError(`Expected \`${param}\` to be ${expected}.`, param)
}

function readText(body: Members, name: string): string | null {
  const value = body[name] ?? null
  if (value === null || (typeof value === 'string' && value !== '')) return value
  throw notOfForm(name, 'a string that is not empty')
}

function readFlag(body: Members, name: string): boolean {
  const value = body[name] ?? false
  if (typeof value === 'boolean') return value
  throw notOfForm(name, 'true or false')
}

function readMetadata(metadata: unknown = {}): Readonly<Record<string, string>> {
  if (metadata === null) return {}
  if (isObject(metadata) && Object.values(metadata).every((value) => typeof value === 'string'))
    return metadata as Readonly<Record<string, string>>
  throw notOfForm('metadata', 'an object of strings')
}

type Item =
  | { readonly kind: 'past' | 'instruction' }
  | { readonly kind: 'message'; readonly id: string | null; readonly content: unknown }
  | { readonly kind: 'result'; readonly result: ClientResult }
  | { readonly kind: 'approval'; readonly approval: ApprovalResponse }

function readItem(value: unknown, path: string): Item {
  if (!isObject(value)) throw notOfForm(path, 'an item')
  const { type, role, content, id } = value
  if (type === 'function_call_output') return { kind: 'result', result: readResult(value, path) }
  if (type === 'mcp_approval_response') return { kind: 'approval', approval: readApproval(value, path) }
  if (type !== undefined && type !== 'message') return { kind: 'past' }
  if (role === 'user') return { kind: 'message', id: typeof id === 'string' ? id : null, content }
  if (role === 'system' || role === 'developer') return { kind: 'instruction' }
  if (role === 'assistant') return { kind: 'past' }
  throw notOfForm(`${path}.role`, 'one of user, assistant, system, developer')
}

function readResult({ call_id: toolCallId, output }: Members, path: string): ClientResult {
  if (typeof toolCallId !== 'string') throw notOfForm(`${path}.call_id`, 'a string')
  if (typeof output === 'string') return { toolCallId, content: output }
  const texts = Array.isArray(output) ? output.map((part: unknown) => (isObject(part) ? part['text'] : undefined)) : []
  if (texts.length > 0 && texts.every((text) => typeof text === 'string'))
    return { toolCallId, content: texts.join('\n') }
  throw notOfForm(`${path}.output`, 'a string, or a list of texts')
}

function readApproval({ approval_request_id: callId, approve, reason }: Members, path: string): ApprovalResponse {
  if (typeof callId !== 'string') throw notOfForm(`${path}.approval_request_id`, 'a string')
  if (typeof approve !== 'boolean') throw notOfForm(`${path}.approve`, 'true or false')
  return { callId, approved: approve, ...(typeof reason === 'string' && { reason }) }
}

function readTool(value: unknown, index: number): ClientTool {
  const { type, name, description, parameters } = isObject(value) ? value : {}
  const path = `tools[${index}]`
  if (type !== 'function') throw notOfForm(`${path}.type`, '"function"')
  if (typeof name !== 'string' || name === '') throw notOfForm(`${path}.name`, 'a string')
  const schema = parameters ?? { type: 'object' }
  if (!isObject(schema)) throw notOfForm(`${path}.parameters`, 'a JSON Schema')
  return { name, description: typeof description === 'string' ? description : '', parameters: schema as JsonSchema }
}

function readContent(content: unknown, path: string, allowUrl: (url: URL) => boolean): readonly ContentPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) throw notOfForm(path, 'a string or a list of parts')
  return content.map((part: unknown, index) => readPart(part, `${path}[${index}]`, allowUrl))
}

function readPart(part: unknown, path: string, allowUrl: (url: URL) => boolean): ContentPart {
  const { type, text, image_url: image, file_data: file, filename } = isObject(part) ? part : {}
  if (type === 'input_text' && typeof text === 'string') return { type: 'text', text }
  if (type === 'input_image' && typeof image === 'string') {
    const inline = inlineData(image)
    if (inline !== null) return { type: 'image', ...inline }
    if (URL.canParse(image) && atOnce('`allowUrl`', allowUrl(new URL(image)))) return { type: 'image', url: image }
    throw notOfForm(`${path}.image_url`, 'the content of the image as a data URL: this link is not allowed')
  }
  if (type === 'input_file' && typeof file === 'string') {
    const inline = inlineData(file)
    if (inline === null) throw notOfForm(`${path}.file_data`, 'a data URL')
    return { type: 'file', ...inline, ...(typeof filename === 'string' && { name: filename }) }
  }
  throw notOfForm(path, 'a part of type input_text, input_image or input_file with its content')
}

function inlineData(url: string): { readonly mediaType: string; readonly data: string } | null {
  const [, mediaType, data] = /^data:([^;,]+)[^,]*;base64,(.*)$/s.exec(url) ?? []
  return mediaType === undefined || data === undefined ? null : { mediaType, data }
}
