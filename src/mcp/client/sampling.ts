import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { SamplingMessage, SamplingReply, SamplingRequest } from '../../tools/source.js'
import type { ToolContext } from '../../tools/spec.js'
import { isObject } from '../../util/json.js'
import type { JsonObject, JsonValue } from '../../util/json.js'
import type { SamplingResult } from './connection.js'
import { partsOf } from './content.js'

/** Cap of a reply if the server names none, in tokens. */
const DEFAULT_MAX_TOKENS = 1_024

/** The parameters of `sampling/createMessage`. */
export function readSampling({ messages, systemPrompt, maxTokens, temperature }: JsonObject): SamplingRequest {
  return {
    instructions: typeof systemPrompt === 'string' ? systemPrompt : '',
    messages: (Array.isArray(messages) ? (messages as readonly JsonValue[]) : []).flatMap(readMessage),
    maxOutputTokens: typeof maxTokens === 'number' && maxTokens >= 1 ? Math.floor(maxTokens) : DEFAULT_MAX_TOKENS,
    temperature: typeof temperature === 'number' ? temperature : null,
  }
}

/** A reply in the form of the protocol. */
export function samplingResult({ text, model, stopReason }: SamplingReply): SamplingResult {
  return {
    role: 'assistant',
    content: { type: 'text', text },
    model,
    stopReason: stopReason === 'max_tokens' ? 'maxTokens' : 'endTurn',
  }
}

function readMessage(message: JsonValue): SamplingMessage[] {
  if (!isObject(message)) return []
  return [{ role: message['role'] === 'assistant' ? 'assistant' : 'user', content: partsOf(message['content']) }]
}

/**
 * Answers a server's request for a model's reply with the model of the calling run: one request in a child run of that call,
 * without tools, counted with the calling run.
 */
export async function sampleInRun(request: SamplingRequest, context: ToolContext | null): Promise<SamplingReply> {
  if (context === null) {
    throw new HarnessError('error', 'The model to ask is unknown: no call is open, or several are.')
  }
  const { instructions, messages, maxOutputTokens, temperature } = request
  const child = context.spawn({
    prompt: promptOf(messages),
    agentName: 'mcp_sampling',
    instructions,
    limits: { modelRequests: 1 },
    settings: { maxOutputTokens, ...(temperature !== null && { temperature }) },
  })
  const { text, transcript } = await child.result
  const last = transcript.findLast((entry) => entry.role === 'assistant')
  return {
    text,
    model: last?.role === 'assistant' ? last.model : '',
    stopReason: last?.role === 'assistant' && last.finishReason === 'length' ? 'max_tokens' : 'end_turn',
  }
}

/** A run begins with one user message: a conversation becomes one, with the role before each message. */
function promptOf(messages: readonly SamplingMessage[]): readonly ContentPart[] {
  const [first, ...others] = messages
  if (first !== undefined && others.length === 0) return first.content
  return messages.flatMap(({ role, content }) => [{ type: 'text' as const, text: `[${role}]` }, ...content])
}
