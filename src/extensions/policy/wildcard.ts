/** A test for a string with `*` for any characters, none included. */
export function matchesWildcard(glob: string): (text: string) => boolean {
  return matchesBetween(glob.split('*'))
}

/** A test for a string that has these pieces in this order, with any characters between them. Linear in its length. */
export function matchesBetween(pieces: readonly string[]): (text: string) => boolean {
  const [first = ''] = pieces
  const last = pieces.at(-1) ?? ''
  if (pieces.length === 1) return (text) => text === first
  const middle = pieces.slice(1, -1)
  return (text) => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false
    let at = first.length
    for (const piece of middle) {
      const found = text.indexOf(piece, at)
      if (found === -1) return false
      at = found + piece.length
    }
    return at <= text.length - last.length
  }
}
