import type { ScriptMessage, HeardCall } from '../script-request.js'
import { messageContent, textContent } from '../script-request.js'
import { textPieces } from '../reply.js'
import { withoutNulls, sseFrame, WireRefusal, openAiError } from './api.js'
import type { WireApi, WireReply, WireBody, WireConversation, ApiRequest } from './api.js'
import { checkedCallId, checkToolNames, isInstruction, checkedList, checkedText, checkedToolName } from './checks.js'
import { isSealed, sealText } from './seals.js'
import type { TokenUsage, FinishReason } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { isObject } from '#util/json.js'

/**
 * OpenAI's Responses API. Stores the latest conversations, for requests that continue a reply by its id: also those that are not to be
 * stored, if they are of one connection.
 */
export function responsesApi(isOfConnection = false): WireApi {
  const kept = new Map<string, readonly ScriptMessage[]>()
  return {
    read: (request) => readResponsesRequest(request, (id) => kept.get(id)),
    callId: (ordinal) => `call_${String(ordinal).padStart(24, '0')}`,
    chargesCacheWrites: false,
    whole: (reply) =>
      endedResponse(
        reply,
        reply.parts.map((part, index) => outputItem(reply, part, index)),
      ),
    stream: (reply) =>
      responseEvents(reply).map((data, index) => sseFrame({ ...data, sequence_number: index }, data.type)),
    error: openAiError,
    errorEvent: (message) => sseFrame({ type: 'error', code: 'server_error', message, param: null }, 'error'),
    keep: ({ messages, body }, reply) => {
      if (body['store'] === false && !isOfConnection) return
      kept.set(responseId(reply), [...messages, scriptMessageOf(reply)])
      const oldest = kept.size > MOST_KEPT ? kept.keys().next().value : undefined
      if (oldest !== undefined) kept.delete(oldest)
    },
  }
}

const MOST_KEPT = 1000

function responseId({ id }: WireReply): string {
  return `resp_${id}`
}

function scriptMessageOf({ parts }: WireReply): ScriptMessage {
  const calls = parts.filter((part) => part.type === 'call')
  return {
    role: 'assistant',
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    calls: calls.map(({ callId, name, arguments: text }) => ({ callId: callId ?? '', name, arguments: text })),
  }
}

function responseEvents(reply: WireReply): readonly ResponsesEvent[] {
  const begun = responseBody(reply, { status: 'in_progress', output: [], usage: null })
  const items = reply.parts.map((part, index) => outputItem(reply, part, index))
  return [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    ...reply.parts.flatMap((part, index) => itemEvents(part, items[index] ?? {}, index)),
    { type: `response.${responseStatus(reply).status}`, response: endedResponse(reply, items) },
  ]
}

function endedResponse(reply: WireReply, output: readonly JsonObject[]): JsonObject {
  const usage = { usage: reply.usage === null ? null : responsesUsage(reply.usage) }
  return responseBody(reply, { ...responseStatus(reply), output, ...usage })
}

const COMPLETED: ReadonlySet<FinishReason> = new Set(['stop', 'tool_calls', 'refusal'])

function responseStatus(reply: WireReply): JsonObject & { readonly status: string } {
  const { finishReason, nativeFinishReason: native, created } = reply
  if (COMPLETED.has(finishReason)) return { status: native ?? 'completed', completed_at: created }
  if (finishReason === 'error')
    return { status: 'failed', error: { code: native ?? 'server_error', message: 'The model failed.' } }
  const reason = native ?? (finishReason === 'length' ? 'max_output_tokens' : finishReason)
  return { status: 'incomplete', incomplete_details: { reason } }
}

