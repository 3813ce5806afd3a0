import { partsContent } from '../script-request.js'
import type { HeardCall, MessageContent, ScriptMessage } from '../script-request.js'
import { textPieces } from '../reply.js'
import { withoutNulls, sseFrame, WireRefusal } from './api.js'
import type { WireApi, WireReply, WireBody, WireConversation, ApiRequest } from './api.js'
import { checkToolNames } from './checks.js'
import { sealText, reasoningSignature, isSealed } from './seals.js'
import type { TokenUsage } from '#contracts/entry.js'
import type { JsonObject } from '#util/json.js'
import { isObject, jsonOr } from '#util/json.js'

/** Anthropic's Messages API. Keeps the threads that requests create, each until it is continued. */
export function messagesApi(): WireApi {
  const kept = new Map<string, WireBody>()
  return {
    ...MESSAGES_API,
    read: (request) => readMessagesRequest({ ...request, body: threadedBody(request, kept) }),
    keep({ body }, reply) {
      if (!isObject(body['thread'])) return
      const messages = [
        ...(body['messages'] as readonly unknown[]),
        { role: 'assistant', content: reply.parts.flatMap(contentBlocks) },
      ]
      kept.set(messageId(reply), { system: body['system'], tools: body['tools'], messages })
    },
  }
}

/** The body of a request as if it held the whole conversation. */
function threadedBody({ headers, body }: ApiRequest, kept: Map<string, WireBody>): WireBody {
  const { thread } = body
  if (thread === undefined) return body
  if (!String(headers['anthropic-beta']).includes('message-threads')) {
    throw new WireRefusal('thread: Extra inputs are not permitted')
  }
  if (!isObject(thread) || thread['type'] === 'create') return body
  const id = String(thread['previous_message_id'])
  const earlier = kept.get(id)
  if (earlier === undefined)
    throw new WireRefusal(`No thread holds the message ${id}.`, { code: 'thread_not_found' }, 404)
  const again = ['system', 'tools'].find((name) => body[name] !== undefined)
  if (again !== undefined) throw new WireRefusal(`${again}: a request that continues a thread must not repeat it`)
  kept.delete(id)
  const messages = [...(earlier['messages'] as readonly unknown[]), ...blockList(body['messages'], 'messages')]
  return { ...body, ...earlier, messages }
}

const MESSAGES_API: WireApi = {
  read: readMessagesRequest,
  callId: (ordinal) => `toolu_01${String(ordinal).padStart(22, '0')}`,
  chargesCacheWrites: true,
  whole: (reply) => ({
    ...messageShell(reply),
    content: reply.parts.flatMap(contentBlocks),
    ...messageEnding(reply),
    ...usageField(reply.usage),
  }),
  stream: messageStream,
  error: (status, message, { code = null } = {}) => ({
    type: 'error',
    error: { type: errorType(status), message, ...(code !== null && { details: { error_code: code } }) },
    request_id: REQUEST_ID,
  }),
  errorEvent: (message) =>
    namedEvent({ type: 'error', error: { details: null, type: 'overloaded_error', message }, request_id: REQUEST_ID }),
}

const REQUEST_ID = 'req_011CScripted'

type Part = WireReply['parts'][number]

function messageId({ id }: WireReply): string {
  return `msg_01${id}`
}

function messageShell(reply: WireReply): JsonObject {
  return { model: reply.model, id: messageId(reply), type: 'message', role: 'assistant' }
}

/** The block of a part; none for a refusal, whose explanation is not part of the content. */
function contentBlocks(part: Part): JsonObject[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }]
    case 'reasoning':
      if (part.text === '') return [{ type: 'redacted_thinking', data: sealText('') }]
      return [{ type: 'thinking', thinking: part.text, signature: reasoningSignature(part.text) }]
    case 'refusal':
      return []
    case 'block':
      return [part.data]
    case 'call': {
      // Arguments that are not JSON have no other place in a whole reply.
      const input = (jsonOr(part.arguments || '{}', undefined) ?? part.arguments) as JsonObject
      return [{ type: 'tool_use', ...withoutNulls({ id: part.callId }), name: part.name, input }]
    }
  }
}

