import type { DocumentBlockParam, ImageBlockParam, TextBlockParam } from '@anthropic-ai/sdk/resources/messages'
import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'

/** Blocks of a user message. Throws `invalid_options` for what the API does not take. */
export function userBlocks(content: readonly ContentPart[]): readonly JsonObject[] {
  return content.filter(hasContent).map((part) => {
    const form = blockOf(part)
    if (form.block === null) throw new HarnessError('invalid_options', form.problem)
    return form.block
  })
}

/** Blocks of a tool's result. What the API does not take is named in a text, so that the model knows of it. */
export function resultBlocks(content: readonly ContentPart[]): readonly JsonObject[] {
  return content.filter(hasContent).map((part) => {
    const form = blockOf(part)
    return form.block ?? textBlock(`[Left out of this result. ${form.problem}]`)
  })
}

export function textBlock(text: string): JsonObject {
  return { type: 'text', text } satisfies TextBlockParam
}

/** The API refuses empty texts. */
function hasContent(part: ContentPart): boolean {
  return part.type !== 'text' || part.text !== ''
}

/** A part as the API takes it, or why it does not. */
type Form = { readonly block: JsonObject } | { readonly block: null; readonly problem: string }

type ImageType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp'

const IMAGE_TYPES: ReadonlyMap<string, ImageType> = new Map([
  ['image/jpeg', 'image/jpeg'],
  ['image/jpg', 'image/jpeg'],
  ['image/png', 'image/png'],
  ['image/gif', 'image/gif'],
  ['image/webp', 'image/webp'],
])

const TEXT_TYPE = /^text\/|^application\/(?:json|xml|yaml|x-yaml|toml|javascript|x-sh|sql)$|\+(?:json|xml)$/
const DATA_URL = /^data:([^;,]+)[^,]*;base64,(.*)$/s

function blockOf(part: ContentPart): Form {
  switch (part.type) {
    case 'text':
      return { block: textBlock(part.text) }
    case 'image':
      return 'url' in part ? imageAt(part.url) : imageOf(part.data, part.mediaType)
    case 'file':
      return fileOf(part)
    case 'audio':
      return refused('audio', part.mediaType)
  }
}

function imageAt(url: string): Form {
  const [, mediaType, data] = DATA_URL.exec(url) ?? []
  if (mediaType !== undefined && data !== undefined) return imageOf(data, mediaType)
  return { block: { type: 'image', source: { type: 'url', url } } satisfies ImageBlockParam }
}

function imageOf(data: string, mediaType: string): Form {
  const media_type = IMAGE_TYPES.get(bare(mediaType))
  if (media_type === undefined) return refused('image', mediaType)
  return { block: { type: 'image', source: { type: 'base64', media_type, data } } satisfies ImageBlockParam }
}

function fileOf({ data, mediaType, name }: ContentPart & { readonly type: 'file' }): Form {
  const type = bare(mediaType)
  const title = name === undefined ? {} : { title: name }
  if (type === 'application/pdf') {
    const source = { type: 'base64', media_type: type, data } as const
    return { block: { type: 'document', source, ...title } satisfies DocumentBlockParam }
  }
  if (TEXT_TYPE.test(type)) {
    const source = { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString() } as const
    return { block: { type: 'document', source, ...title } satisfies DocumentBlockParam }
  }
  return IMAGE_TYPES.has(type) ? imageOf(data, type) : refused('file', mediaType)
}

function refused(kind: ContentPart['type'], mediaType: string): Form {
  const taken = 'images (JPEG, PNG, GIF, WebP), PDF and text files'
  return { block: null, problem: `Anthropic's API takes ${taken}, got \`${kind}\` of type \`${mediaType}\`.` }
}

/** A media type without its parameters. */
function bare(mediaType: string): string {
  return mediaType.replace(/;.*$/s, '').trim().toLowerCase()
}
