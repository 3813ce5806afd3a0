import { HarnessError } from '#contracts/errors.js'
import type { Model } from '#core/model-session.js'
import type { SamplingMessage, SamplingReply, SamplingRequest, SourceCall } from '#core/tools/tool-source.js'
import { textOf, UNREPORTED_USAGE } from '#contracts/entry.js'
import type { ContentPart, TranscriptEntry } from '#contracts/entry.js'

export interface SampleOptions {
  /** Most requests that are answered, over all servers. Default 20. */
  readonly maxRequests?: number | undefined
  /** Most output tokens of one reply, whatever the server requests. Default 4,096. */
  readonly maxOutputTokens?: number | undefined
}

/**
 * Answers sampling requests of servers with `model`, within its own budget; for the option `sampling` of a server. The model
 * receives only the messages of the server, nothing of any run.
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
        `\`${sourceId}\` may not send more sampling requests: the limit is ${maxRequests}.`,
      )
    }
    const session = model.openSession()
    const asking = session.turn(
      request.messages.map((message, index) => sampledEntry(message, index, model)),
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
    const turn = await asking.finally(() => session.close?.())
    return {
      text: textOf(turn.entry.parts),
      model: turn.responseModel ?? model.id,
      stopReason: turn.entry.finishReason === 'length' ? 'max_tokens' : 'end_turn',
    }
  }
}

function sampledEntry(
  { role, content }: SamplingMessage,
  index: number,
  { provider, id: model }: Model,
): TranscriptEntry {
  const stamp = { id: `e${index + 1}`, at: new Date().toISOString() }
  if (role === 'user') return { ...stamp, role, content }
  const parts = content.map((part) => ({ type: 'text' as const, text: partText(part) }))
  return { ...stamp, role, parts, provider, model, finishReason: 'stop', usage: UNREPORTED_USAGE }
}

function partText(part: ContentPart): string {
  return part.type === 'text' ? part.text : `[${part.type}]`
}
