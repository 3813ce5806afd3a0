/** How many characters (code points) `text` has. */
export function characterCount(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length - 1; at++) if (isPair(text, at)) count--
  return count
}

/** The first `count` characters; never half of a pair. */
export function firstCharacters(text: string, count: number): string {
  if (text.length <= count) return text
  let at = 0
  for (let left = count; left > 0 && at < text.length; left--) at += isPair(text, at) ? 2 : 1
  return text.slice(0, at)
}

/** The last `count` characters; never half of a pair. */
export function lastCharacters(text: string, count: number): string {
  if (text.length <= count) return text
  let at = text.length
  for (let left = count; left > 0 && at > 0; left--) at -= at > 1 && isPair(text, at - 2) ? 2 : 1
  return text.slice(at)
}

/** True if `text` has more than `limit` characters. */
export function isLonger(text: string, limit: number): boolean {
  return text.length > limit && characterCount(text) > limit
}

/** At most `maxChars` characters, and then `mark` if the text is longer. */
export function cutText(text: string, maxChars: number, mark = '…'): string {
  return isLonger(text, maxChars) ? firstCharacters(text, maxChars) + mark : text
}

/** True if half of a surrogate pair stands alone somewhere: such text has no UTF-8 form. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text)
}

function isPair(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00
}