function responseBody(reply: WireReply, state: JsonObject): JsonObject {
  const body = reply.body as JsonObject
  return {
    id: responseId(reply),
    object: 'response',
    created_at: reply.created,
    background: false,
    completed_at: null,
    error: null,
    incomplete_details: null,
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    model: reply.model,
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    previous_response_id: body['previous_response_id'] ?? null,
    reasoning: body['reasoning'] ?? { effort: null, summary: null },
    service_tier: 'default',
    store: body['store'] ?? true,
    temperature: body['temperature'] ?? 1,
    text: body['text'] ?? { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_p: body['top_p'] ?? 1,
    truncation: 'disabled',
    user: null,
    metadata: body['metadata'] ?? {},
    ...state,
  }
}

function responsesUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  const total = inputTokens === null || outputTokens === null ? null : inputTokens + outputTokens
  return withoutNulls({
    input_tokens: inputTokens,
    input_tokens_details: withoutNulls({ cache_write_tokens: cacheWriteTokens, cached_tokens: cacheReadTokens }),
    output_tokens: outputTokens,
    output_tokens_details: withoutNulls({ reasoning_tokens: reasoningTokens }),
    total_tokens: total,
  })
}

/** The conversation up to and with the reply of this id, as far as it is kept. */
type KeptReplies = (responseId: string) => readonly ScriptMessage[] | undefined

const LONGEST_CALL_ID = 64

/** Reads a request of OpenAI's Responses API, as strictly as the API does. */
export function readResponsesRequest({ headers, body }: ApiRequest, kept: KeptReplies): WireConversation {
  if (headers['authorization'] === undefined && headers['api-key'] === undefined) {
    throw new WireRefusal("You didn't provide an API key.", {}, 401)
  }
  if (typeof body['model'] !== 'string') {
    throw new WireRefusal("Missing required parameter: 'model'.", {
      param: 'model',
      code: 'missing_required_parameter',
    })
  }
  const tools = toolNames(body)
  const earlier = earlierMessages(body['previous_response_id'], kept)
  const items = inputItems(body)
  if (items.length === 0 && earlier.length === 0) {
    throw new WireRefusal("Missing required parameter: 'input'.", { param: 'input' })
  }
  checkReasoning(items, body['store'] === false ? () => undefined : kept)
  const messages = [...earlier, ...readItems(items)]
  checkAnswers(messages)
  const instructions = [body['instructions'], ...items.filter(isInstruction).map((item) => item['content'])]
  const prefix = [body['tools'], body['instructions'], ...earlier, ...items].filter((member) => member !== undefined)
  const said = instructions.filter((text) => text !== undefined && text !== null).map(textContent)
  const isContinuation = typeof body['previous_response_id'] === 'string'
  return { messages, instructions: said.join('\n\n'), tools, body, prefix, cacheable: prefix.length, isContinuation }
}

function toolNames(body: WireBody): readonly string[] {
  const tools = body['tools'] === undefined ? [] : checkedList(body, 'tools')
  const names = tools.flatMap((tool, index) =>
    tool['type'] === 'function' ? [checkedToolName(tool['name'], `tools[${index}].name`)] : [],
  )
  const choice = body['tool_choice']
  if (choice === 'required' && tools.length === 0) {
    throw new WireRefusal("Tool choice 'required' must be specified with 'tools' parameter.", { param: 'tool_choice' })
  }
  checkToolNames(names, isObject(choice) ? choice['name'] : undefined)
  return names
}

function earlierMessages(id: unknown, kept: KeptReplies): readonly ScriptMessage[] {
  if (id === undefined || id === null) return []
  const responseId = checkedText(id, 'previous_response_id')
  const messages = kept(responseId)
  if (messages !== undefined) return messages
  const details = { param: 'previous_response_id', code: 'previous_response_not_found' }
  throw new WireRefusal(`Previous response with id '${responseId}' not found.`, details)
}

function inputItems(body: WireBody): readonly WireBody[] {
  const { input } = body
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }]
  return checkedList(body, 'input')
}

