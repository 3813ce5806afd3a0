import { characterCount, firstCharacters, isLonger, lastCharacters } from '#util/characters.js'

export interface Excerpt {
  readonly text: string
  readonly truncated: boolean
}

/**
 * Text of at most `limit` characters; of a longer one, the beginning (`headShare` of the limit, default a fifth) and the end,
 * with a marker between them.
 */
export function excerptOf(text: string, limit: number, headShare = 1 / 5): Excerpt {
  if (!isLonger(text, limit)) return { text, truncated: false }
  const head = Math.floor(limit * headShare)
  const chars = characterCount(text)
  const marker = `\n[… ${chars - limit} of ${chars} characters left out …]\n`
  return { text: firstCharacters(text, head) + marker + lastCharacters(text, limit - head), truncated: true }
}
