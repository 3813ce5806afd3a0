import type { ReplyChange } from '../turn-reader.js'
import { parseInput } from './tool-call-chunks.js'
import type { UiChunk } from './chunk.js'

/** Sources, calls that a provider executed, and images, as the clients of the AI SDK know them. */
export function hostedChunks(change: Extract<ReplyChange, { kind: 'cited' | 'hosted' | 'image' }>): readonly UiChunk[] {
  if (change.kind === 'image') {
    const { image } = change
    if ('url' in image) return [{ type: 'file', url: image.url, mediaType: 'image/*' }]
    return [{ type: 'file', url: `data:${image.mediaType};base64,${image.data}`, mediaType: image.mediaType }]
  }
  if (change.kind === 'cited')
    return change.citations.flatMap(({ url, title }, index): readonly UiChunk[] => {
      const sourceId = `${change.part}.s${index}`
      return url === undefined ? [] : [{ type: 'source-url', sourceId, url, ...(title !== undefined && { title }) }]
    })
  const { callId: toolCallId, name: toolName, arguments: input, result, isError } = change.hosted
  const byProvider = { dynamic: true, providerExecuted: true } as const
  const chunks: UiChunk[] = []
  if (input !== undefined)
    chunks.push({
      type: 'tool-input-available',
      toolCallId,
      toolName,
      input: parseInput(input) ?? input,
      ...byProvider,
    })
  if (isError === true)
    chunks.push({ type: 'tool-output-error', toolCallId, errorText: result ?? 'Failed.', ...byProvider })
  else if (result !== undefined || input === undefined)
    chunks.push({ type: 'tool-output-available', toolCallId, output: result ?? '', ...byProvider })
  return chunks
}