function messageStream(reply: WireReply): string[] {
  const start = { ...messageShell(reply), content: [], stop_reason: null, stop_sequence: null }
  const opening = reply.usage === null ? null : { ...reply.usage, outputTokens: 1, reasoningTokens: null }
  return [
    namedEvent({ type: 'message_start', message: { ...start, ...usageField(opening) } }),
    namedEvent({ type: 'ping' }),
    ...reply.parts
      .filter((part) => part.type !== 'refusal')
      .flatMap((part, index) => [...blockEvents(part, index), namedEvent({ type: 'content_block_stop', index })]),
    namedEvent({
      type: 'message_delta',
      delta: messageEnding(reply),
      ...(reply.usage && { usage: messagesUsage(reply.usage) }),
    }),
    namedEvent({ type: 'message_stop' }),
  ]
}

/** The start of a block and its deltas. */
function blockEvents(part: Exclude<Part, { type: 'refusal' }>, index: number): string[] {
  const block = contentBlocks(part)[0] ?? {}
  const startBlock = (blank: JsonObject) =>
    namedEvent({ type: 'content_block_start', index, content_block: { ...block, ...blank } })
  const deltaEvent = (content: JsonObject) => namedEvent({ type: 'content_block_delta', index, delta: content })
  switch (part.type) {
    case 'text':
      return [
        startBlock({ text: '' }),
        ...textPieces(part.text).map((text) => deltaEvent({ type: 'text_delta', text })),
      ]
    case 'reasoning':
      if (part.text === '') return [startBlock({})]
      return [
        startBlock({ thinking: '', signature: '' }),
        ...textPieces(part.text).map((thinking) => deltaEvent({ type: 'thinking_delta', thinking })),
        deltaEvent({ type: 'signature_delta', signature: reasoningSignature(part.text) }),
      ]
    case 'block':
      return [startBlock({})]
    case 'call': {
      const pieces = ['', ...textPieces(part.arguments)]
      return [
        startBlock({ input: {} }),
        ...pieces.map((text) => deltaEvent({ type: 'input_json_delta', partial_json: text })),
      ]
    }
  }
}

function messageEnding({ parts, finishReason, nativeFinishReason }: WireReply): JsonObject {
  const refusal = parts.find((part) => part.type === 'refusal')
  const details = { type: 'refusal', category: null, explanation: refusal?.text ?? null }
  return {
    stop_reason: nativeFinishReason ?? STOP_REASONS[finishReason] ?? finishReason,
    stop_sequence: null,
    ...(finishReason === 'refusal' && { stop_details: details }),
  }
}

const STOP_REASONS: Readonly<Partial<Record<WireReply['finishReason'], string>>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
  content_filter: 'refusal',
  pause: 'pause_turn',
}

function usageField(usage: TokenUsage | null): JsonObject {
  return usage === null ? {} : { usage: { ...messagesUsage(usage), service_tier: 'standard' } }
}

/** The API does not count cache reads and writes as input tokens. */
function messagesUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return withoutNulls({
    input_tokens: inputTokens === null ? null : inputTokens - (cacheReadTokens ?? 0) - (cacheWriteTokens ?? 0),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cacheReadTokens,
    output_tokens: outputTokens,
    output_tokens_details: reasoningTokens === null ? null : { thinking_tokens: reasoningTokens },
  })
}

const ERROR_TYPES: ReadonlyMap<number, string> = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
])

