import type { ScriptMessage } from '../conversation.js'
import type { JsonObject } from '#util/json.js'
import type { TokenUsage } from '#contracts/entry.js'
import { withoutNulls, sseFrame } from './api.js'
import type { WireApi, WireReply } from './api.js'
import { openAiError } from './openai-errors.js'
import { itemEvents, outputItem } from './responses-items.js'
import type { ResponsesEvent } from './responses-items.js'
import { readResponsesRequest } from './responses-request.js'

/** OpenAI's Responses API. Stores the latest conversations, for requests that continue a reply by its id. */
export function responsesApi(): WireApi {
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
    stream: (reply) => responseEvents(reply).map((data, index) => sseFrame({ ...data, sequence_number: index }, data.type)),
    error: openAiError,
    errorEvent: (message) => sseFrame({ type: 'error', code: 'server_error', message, param: null }, 'error'),
    keep: ({ messages, body }, reply) => {
      if (body['store'] === false) return
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

function responseStatus({ finishReason, nativeFinishReason, created }: WireReply): JsonObject & { readonly status: string } {
  switch (finishReason) {
    case 'stop':
    case 'tool_calls':
    case 'refusal':
      return { status: nativeFinishReason ?? 'completed', completed_at: created }
    case 'error':
      return { status: 'failed', error: { code: nativeFinishReason ?? 'server_error', message: 'The model failed.' } }
    case 'length':
      return { status: 'incomplete', incomplete_details: { reason: nativeFinishReason ?? 'max_output_tokens' } }
    case 'content_filter':
    case 'pause':
    case 'cancelled':
    case 'other':
      return { status: 'incomplete', incomplete_details: { reason: nativeFinishReason ?? finishReason } }
  }
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