/** A reasoning item comes back sealed as it was sent, and never without the item that it led to. */
function checkReasoning(items: readonly WireBody[], kept: KeptReplies): void {
  for (const [index, item] of items.entries()) {
    const { type, id, encrypted_content: blob } = item
    // Referenced items are not stored.
    if (type === 'item_reference') throw notFound(id)
    if (type !== 'reasoning') continue
    const isOpen = blob === undefined || blob === null
    if (isOpen && kept(`resp_${String(id).slice(3, -2)}`) === undefined) {
      throw notFound(id)
    }
    if (!isOpen && !isSealed(blob)) {
      throw new WireRefusal(`The encrypted content for item ${String(id)} could not be verified.`, {
        code: 'invalid_encrypted_content',
      })
    }
    if (!isReply(items[index + 1])) {
      const problem = "of type 'reasoning' was provided without its required following item"
      throw new WireRefusal(`Item '${String(id)}' ${problem}.`, { param: 'input' })
    }
  }
}

function notFound(id: unknown): WireRefusal {
  const reason = 'Items are not persisted when `store` is set to false.'
  return new WireRefusal(`Item with id '${String(id)}' not found. ${reason}`, { param: 'input' }, 404)
}

/** True if an item is part of a reply. */
function isReply(item: WireBody | undefined): boolean {
  if (item === undefined || item['type'] === 'function_call_output') return false
  return item['role'] === undefined || item['role'] === 'assistant'
}

function readItems(items: readonly WireBody[]): ScriptMessage[] {
  const messages: ScriptMessage[] = []
  let reply: { role: 'assistant'; text: string; calls: HeardCall[] } | null = null
  for (const [index, item] of items.entries()) {
    if (isInstruction(item)) continue
    if (isReply(item)) {
      if (reply === null) messages.push((reply = { role: 'assistant', text: '', calls: [] }))
      if (item['type'] === 'function_call') reply.calls.push(readCall(item, index))
      if (item['role'] === 'assistant') reply.text += textContent(item['content'])
      continue
    }
    reply = null
    messages.push(readSaid(item, index))
  }
  return messages
}

function readCall({ call_id: id, name, arguments: args }: WireBody, index: number): HeardCall {
  return {
    callId: checkedCallId(id, `input[${index}].call_id`, LONGEST_CALL_ID),
    name: checkedToolName(name, `input[${index}].name`),
    arguments: checkedText(args, `input[${index}].arguments`),
  }
}

function readSaid(item: WireBody, index: number): ScriptMessage {
  if (item['type'] === 'function_call_output') {
    const callId = checkedCallId(item['call_id'], `input[${index}].call_id`, LONGEST_CALL_ID)
    return { role: 'tool', callId, content: messageContent(item['output']) }
  }
  if (item['role'] === 'user') return { role: 'user', content: messageContent(item['content']) }
  const message = `Invalid value: '${String(item['role'])}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`
  throw new WireRefusal(message, { param: `input[${index}].role`, code: 'invalid_value' })
}

/** Every call has an answer after it, every answer a call before it. */
function checkAnswers(messages: readonly ScriptMessage[]): void {
  const open = new Set<string>()
  for (const message of messages) {
    if (message.role === 'assistant') {
      for (const { callId } of message.calls) {
        if (open.has(callId)) throw new WireRefusal(`Duplicate function call id ${callId}.`, { param: 'input' })
        open.add(callId)
      }
    }
    if (message.role === 'tool' && !open.delete(message.callId)) {
      const problem = `No tool call found for function call output with call_id ${message.callId}.`
      throw new WireRefusal(problem, { param: 'input' })
    }
  }
  const [unanswered] = open
  if (unanswered !== undefined) {
    throw new WireRefusal(`No tool output found for function call ${unanswered}.`, { param: 'input' })
  }
}

/** An event of a stream, before it has its number. */
export type ResponsesEvent = JsonObject & { readonly type: string }

type Part = WireReply['parts'][number]