function errorType(status: number): string {
  return ERROR_TYPES.get(status) ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

function namedEvent(data: JsonObject & { readonly type: string }): string {
  return sseFrame(data, data.type)
}

/** Reads a request of Anthropic's Messages API, as strictly as the API does. */
export function readMessagesRequest({ headers, body }: ApiRequest): WireConversation {
  checkHeaders(headers)
  checkRequired(body, 'model', 'string')
  checkRequired(body, 'max_tokens', 'number')
  checkSampling(headers['anthropic-version'], body)
  const tools = toolNames(body)
  const given = blockList(body['messages'] ?? refuseMissing('messages'), 'messages')
  if (given.length === 0) throw new WireRefusal('messages: at least one message is required')
  const messages = readMessages(given)
  const isContinuation = isObject(body['thread']) && body['thread']['type'] === 'continue'
  const prefix = [body['tools'], body['system'], ...given].filter((member) => member !== undefined)
  const marks = prefix.map((member) => countCacheMarks(member))
  const found = marks.reduce((sum, count) => sum + count, 0)
  if (found > MOST_MARKS) {
    throw new WireRefusal(`A maximum of ${MOST_MARKS} blocks with cache_control may be provided. Found ${found}.`)
  }
  // Marks on the request itself let the API choose where to put them.
  const cacheable = isObject(body['cache_control']) ? prefix.length : marks.findLastIndex((count) => count > 0) + 1
  const instructions = readInstructions(body['system'])
  return { messages, instructions, tools, body, prefix, cacheable, isContinuation }
}

const MOST_MARKS = 4

function checkHeaders(headers: ApiRequest['headers']): void {
  if (headers['x-api-key'] === undefined && headers['authorization'] === undefined) {
    throw new WireRefusal('x-api-key header is required', {}, 401)
  }
  if (headers['anthropic-version'] === undefined) throw new WireRefusal('anthropic-version: header is required')
}

/** Versions from 2026-10-21 on have no sampling parameters. */
function checkSampling(version: unknown, body: WireBody): void {
  if (typeof version !== 'string' || version < '2026-10-21') return
  const field = ['temperature', 'top_p', 'top_k'].find((name) => body[name] !== undefined)
  if (field !== undefined) throw new WireRefusal(`${field}: Extra inputs are not permitted`)
}

function checkRequired(body: WireBody, field: string, type: 'string' | 'number'): void {
  if (body[field] === undefined) refuseMissing(field)
  if (typeof body[field] !== type) throw new WireRefusal(`${field}: Input should be a valid ${type}`)
}

function toolNames(body: WireBody): readonly string[] {
  const tools = body['tools'] === undefined ? [] : blockList(body['tools'], 'tools')
  const names = tools.map((tool, index) => {
    const { name, type = 'custom' } = tool
    if (typeof name !== 'string') return refuseMissing(`tools.${index}.custom.name`)
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
      throw new WireRefusal(`tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`)
    }
    const schema = tool['input_schema']
    if (type === 'custom' && (!isObject(schema) || schema['type'] !== 'object')) {
      throw new WireRefusal(`tools.${index}.custom.input_schema.type: Input should be 'object'`)
    }
    return name
  })
  const choice = body['tool_choice']
  if (isObject(choice) && names.length === 0) {
    throw new WireRefusal('tool_choice may only be specified while providing tools')
  }
  checkToolNames(names, isObject(choice) ? choice['name'] : undefined)
  return names
}

function readInstructions(system: unknown): string {
  if (system === undefined) return ''
  if (typeof system === 'string') return system
  const content = partsContent(blockList(system, 'system'))
  if (typeof content === 'string') return content
  throw new WireRefusal('system: Input should be text blocks')
}

function countCacheMarks(value: unknown): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, each) => sum + countCacheMarks(each), 0)
  if (!isObject(value)) return 0
  return (isObject(value['cache_control']) ? 1 : 0) + countCacheMarks(value['content'])
}

/** The messages of a request of Anthropic's API. Throws for an order or a block that it refuses. */
function readMessages(given: readonly WireBody[]): readonly ScriptMessage[] {
  const messages: ScriptMessage[] = []
  const ids = new Set<string>()
  let open: readonly HeardCall[] = []
  for (const [index, message] of given.entries()) {
    const { role } = message
    const place = `messages.${index}`
    if (role !== 'user' && role !== 'assistant') {
      throw new WireRefusal(`${place}.role: Input should be 'user' or 'assistant'`)
    }
    if (index === 0 && role !== 'user') throw new WireRefusal('messages: first message must use the "user" role')
    const blocks = checkedBlocks(message['content'], place)
    if (role === 'user') {
      messages.push(...readUser(blocks, index, open))
      open = []
    } else {
      checkAnswered(open, index)
      const reply = readAssistant(blocks, place, ids)
      messages.push(reply)
      open = reply.calls
    }
  }
  checkAnswered(open, given.length)
  return messages
}

function refuseMissing(place: string): never {
  throw new WireRefusal(`${place}: Field required`)
}

function blockList(value: unknown, place: string): readonly WireBody[] {
  if (!Array.isArray(value)) throw new WireRefusal(`${place}: Input should be a valid list`)
  return value.map((each: unknown, index) => {
    if (!isObject(each)) throw new WireRefusal(`${place}.${index}: Input should be an object`)
    return each
  })
}

