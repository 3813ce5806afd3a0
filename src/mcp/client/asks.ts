import type {
  SamplingMessage,
  SamplingReply,
  SamplingRequest,
  SourceAnswer,
  SourceQuestion,
} from '../../tools/source.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import type { SamplingResult } from './connection.js'
import { partsOf } from './content.js'

/** The parameters of `elicitation/create`. */
export function readQuestion({ message, requestedSchema, mode, url }: JsonObject): SourceQuestion {
  const isPage = mode === 'url' && typeof url === 'string'
  return {
    message: typeof message === 'string' ? message : '',
    schema: !isPage && isObject(requestedSchema) ? requestedSchema : null,
    url: isPage ? url : null,
  }
}

/** The answer as the protocol wants it. */
export function answerResult(answer: SourceAnswer, { url }: SourceQuestion): JsonObject {
  if (answer.action !== 'accept' || url !== null) return { action: answer.action }
  return { action: 'accept', content: answer.content }
}

/** The parameters of `sampling/createMessage`. */
export function readSampling({ messages, systemPrompt, maxTokens, temperature }: JsonObject): SamplingRequest {
  return {
    instructions: typeof systemPrompt === 'string' ? systemPrompt : '',
    messages: (Array.isArray(messages) ? (messages as readonly JsonValue[]) : []).flatMap(readMessage),
    maxOutputTokens: typeof maxTokens === 'number' && maxTokens >= 1 ? Math.floor(maxTokens) : DEFAULT_MAX_TOKENS,
    temperature: typeof temperature === 'number' ? temperature : null,
  }
}

/** A reply as the protocol wants it. */
export function samplingResult({ text, model, stopReason }: SamplingReply): SamplingResult {
  return {
    role: 'assistant',
    content: { type: 'text', text },
    model,
    stopReason: stopReason === 'max_tokens' ? 'maxTokens' : 'endTurn',
  }
}

const DEFAULT_MAX_TOKENS = 1_024

function readMessage(message: JsonValue): SamplingMessage[] {
  if (!isObject(message)) return []
  return [{ role: message['role'] === 'assistant' ? 'assistant' : 'user', content: partsOf(message['content']) }]
}
