import { firstCharacters, isLonger } from '../../util/characters.js'

const CR = 0x0d

/** The text of a line of a file for a model: without a CR at its end, at most `maxChars` characters and then `...`. */
export function lineText(line: Buffer, maxChars: number): string {
  const end = line.at(-1) === CR ? line.length - 1 : line.length
  // A character has at most 4 bytes: the rest need not be decoded.
  return cutText(line.toString('utf8', 0, Math.min(end, maxChars * 4 + 4)), maxChars)
}

export function cutText(text: string, maxChars: number): string {
  return isLonger(text, maxChars) ? `${firstCharacters(text, maxChars)}...` : text
}
