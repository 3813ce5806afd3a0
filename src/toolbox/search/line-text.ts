import { firstCharacters, isLonger } from '../../util/characters.js'

const CR = 0x0d

/** The text of a line of a file for a model: without its line end, at most `maxChars` characters and then `...`. */
export function lineText(bytes: Buffer, start: number, end: number, maxChars: number): string {
  const lineEnd = end > start && bytes[end - 1] === CR ? end - 1 : end
  // A character has at most 4 bytes: what is cut off need not be decoded.
  const text = bytes.toString('utf8', start, Math.min(lineEnd, start + maxChars * 4 + 4))
  return cutText(text, maxChars)
}

export function cutText(text: string, maxChars: number): string {
  return isLonger(text, maxChars) ? `${firstCharacters(text, maxChars)}...` : text
}
