import type { ContentPart } from '#contracts/entry.js'
import { shownContent } from '../shown-content.js'
import type { LinkedContent, ProjectionOptions } from '../projection.js'

/** Open by key; `thinharness` is used here. */
export type AgUiMetadata = Readonly<Record<string, unknown>>

/** A part of a message of a person, or of a result. */
export type AgUiPart =
  | { readonly type: 'text'; readonly text: string; readonly metadata?: unknown }
  | {
      readonly type: 'image' | 'audio' | 'video' | 'document'
      readonly source: AgUiSource
      readonly metadata?: unknown
    }

export type AgUiSource =
  | { readonly type: 'data'; readonly value: string; readonly mimeType: string }
  | { readonly type: 'url'; readonly value: string; readonly mimeType?: string }

export interface AgUiToolCall {
  readonly id: string
  readonly type: 'function'
  readonly function: { readonly name: string; readonly arguments: string }
}

interface Base {
  readonly id: string
  /** The child run that the message is of; absent for the run itself. */
  readonly subagentRunId?: string
  readonly metadata?: AgUiMetadata
}

/** A message of a conversation in the form of AG-UI. */
export type AgUiMessage =
  | (Base & { readonly role: 'user'; readonly content: string | readonly AgUiPart[] })
  | (Base & { readonly role: 'assistant'; readonly content?: string; readonly toolCalls?: readonly AgUiToolCall[] })
  | (Base & { readonly role: 'reasoning'; readonly content: string })
  | (Base & { readonly role: 'tool'; readonly toolCallId: string; readonly content: string | readonly AgUiPart[] })
  | (Base & {
      readonly role: 'activity'
      readonly activityType: string
      readonly content: Readonly<Record<string, unknown>>
    })

type ContentOptions = Pick<ProjectionOptions, 'maxInlineBytes' | 'contentUrl'>

/** Content as a text, if it is one text, else as parts. */
export function agUiContent(
  content: readonly ContentPart[],
  place: Pick<LinkedContent, 'runId' | 'seq'>,
  options: ContentOptions,
): string | readonly AgUiPart[] {
  const [first, ...others] = content
  if (first?.type === 'text' && others.length === 0) return first.text
  return content.map((part, index) => agUiPart(part, { ...place, index }, options))
}

/** A part. Content that is too large and has no link is a text with its type and size. */
export function agUiPart(
  part: ContentPart,
  place: Pick<LinkedContent, 'runId' | 'seq' | 'index'>,
  options: ContentOptions,
): AgUiPart {
  if (part.type === 'text') return { type: 'text', text: part.text }
  const shown = shownContent(part, place, options)
  const { url, mediaType = '', name, size } = shown ?? {}
  const metadata = { ...(name !== undefined && { name }), ...(size !== undefined && { size }) }
  const more = Object.keys(metadata).length === 0 ? {} : { metadata }
  if (url === undefined)
    return { type: 'text', text: `[${mediaType}, ${size ?? 0} bytes]`, metadata: { mediaType, ...metadata } }
  const type = partType(mediaType)
  if (!url.startsWith('data:')) {
    const mimeType = mediaType.endsWith('/*') ? {} : { mimeType: mediaType }
    return { type, source: { type: 'url', value: url, ...mimeType }, ...more }
  }
  return { type, source: { type: 'data', value: url.slice(url.indexOf(',') + 1), mimeType: mediaType }, ...more }
}

function partType(mediaType: string): 'image' | 'audio' | 'video' | 'document' {
  const [kind] = mediaType.split('/')
  return kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
}
