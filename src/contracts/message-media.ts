import { isObject } from '../util/json.js'
import { shown } from '../util/mismatch.js'
import type { ContentPart } from './entry.js'
import type { At } from './message-place.js'

type JsonLike = Readonly<Record<string, unknown>>

/** An image, a file or audio in a message, in any of the forms. */
export function mediumOf(part: JsonLike, at: At): ContentPart {
  const { type } = part
  const name = [part['filename'], part['title'], part['name']].find((each) => typeof each === 'string')
  switch (type) {
    case 'image':
      if (isObject(part['source'])) return ofSource(part['source'], undefined, at.in('source'))
      return medium(part['image'], typeOf(part) ?? 'image/*', { name, at: at.in('image') })
    case 'document':
      if (isObject(part['source'])) return ofSource(part['source'], name, at.in('source'))
      throw at.in('source').error(`expected an object, got ${shown(part['source'])}`)
    case 'file':
      // Chat completions have an object of their own here.
      if (isObject(part['file']))
        return medium(part['file']['file_data'], undefined, {
          name: part['file']['filename'],
          at: at.in('file.file_data'),
        })
      return medium(fileData(part['data']), typeOf(part), { name, at: at.in('data') })
    case 'file-data':
    case 'image-data':
    case 'media':
      return medium(part['data'], typeOf(part), { name, at: at.in('data') })
    case 'image-url':
    case 'file-url':
      return medium(part['url'], typeOf(part) ?? (type === 'image-url' ? 'image/*' : undefined), {
        name,
        at: at.in('url'),
      })
    case 'image_url':
    case 'input_image': {
      const url = isObject(part['image_url']) ? part['image_url']['url'] : part['image_url']
      return medium(url, 'image/*', { name, at: at.in('image_url') })
    }
    case 'input_file':
      return medium(part['file_data'], undefined, { name, at: at.in('file_data') })
    case 'input_audio': {
      const { data, format } = isObject(part['input_audio'])
        ? part['input_audio']
        : { data: undefined, format: undefined }
      return medium(data, `audio/${String(format)}`, { name, at: at.in('input_audio') })
    }
    default:
      throw at.in('type').error(`${shown(type)} has no form in a transcript`)
  }
}

function typeOf({ mediaType, mimeType }: JsonLike): string | undefined {
  return [mediaType, mimeType].find((each) => typeof each === 'string')
}

/** Newer versions of the AI SDK have the kind of the data with it. */
function fileData(data: unknown): unknown {
  if (!isObject(data) || data instanceof URL || data instanceof Uint8Array) return data
  return data['data'] ?? data['url'] ?? data['text']
}

function ofSource(source: JsonLike, name: unknown, at: At): ContentPart {
  const { type, data, media_type: mediaType, url } = source
  if (type === 'url') return medium(url, name === undefined ? 'image/*' : undefined, { name, at: at.in('url') })
  if (type === 'text')
    return medium(Buffer.from(at.text(source, 'data')).toString('base64'), 'text/plain', { name, at })
  if (type === 'base64')
    return medium(data, typeof mediaType === 'string' ? mediaType : undefined, { name, at: at.in('data') })
  throw at.in('type').error(`${shown(type)} has no form in a transcript`)
}

/** Data as base64, as bytes, as a `data:` URL, or the address of an image. */
function medium(
  given: unknown,
  mediaType: string | undefined,
  { name, at }: { readonly name: unknown; readonly at: At },
): ContentPart {
  const data = given instanceof URL ? given.href : bytesOf(given)
  if (typeof data !== 'string') throw at.error(`expected base64, bytes or an address, got ${shown(given)}`)
  const [, urlType, urlData] = /^data:([^;,]+)[^,]*;base64,(.*)$/s.exec(data) ?? []
  if (urlType !== undefined && urlData !== undefined) return medium(urlData, urlType, { name, at })
  if (/^https?:/i.test(data)) {
    if (mediaType?.startsWith('image/') === true) return { type: 'image', url: data }
    throw at.error('is an address, which only an image can have: pass the bytes of a file')
  }
  if (mediaType === undefined) throw at.error('has no media type')
  // Base64 begins with the first bytes of the file.
  const type =
    mediaType === 'image/*' ? (IMAGES.find(([start]) => data.startsWith(start))?.[1] ?? mediaType) : mediaType
  if (type === 'image/*') throw at.error('is an image of an unknown media type')
  if (type.startsWith('image/')) return { type: 'image', data, mediaType: type }
  if (type.startsWith('audio/')) return { type: 'audio', data, mediaType: type }
  return { type: 'file', data, mediaType: type, ...(typeof name === 'string' && { name }) }
}

const IMAGES: readonly (readonly [string, string])[] = [
  ['iVBOR', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
]

function bytesOf(given: unknown): unknown {
  if (given instanceof ArrayBuffer) return Buffer.from(given).toString('base64')
  return given instanceof Uint8Array ? Buffer.from(given).toString('base64') : given
}
