import type { ModelDelta } from '../../contracts/model.js'
import type { AssistantPart } from '../../contracts/entry.js'
import { WHOLE_REPLY } from './wire.js'
import type { DecodedReply, FoldOptions, WireChunk, WireFormat } from './wire.js'

/** The reply that a stream's events add up to. A server may have sent it whole all the same: then it is told in one go. */
export async function streamedReply(
  stream: AsyncIterable<readonly WireChunk[]>,
  format: WireFormat,
  options: FoldOptions,
): Promise<DecodedReply> {
  const fold = format.fold(options)
  for await (const chunks of stream) {
    const [first] = chunks
    if (first?.event === WHOLE_REPLY) return wholeReply(format.decode(first.data, options), options)
    for (const chunk of chunks) fold.add(chunk)
  }
  return fold.end()
}

function wholeReply(reply: DecodedReply, { onDelta }: FoldOptions): DecodedReply {
  for (const part of reply.parts) {
    const delta = deltaOf(part)
    if (delta !== null && delta.text !== '') onDelta?.(delta)
  }
  return reply
}

function deltaOf(part: AssistantPart): ModelDelta | null {
  switch (part.type) {
    case 'text':
      return { kind: 'text_delta', text: part.text }
    case 'reasoning':
      return { kind: 'reasoning_delta', text: part.text }
    case 'tool_call':
      return { kind: 'tool_input_delta', text: part.arguments, callId: part.callId, toolName: part.name }
    case 'opaque':
      return null
  }
}
