import type { ContentPart } from '#contracts/entry.js'
import type { PendingItem } from '#contracts/result.js'
import { shownContent } from '../content.js'
import type { LinkedContent, ProjectionOptions } from '../projection.js'
import { parseInput } from './calls.js'
import type { UiFinishReason, UiChunk, UiInputPart } from './chunk.js'

type Place = Pick<LinkedContent, 'runId' | 'seq'>
type ContentOptions = Pick<ProjectionOptions, 'maxInlineBytes' | 'contentUrl'>

/** A person's message as parts of a UI message. Content that is too large and has no link is left out. */
export function inputParts(
  content: readonly ContentPart[],
  place: Place,
  options: ContentOptions,
): readonly UiInputPart[] {
  return content.flatMap((part, index): UiInputPart[] => {
    if (part.type === 'text') return [{ type: 'text', text: part.text }]
    const file = shownContent(part, { ...place, index }, options)
    if (file?.url === undefined) return []
    const { url, mediaType, name } = file
    return [{ type: 'file', url, mediaType, ...(name !== undefined && { filename: name }) }]
  })
}

/** Images and files of a result. What is too large and has no link is a `data-file` with its type and size. */
export function fileChunks(
  parts: readonly ContentPart[],
  place: Place & { readonly callId: string },
  options: ContentOptions,
): readonly UiChunk[] {
  const { callId, ...event } = place
  return parts.flatMap((part, index): UiChunk[] => {
    const content = shownContent(part, { ...event, index }, options)
    if (content === null) return []
    const { url, mediaType } = content
    if (url === undefined) return [{ type: 'data-file', id: `${callId}.${index}`, data: { callId, ...content } }]
    return [{ type: 'file', url, mediaType }]
  })
}

/** A question to a person, or a call with an unknown outcome. */
export function questionPart(item: PendingItem, { answered }: { readonly answered: boolean }): UiChunk {
  const { kind, callId, toolName, arguments: text, payload, answerSchema, path } = item
  const data = {
    kind,
    toolName,
    arguments: parseInput(text) ?? text,
    path,
    ...(payload !== undefined && { payload }),
    ...(answerSchema !== undefined && { answerSchema }),
    ...(answered && { answered }),
  }
  return { type: 'data-question', id: callId, data }
}

export function uiFinishReason(reason: string): UiFinishReason {
  if (reason === 'length') return 'length'
  return reason === 'refusal' || reason === 'content_filter' ? 'content-filter' : 'stop'
}
