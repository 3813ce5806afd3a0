import { HarnessError } from '../../contracts/errors.js'
import type { SamplingMessage, SamplingReply, SamplingRequest } from '../../tools/source.js'
import type { ToolContext } from '../../tools/spec.js'
import type { ContentPart } from '../../contracts/entry.js'

/**
 * Answers a server's request for a model's reply with the model of the run whose call it is working on: one request in a
 * run of its own under that call, without tools, counted with the call's run.
 */
export async function sampleInRun(request: SamplingRequest, context: ToolContext | null): Promise<SamplingReply> {
  if (context === null) {
    throw new HarnessError('error', 'Whose model is asked is not known: no call is open, or several are.')
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

/** A run begins with what one person says: of a conversation, who said what stands before it. */
function promptOf(messages: readonly SamplingMessage[]): readonly ContentPart[] {
  const [first, ...others] = messages
  if (first !== undefined && others.length === 0) return first.content
  return messages.flatMap(({ role, content }) => [{ type: 'text' as const, text: `[${role}]` }, ...content])
}
