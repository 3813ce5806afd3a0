import { atOnce } from '#util/wrapped.js'
import type { ContentPart } from '#contracts/entry.js'
import { isObject, mapStrings, jsonObjectIn } from '#util/json.js'
import type { LinkedContent, ProjectionOptions } from './projection.js'

/** The largest image or file that is sent in an item, in bytes. */
const MAX_INLINE_BYTES = 262_144

/** An image, a file or a sound as a reader gets it: a `data:` address, or a link; neither if it is too large and has no link. */
export interface ShownContent {
  readonly mediaType: string
  readonly name?: string
  /** A `data:` address, or a link. */
  readonly url?: string
  /** In bytes; absent for a link of the run itself. */
  readonly size?: number
}

/** The type of a stored file of which none is said. */
const STORED = 'application/octet-stream'

/** A part of an event as readers get it; null for text. */
export function shownContent(
  part: ContentPart,
  place: Pick<LinkedContent, 'runId' | 'seq' | 'index'>,
  { maxInlineBytes = MAX_INLINE_BYTES, contentUrl }: Pick<ProjectionOptions, 'maxInlineBytes' | 'contentUrl'>,
): ShownContent | null {
  if (part.type === 'text') return null
  if ('id' in part) return { mediaType: part.mediaType ?? STORED, name: part.name ?? part.id }
  if (!('data' in part)) return { mediaType: 'image/*', url: part.url }
  const { data, mediaType } = part
  const size = Math.floor((data.length * 3) / 4) - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0)
  const shown = { mediaType, size, ...('name' in part && { name: part.name }) }
  if (size <= maxInlineBytes) return { ...shown, url: `data:${mediaType};base64,${data}` }
  const url = atOnce('`contentUrl`', contentUrl?.({ ...place, mediaType, size }))
  return url === undefined ? shown : { ...shown, url }
}

/** An absolute path. */
const PATH = /^(?:\/|[A-Za-z]:[\\/])/

/** An envelope's JSON text, with names in place of the paths in its metadata: they are paths of the host. */
export function shownEnvelope(output: string): string {
  const envelope = jsonObjectIn(output)
  if (!isObject(envelope['metadata'])) return output
  return JSON.stringify({ ...envelope, metadata: withoutPaths(envelope['metadata']) })
}

/** Data in which an absolute path is the last of its names. */
export function withoutPaths(value: unknown): unknown {
  return mapStrings(value, (text) => (PATH.test(text) ? (text.split(/[\\/]/).at(-1) ?? '') : text))
}

/** The content of an envelope's JSON text. */
export function contentOfEnvelope(output: string): string {
  const { content } = jsonObjectIn(output)
  return typeof content === 'string' ? content : output
}