/** The item of the output that a part becomes. */
function outputItem({ id, body, parts, finishReason }: WireReply, part: Part, index: number): JsonObject {
  const isCut = finishReason === 'length' && index === parts.length - 1
  const status = isCut ? 'incomplete' : 'completed'
  const itemId = (kind: string) => `${kind}_${id}${String(index).padStart(2, '0')}`
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { id: itemId('msg'), type: 'message', status, role: 'assistant', content: [contentItem(part)] }
    case 'reasoning': {
      const summary = part.text === '' ? [] : [{ type: 'summary_text', text: part.text }]
      const seal = isSealWanted(body) ? { encrypted_content: sealText(part.text) } : {}
      return { id: itemId('rs'), type: 'reasoning', summary, ...seal }
    }
    case 'call': {
      const { name, callId, arguments: text } = part
      return {
        id: itemId('fc'),
        type: 'function_call',
        status,
        arguments: text,
        ...withoutNulls({ call_id: callId }),
        name,
      }
    }
    case 'block':
      return part.data
  }
}

function isSealWanted({ include }: WireReply['body']): boolean {
  return Array.isArray(include) && include.includes('reasoning.encrypted_content')
}

function contentItem(part: Part & { type: 'text' | 'refusal' }): JsonObject {
  if (part.type === 'refusal') return { type: 'refusal', refusal: part.text }
  return { type: 'output_text', annotations: [], logprobs: [], text: part.text }
}

/** The events of an item: its addition, its pieces, and the complete item. */
function itemEvents(part: Part, item: JsonObject, index: number): ResponsesEvent[] {
  const place = { output_index: index }
  return [
    { type: 'response.output_item.added', ...place, item: { ...item, ...blankItem(part) } },
    ...pieceEvents(part, { item_id: item['id'] ?? null, ...place }),
    { type: 'response.output_item.done', ...place, item },
  ]
}

function blankItem(part: Part): JsonObject {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return { status: 'in_progress', content: [] }
    case 'reasoning':
      return { summary: [] }
    case 'call':
      return { status: 'in_progress', arguments: '' }
    case 'block':
      return {}
  }
}

function pieceEvents(part: Part, place: JsonObject): ResponsesEvent[] {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return blockEvents(part, { ...place, content_index: 0 })
    case 'reasoning':
      return part.text === '' ? [] : summaryEvents(part.text, { ...place, summary_index: 0 })
    case 'call': {
      const type = 'response.function_call_arguments'
      const pieces = textPieces(part.arguments).map((delta) => ({ type: `${type}.delta`, ...place, delta }))
      return [...pieces, { type: `${type}.done`, ...place, arguments: part.arguments }]
    }
    case 'block':
      return []
  }
}

function blockEvents(part: Part & { type: 'text' | 'refusal' }, place: JsonObject): ResponsesEvent[] {
  const [type, field] = part.type === 'text' ? ['output_text', 'text'] : ['refusal', 'refusal']
  const block = contentItem(part)
  const logprobs = part.type === 'text' ? { logprobs: [] } : {}
  return [
    { type: 'response.content_part.added', ...place, part: { ...block, [field]: '' } },
    ...textPieces(part.text).map((delta) => ({ type: `response.${type}.delta`, ...place, delta, ...logprobs })),
    { type: `response.${type}.done`, ...place, [field]: part.text, ...logprobs },
    { type: 'response.content_part.done', ...place, part: block },
  ]
}

function summaryEvents(text: string, place: JsonObject): ResponsesEvent[] {
  const type = 'response.reasoning_summary'
  const part = { type: 'summary_text', text }
  return [
    { type: `${type}_part.added`, ...place, part: { ...part, text: '' } },
    ...textPieces(text).map((delta) => ({ type: `${type}_text.delta`, ...place, delta })),
    { type: `${type}_text.done`, ...place, text },
    { type: `${type}_part.done`, ...place, part },
  ]
}
