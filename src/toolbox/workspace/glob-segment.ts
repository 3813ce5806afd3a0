/** Tests one segment of a path, a name without `/`, in at most its length times the pattern's length. */
export interface SegmentPattern {
  /** The name that it stands for, when it has no wildcard. */
  readonly literal: string | undefined
  /** It begins with a `.` of its own, so it may match a hidden name. */
  readonly dotted: boolean
  test(name: string): boolean
}

type Piece =
  | { readonly kind: 'char'; readonly char: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'star' }
  | { readonly kind: 'class'; readonly negated: boolean; readonly ranges: readonly (readonly [string, string])[] }

/** `*`, `?`, `[a-z]`, `[!a-z]` and `\` before a character that shall stand for itself. An open `[` stands for itself. */
export function segmentPattern(text: string): SegmentPattern {
  const pieces = piecesOf(text)
  const first = pieces[0]
  return {
    literal: pieces.every((piece) => piece.kind === 'char') ? literalText(pieces) : undefined,
    dotted: first?.kind === 'char' && first.char === '.',
    test: testOf(pieces),
  }
}

function piecesOf(text: string): Piece[] {
  const chars = Array.from(text)
  const pieces: Piece[] = []
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? ''
    const next = chars[at + 1]
    if (char === '\\' && next !== undefined) {
      pieces.push({ kind: 'char', char: next })
      at++
    } else if (char === '[') {
      const end = classEnd(chars, at)
      if (end === -1) pieces.push({ kind: 'char', char })
      else pieces.push(classOf(chars.slice(at + 1, end)))
      if (end !== -1) at = end
    } else if (char === '?') pieces.push({ kind: 'any' })
    else if (char !== '*') pieces.push({ kind: 'char', char })
    else if (pieces.at(-1)?.kind !== 'star') pieces.push({ kind: 'star' })
  }
  return pieces
}

/** Where the class that opens at `open` closes: a `]` that stands first is a member. */
function classEnd(chars: readonly string[], open: number): number {
  const negated = chars[open + 1] === '!' || chars[open + 1] === '^'
  return chars.indexOf(']', open + (negated ? 3 : 2))
}

function classOf(members: readonly string[]): Piece {
  const negated = members[0] === '!' || members[0] === '^'
  const chars = negated ? members.slice(1) : members
  const ranges: [string, string][] = []
  for (let at = 0; at < chars.length; at++) {
    const from = chars[at] ?? ''
    const to = chars[at + 1] === '-' ? chars[at + 2] : undefined
    ranges.push([from, to ?? from])
    if (to !== undefined) at += 2
  }
  return { kind: 'class', negated, ranges }
}

function literalText(pieces: readonly Piece[]): string {
  return pieces.map((piece) => (piece.kind === 'char' ? piece.char : '')).join('')
}

/** The common forms (`name`, `*`, `prefix*suffix`) as string comparisons. */
function testOf(pieces: readonly Piece[]): (name: string) => boolean {
  const star = pieces.findIndex((piece) => piece.kind === 'star')
  const rest = pieces.filter((_, at) => at !== star)
  if (!rest.every((piece) => piece.kind === 'char')) return (name) => matches(pieces, Array.from(name))
  if (star === -1) {
    const literal = literalText(rest)
    return (name) => name === literal
  }
  const prefix = literalText(pieces.slice(0, star))
  const suffix = literalText(pieces.slice(star + 1))
  const length = prefix.length + suffix.length
  return (name) => name.length >= length && name.startsWith(prefix) && name.endsWith(suffix)
}

/** Only the last star that was met can need another try: what stands before it matched as early as it can. */
function matches(pieces: readonly Piece[], name: readonly string[]): boolean {
  let at = 0
  let piece = 0
  let star = -1
  let starAt = 0
  while (at < name.length) {
    const current = pieces[piece]
    if (current?.kind === 'star') {
      star = piece++
      starAt = at
    } else if (current !== undefined && fits(current, name[at] ?? '')) {
      piece++
      at++
    } else if (star !== -1) {
      piece = star + 1
      at = ++starAt
    } else return false
  }
  return pieces.slice(piece).every(({ kind }) => kind === 'star')
}

function fits(piece: Piece, char: string): boolean {
  switch (piece.kind) {
    case 'char':
      return piece.char === char
    case 'any':
      return true
    case 'class':
      return piece.ranges.some(([from, to]) => from <= char && char <= to) !== piece.negated
    case 'star':
      return false
  }
}
