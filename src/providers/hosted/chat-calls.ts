import type { AssistantPart, ImagePart } from '#contracts/entry.js'
import { parseDataUrl } from '#util/base64.js'
import { isObject } from '#util/json.js'
import { objectsIn, stringIn } from '../wire/wire-fields.js'
import { annotated, openAiCitations } from './citations.js'

/**
 * The parts of a message's content, its texts with their annotations. A message counts over all its texts.
 *
 * @example
 *   withAnnotations([{ type: 'text', text: 'High tide.' }], [{ type: 'url_citation', url_citation: { url: 'https://a.example', … } }])
 */
export function withAnnotations(parts: readonly AssistantPart[], annotations: unknown): readonly AssistantPart[] {
  if (!Array.isArray(annotations) || annotations.length === 0) return parts
  const whole = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const all = openAiCitations(annotations, whole)
  let start = 0
  return parts.map((part) => {
    if (part.type !== 'text' || part.text === '') return part
    const [begin, length] = [start, part.text.length]
    start += length
    const own = all.filter(({ from, to }) => from < begin + length && to >= begin)
    const within = own.map((each) => ({
      ...each,
      from: Math.max(0, each.from - begin),
      to: Math.min(length, each.to - begin),
    }))
    return { ...part, ...annotated(within) }
  })
}

/**
 * The images of a message, as OpenRouter sends them beside the content.
 *
 * @example
 *   chatImages([{ type: 'image_url', image_url: { url: 'data:image/png;base64,…' } }]) // [{ type: 'image', data: '…', mediaType: 'image/png' }]
 */
export function chatImages(images: unknown): readonly ImagePart[] {
  return objectsIn(images).flatMap(({ image_url: image }): ImagePart[] => {
    const url = isObject(image) ? stringIn(image['url']) : stringIn(image)
    if (url === '') return []
    const data = /^data:/i.test(url) ? parseDataUrl(url) : null
    return [data === null ? { type: 'image', url } : { type: 'image', ...data }]
  })
}
