/** Letters and digits that two strings must have in common in a row to count as near: any run of twice as many is found. */
const BLOCK = 12
/** A shorter argument says nothing about its source. */
const SHORTEST = 4

/** A string, prepared to be compared with many. */
export interface Fingerprint {
  readonly letters: string
  readonly blocks: ReadonlySet<string>
}

export function fingerprintOf(text: string): Fingerprint {
  const letters = lettersOf(text)
  const blocks = new Set<string>()
  for (let at = 0; at + BLOCK <= letters.length; at += BLOCK) blocks.add(letters.slice(at, at + BLOCK))
  return { letters, blocks }
}

/**
 * Compares a string with another: it is contained in it (`exact`), or at least 23 letters and digits in a row are the
 * other's (`near`). Case, spaces and punctuation do not count. Linear in the length of both.
 */
export function overlap(text: string, source: Fingerprint): 'exact' | 'near' | null {
  const letters = lettersOf(text)
  if (letters.length < SHORTEST) return null
  if (source.letters.includes(letters)) return 'exact'
  for (let at = 0; at + BLOCK <= letters.length; at++) {
    if (source.blocks.has(letters.slice(at, at + BLOCK))) return 'near'
  }
  return null
}

function lettersOf(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '')
}
