import { mediaPart } from '#contracts/entry.js'
import { mediaTypeOfBase64 } from '#contracts/media-type.js'
import { isObject } from '#util/json.js'
import { shownValue } from '#util/mismatch.js'
import type { ContentPart } from '#contracts/entry.js'
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
      throw at.in('source').error(`expected an object, got ${shownValue(part['source'])}`)
    case 'file':
      // Chat completions have an object of their own here.
      if (isObject(part['file']))
        return medium(part['file']['file_data'], undefined, {
          name: part['file']['filename'],
          at: at.in('file.file_data'),
        })
      return medium(part['data'], typeOf(part), { name, at: at.in('data') })
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
      return medium(data, `audio/${typeof format === 'string' ? format : '*'}`, { name, at: at.in('input_audio') })
    }
    default:
      throw at.in('type').error(`${shownValue(type)} has no form in a transcript`)
  }
}

function typeOf({ mediaType, mimeType }: JsonLike): string | undefined {
  return [mediaType, mimeType].find((each) => typeof each === 'string')
}

function ofSource(source: JsonLike, name: unknown, at: At): ContentPart {
  const { type, data, media_type: mediaType, url } = source
  if (type === 'url') return medium(url, name === undefined ? 'image/*' : undefined, { name, at: at.in('url') })
  if (type === 'text') return medium(textData(at.text(source, 'data')), 'text/plain', { name, at })
  if (type === 'base64')
    return medium(data, typeof mediaType === 'string' ? mediaType : undefined, { name, at: at.in('data') })
  throw at.in('type').error(`${shownValue(type)} has no form in a transcript`)
}

interface Named {
  readonly name: unknown
  readonly at: At
}

/** Data as base64, as bytes, as a `data:` URL, or the address of an image. */
function medium(given: unknown, mediaType: string | undefined, { name, at }: Named): ContentPart {
  const data = dataOf(given)
  if (typeof data !== 'string') {
    if (isObject(data) && Object.values(data).every((value) => typeof value === 'string'))
      throw at.error('refers to a file that a provider stores: pass its bytes')
    throw at.error(`expected base64, bytes or an address, got ${shownValue(given)}`)
  }
  const [, urlType = '', isBase64, urlData] = /^data:([^;,]*)[^,]*?(;base64)?,(.*)$/is.exec(data) ?? []
  if (urlData !== undefined) {
    const base64 = isBase64 === undefined ? percentDecoded(urlData) : urlData
    if (base64 === undefined) throw at.error('is a `data:` URL that cannot be decoded')
    return medium(base64, urlType || 'text/plain', { name, at })
  }
  if (/^https?:/i.test(data)) {
    if (mediaType === 'image' || mediaType?.startsWith('image/') === true) return { type: 'image', url: data }
    throw at.error('is an address, which only an image can have: pass the bytes of a file')
  }
  if (mediaType === undefined) throw at.error('has no media type')
  const type = fullType(mediaType, data)
  if (type === undefined) throw at.error(`has the media type \`${mediaType}\`, which does not name a format`)
  return mediaPart(data, type, typeof name === 'string' ? name : undefined)
}

/** Version 7 of the AI SDK names the kind of the data: `{ type: 'data', data }`, `url`, `text` or `reference`. */
function dataOf(given: unknown): unknown {
  if (given instanceof URL) return given.href
  if (given instanceof ArrayBuffer) return Buffer.from(given).toString('base64')
  if (given instanceof Uint8Array) return Buffer.from(given.buffer, given.byteOffset, given.length).toString('base64')
  if (!isObject(given)) return given
  switch (given['type']) {
    case 'data':
      return dataOf(given['data'])
    case 'url':
      return dataOf(given['url'])
    case 'text':
      return typeof given['text'] === 'string' ? textData(given['text']) : given
    case 'reference':
      return given['reference']
    default:
      return given
  }
}

function percentDecoded(text: string): string | undefined {
  try {
    return textData(decodeURIComponent(text))
  } catch {
    return undefined
  }
}

function textData(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** The media type with its format. Only `image`, `image/*` and the like: by the first bytes of the file, in base64. */
function fullType(mediaType: string, data: string): string | undefined {
  const [kind = '', format = '*'] = mediaType.split('/')
  if (format !== '*') return mediaType
  const type = mediaTypeOfBase64(data)
  return type?.startsWith(`${kind}/`) === true ? type : undefined
}
