const PLAIN = /^[A-Za-z0-9+/]*={0,2}$/
const DATA_URL = /^data:([^;,]+)[^,]*;base64,(.*)$/is

/** The content of a `data:` URL; null for any other URL. */
export function parseDataUrl(url: string): { readonly data: string; readonly mediaType: string } | null {
  const [, mediaType, data] = DATA_URL.exec(url) ?? []
  return mediaType === undefined || data === undefined ? null : { data, mediaType }
}

/** Base64 in its plain form; null for anything else. Lines, the alphabet of URLs and whole `data:` URLs are accepted. */
export function plainBase64(given: string): string | null {
  const data = /^data:/i.test(given) ? (parseDataUrl(given)?.data ?? given) : given
  if (PLAIN.test(data)) return data
  const plain = data.replace(/\s+/g, '').replaceAll('-', '+').replaceAll('_', '/')
  return PLAIN.test(plain) ? plain : null
}

/** Content whose `data` is plain base64; null for the data of anything else. */
export function withPlainData<Part extends object>(part: Part): Part | null {
  if (!('data' in part) || typeof part.data !== 'string') return part
  const data = plainBase64(part.data)
  if (data === null) return null
  return data === part.data ? part : { ...part, data }
}
