import { HarnessError } from '../../contracts/errors.js'
import type { Model } from '../../contracts/model.js'
import type { SamplingMessage, SamplingReply, SamplingRequest, SourceCall } from '../../tools/source.js'
import { UNREPORTED_USAGE } from '../../contracts/entry.js'
import type { ContentPart, TranscriptEntry } from '../../contracts/entry.js'

export interface SampleOptions {
  /** Requests of servers that are answered, all together. Default 20. */
  readonly maxRequests?: number
  /** Cap of one reply, in tokens, whatever the server asks for. Default 4,096. */
  readonly maxOutputTokens?: number
}

/**
 * Answers the requests of servers for a model's reply with `model`, within a budget of its own: for the option `sampling`
 * of a server. The model gets what the server sent and nothing of any run.
 *
 * @example
 * mcpStdio({ command: 'summarizer', sampling: sampleWith(anthropic('claude-haiku-5'), { maxRequests: 5 }) })
 */
export function sampleWith(
  model: Model,
  { maxRequests = 20, maxOutputTokens = 4_096 }: SampleOptions = {},
): (request: SamplingRequest, call: SourceCall) => Promise<SamplingReply> {
  let requests = 0
  return async (request, { sourceId, signal }) => {
    requests += 1
    if (requests > maxRequests) {
      throw new HarnessError(
        'limit_reached',
        `\`${sourceId}\` may not ask again: ${maxRequests} requests were answered.`,
      )
    }
    const turn = await model.openSession().turn(
      request.messages.map((message, index) => entryOf(message, index, model)),
      {
        instructions: request.instructions,
        tools: [],
        structuredOutput: null,
        settings: {
          maxOutputTokens: Math.min(request.maxOutputTokens, maxOutputTokens),
          ...(request.temperature !== null && { temperature: request.temperature }),
        },
      },
      { generation: 0, signal },
    )
    return {
      text: turn.text,
      model: turn.responseModel ?? model.id,
      stopReason: turn.finishReason === 'length' ? 'max_tokens' : 'end_turn',
    }
  }
}

function entryOf({ role, content }: SamplingMessage, index: number, { provider, id: model }: Model): TranscriptEntry {
  const stamp = { id: `e${index + 1}`, at: new Date().toISOString() }
  if (role === 'user') return { ...stamp, role, content }
  const parts = content.map((part) => ({ type: 'text' as const, text: textOf(part) }))
  return { ...stamp, role, parts, provider, model, finishReason: 'stop', usage: UNREPORTED_USAGE }
}

function textOf(part: ContentPart): string {
  return part.type === 'text' ? part.text : `[${part.type}]`
}