function checkedBlocks(content: unknown, place: string): readonly WireBody[] {
  if (content === undefined) return refuseMissing(`${place}.content`)
  const blocks =
    typeof content === 'string' ? [{ type: 'text', text: content }] : blockList(content, `${place}.content`)
  if (blocks.length === 0) throw new WireRefusal(`${place}: all messages must have non-empty content`)
  for (const block of blocks) {
    if (block['type'] === 'text' && block['text'] === '') {
      throw new WireRefusal('messages: text content blocks must be non-empty')
    }
  }
  return blocks
}

/** Answers come first in a message, one for each call of the message before. */
function readUser(blocks: readonly WireBody[], index: number, open: readonly HeardCall[]): ScriptMessage[] {
  const firstOther = blocks.findIndex((block) => block['type'] !== 'tool_result')
  const results = firstOther < 0 ? blocks : blocks.slice(0, firstOther)
  const said = blocks.slice(results.length)
  const answered = new Set<string>()
  const outputs = results.map((block, at): ScriptMessage => {
    const place = `messages.${index}.content.${at}`
    const id = String(block['tool_use_id'])
    if (!open.some((call) => call.callId === id)) throw unexpectedResult(id, place)
    if (answered.has(id)) {
      const problem = `each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`
      throw new WireRefusal(`${place}: ${problem}`)
    }
    answered.add(id)
    return {
      role: 'tool',
      callId: id,
      content: resultContent(block['content'], place),
      isError: block['is_error'] === true,
    }
  })
  const unanswered = open.filter((call) => !answered.has(call.callId))
  checkAnswered(unanswered, index)
  const stray = said.findIndex((block) => block['type'] === 'tool_result')
  if (stray >= 0) {
    throw unexpectedResult(String(said[stray]?.['tool_use_id']), `messages.${index}.content.${results.length + stray}`)
  }
  return said.length === 0 ? outputs : [...outputs, { role: 'user', content: partsContent(said) }]
}

function unexpectedResult(id: string, place: string): WireRefusal {
  const found = `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}`
  const rule = 'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.'
  return new WireRefusal(`${place}: ${found}. ${rule}`)
}

/** `index` is the place of the message that should have held the answers. */
function checkAnswered(open: readonly HeardCall[], index: number): void {
  if (open.length === 0) return
  const ids = open.map((call) => call.callId).join(', ')
  const found = `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}`
  const rule = 'Each `tool_use` block must have a corresponding `tool_result` block in the next message.'
  throw new WireRefusal(`messages.${index - 1}: ${found}. ${rule}`)
}

function resultContent(content: unknown, place: string): MessageContent {
  if (content === undefined) return ''
  return typeof content === 'string' ? content : partsContent(blockList(content, `${place}.content`))
}

function readAssistant(
  blocks: readonly WireBody[],
  place: string,
  ids: Set<string>,
): ScriptMessage & { role: 'assistant' } {
  let text = ''
  const calls: HeardCall[] = []
  for (const [at, block] of blocks.entries()) {
    const where = `${place}.content.${at}`
    if (block['type'] === 'text') text += String(block['text'])
    else if (block['type'] === 'tool_use') calls.push(readCall(block, where, ids))
    else checkThinking(block, where)
  }
  return { role: 'assistant', text, calls }
}

function readCall({ id, name, input }: WireBody, place: string, ids: Set<string>): HeardCall {
  if (typeof id !== 'string' || !/^[a-zA-Z0-9_-]+$/.test(id)) {
    throw new WireRefusal(`${place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
  }
  if (ids.has(id)) throw new WireRefusal(`${place}: \`tool_use\` ids must be unique`)
  ids.add(id)
  if (typeof name !== 'string') return refuseMissing(`${place}.tool_use.name`)
  if (!isObject(input)) throw new WireRefusal(`${place}.tool_use.input: Input should be a valid dictionary`)
  return { callId: id, name, arguments: JSON.stringify(input) }
}

/** A thinking block must come back unchanged. */
function checkThinking({ type, thinking, signature, data }: WireBody, place: string): void {
  if (type === 'redacted_thinking' && !isSealed(data)) {
    throw new WireRefusal(`${place}: Invalid \`data\` in \`redacted_thinking\` block`)
  }
  if (type !== 'thinking') return
  if (signature === undefined) return refuseMissing(`${place}.thinking.signature`)
  if (typeof thinking !== 'string' || signature !== reasoningSignature(thinking)) {
    throw new WireRefusal(`${place}: Invalid \`signature\` in \`thinking\` block`)
  }
}
