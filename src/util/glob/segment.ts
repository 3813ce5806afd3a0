/** A pattern for one segment of a path, a name without `/`. */
export interface SegmentPattern {
  /** The only name that matches, if the pattern has no wildcard. */
  readonly literal: string | undefined
  /** It begins with a literal `.`, so it may match a hidden name. */
  readonly dotted: boolean
  /** Takes at most the length of the name times that of the pattern. */
  test(name: string): boolean
}

/** An escape, a class (a `]` in first place is a member), or one character. An unclosed `[` stands for itself. */
const TOKEN = /\\[^]|\[(?:[!^][^][^\]]*|[^!^][^\]]*)\]|[^]/gu

/** `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a literal character. */
export function segmentPattern(text: string): SegmentPattern {
  const tokens = text.match(TOKEN) ?? []
  const dotted = tokens[0] !== undefined && unescaped(tokens[0]) === '.'
  if (tokens.every((token) => token !== '*' && token !== '?' && !isClass(token))) {
    const literal = tokens.map(unescaped).join('')
    return { literal, dotted, test: (name) => name === literal }
  }
  const regex = new RegExp(`^${segmentSource(tokens)}$`, 'su')
  return { literal: undefined, dotted, test: (name) => regex.test(name) }
}

/**
 * The pattern as a regular expression. Each part between two stars matches at its first position, and a lookahead is never
 * tried again: only the last star backtracks.
 */
function segmentSource(tokens: readonly string[]): string {
  // All other characters are escaped.
  const [first = '', ...others] = tokens.map(partSource).join('').split('*')
  const last = others.pop()
  if (last === undefined) return first
  const middle = others.filter((part) => part !== '').map((part, index) => `(?=(.*?${part}))\\${index + 1}`)
  return `${first}${middle.join('')}.*${last}`
}

function partSource(token: string): string {
  if (token === '*') return token
  if (token === '?') return '.'
  return isClass(token) ? classOf(token) : codePoint(unescaped(token))
}

function classOf(token: string): string {
  const isNegated = /^\[[!^]/.test(token)
  const members = Array.from(token.slice(isNegated ? 2 : 1, -1))
  let ranges = ''
  for (let at = 0; at < members.length; at++) {
    const from = members[at] ?? ''
    const to = members[at + 1] === '-' ? members[at + 2] : undefined
    if (to === undefined || from <= to) ranges += `${codePoint(from)}-${codePoint(to ?? from)}`
    if (to !== undefined) at += 2
  }
  return `[${isNegated ? '^' : ''}${ranges}]`
}

function isClass(token: string): boolean {
  return token.length > 1 && token.startsWith('[')
}

function unescaped(token: string): string {
  return token.length > 1 && token.startsWith('\\') ? token.slice(1) : token
}

function codePoint(char: string): string {
  return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`
}
