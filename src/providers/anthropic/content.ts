import type { DocumentBlockParam, ImageBlockParam, TextBlockParam } from '@anthropic-ai/sdk/resources/messages'
import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { bareType, hasContent, isTextType, omission, parseDataUrl } from '../wire/content.js'
import type { FilePart } from '../wire/content.js'

/** Blocks of a user message. Throws `invalid_options` for content that the API does not support. */
export function userBlocks(content: readonly ContentPart[]): readonly JsonObject[] {
  return content.filter(hasContent).map((part) => {
    const form = blockOf(part)
    if (form.block === null) throw new HarnessError('invalid_options', form.problem)
    return form.block
  })
}

/** Blocks of a tool result. Content that the API does not support is replaced by a sentence. */
export function resultBlocks(content: readonly ContentPart[]): readonly JsonObject[] {
  return content.filter(hasContent).map((part) => {
    const form = blockOf(part)
    return form.block ?? textBlock(omission(form.problem))
  })
}

export function textBlock(text: string): JsonObject {
  return { type: 'text', text } satisfies TextBlockParam
}

/** A part in the form of the API, or the reason why it has none. */
type Form = { readonly block: JsonObject } | { readonly block: null; readonly problem: string }

const IMAGE_TYPES = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] as const

function blockOf(part: ContentPart): Form {
  switch (part.type) {
    case 'text':
      return { block: textBlock(part.text) }
    case 'image':
      return 'url' in part ? imageAt(part.url) : imageOf(part.data, part.mediaType)
    case 'file':
      return fileOf(part)
    case 'audio':
      return unsupported('audio', part.mediaType)
  }
}

function imageAt(url: string): Form {
  const image = parseDataUrl(url)
  if (image !== null) return imageOf(image.data, image.mediaType)
  return { block: { type: 'image', source: { type: 'url', url } } satisfies ImageBlockParam }
}

function imageOf(data: string, mediaType: string): Form {
  const type = bareType(mediaType)
  const media_type = IMAGE_TYPES.find((each) => each === type)
  if (media_type === undefined) return unsupported('image', mediaType)
  return { block: { type: 'image', source: { type: 'base64', media_type, data } } satisfies ImageBlockParam }
}

function fileOf({ data, mediaType, name }: FilePart): Form {
  const type = bareType(mediaType)
  const title = name === undefined ? {} : { title: name }
  if (type === 'application/pdf') {
    const source = { type: 'base64', media_type: type, data } as const
    return { block: { type: 'document', source, ...title } satisfies DocumentBlockParam }
  }
  if (isTextType(type)) {
    const source = { type: 'text', media_type: 'text/plain', data: Buffer.from(data, 'base64').toString() } as const
    return { block: { type: 'document', source, ...title } satisfies DocumentBlockParam }
  }
  const image = imageOf(data, type)
  return image.block === null ? unsupported('file', mediaType) : image
}

function unsupported(kind: ContentPart['type'], mediaType: string): Form {
  const supported = 'images (JPEG, PNG, GIF, WebP), PDF and text files'
  return { block: null, problem: `Anthropic's API supports ${supported}, got \`${kind}\` of type \`${mediaType}\`.` }
}
