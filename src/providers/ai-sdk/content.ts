import { HarnessError } from '../../contracts/errors.js'
import type { ContentPart } from '../../contracts/entry.js'
import type { JsonObject } from '../../util/json.js'
import { bareType, hasContent, isTextType, parseDataUrl, textOfFile } from '../wire/content.js'
import type { PromptFile, Version } from './language-model.js'

/** The known inputs of a model. */
export interface ContentRules {
  /** Name of the model's provider, for messages. */
  readonly provider: string
  readonly version: Version
  /** Kinds of input other than text; undefined: all. */
  readonly inputs: readonly ContentPart['type'][] | undefined
}

/** Parts of a user message. Throws `invalid_options` for content that the model is known not to support. */
export function userParts(content: readonly ContentPart[], rules: ContentRules): JsonObject[] {
  return content.filter(hasContent).map((part) => {
    const form = formOf(part, rules)
    if (form.kind === 'unsupported') throw new HarnessError('invalid_options', form.problem)
    return form.kind === 'text' ? textPart(form.text) : filePart(form.file, rules.version)
  })
}

/** A part of a message in the form of the specification, or the reason why the model does not support it. */
type PartForm =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file'; readonly file: PromptFile }
  | { readonly kind: 'unsupported'; readonly problem: string }

/** Text files are sent as text: few providers support them as files. */
export function formOf(part: ContentPart, { provider, version, inputs }: ContentRules): PartForm {
  if (part.type === 'text') return { kind: 'text', text: part.text }
  if (part.type === 'file' && isTextType(part.mediaType)) return { kind: 'text', text: textOfFile(part) }
  if (inputs?.includes(part.type) === false) {
    return { kind: 'unsupported', problem: `The model of \`${provider}\` does not support \`${part.type}\`.` }
  }
  if ('url' in part) return { kind: 'file', file: imageAt(part.url, version) }
  const { data, mediaType } = part
  const name = part.type === 'file' && part.name !== undefined ? { name: part.name } : {}
  return { kind: 'file', file: { source: { data }, mediaType: bareType(mediaType), ...name } }
}

export function textPart(text: string): JsonObject {
  return { type: 'text', text }
}

export function filePart({ source, mediaType, name }: PromptFile, version: Version): JsonObject {
  return { type: 'file', data: version.fileData(source), mediaType, ...(name !== undefined && { filename: name }) }
}

function imageAt(url: string, version: Version): PromptFile {
  const image = parseDataUrl(url)
  if (image !== null) return { source: { data: image.data }, mediaType: bareType(image.mediaType) }
  if (!URL.canParse(url)) {
    const message = `Expected the \`url\` of an image to be a URL, got \`${url.slice(0, 100)}\`.`
    throw new HarnessError('invalid_options', message)
  }
  return { source: { url }, mediaType: version.anyOf('image') }
}
