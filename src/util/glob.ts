const MAX_GLOB_CHARS = 1_000
const MAX_ALTERNATIVES = 256

/**
 * The glob dialect of all file tools: `*` and `?` within a name, `**` for any number of folders, `[a-z]`, `{a,b}`, `\` before
 * a literal character. A pattern is matched against the whole path below its start, so `*.ts` matches only files directly in
 * the start folder. Case-sensitive.
 *
 * It is matched name by name on the way down, so that a walk can skip folders in which nothing can match.
 */
export interface Glob {
  readonly start: GlobState
  /** `namedOnly`: a name that begins with a dot must match a literal dot of the pattern, not a wildcard. */
  step(state: GlobState, name: string, namedOnly?: boolean): GlobState
}

export interface GlobState {
  /** The path so far matches. */
  readonly matched: boolean
  /** A path below the path so far may match. */
  readonly open: boolean
  /** The pattern names each part of the path so far, without a wildcard. */
  readonly named: boolean
  /** Number of names so far. */
  readonly depth: number
  readonly positions: readonly number[]
}

/** A place in a pattern; `named` is the number of names that lead to it, if none of them is a wildcard. */
type Node =
  | { readonly kind: 'end'; readonly named: number | undefined }
  | { readonly kind: 'globstar'; readonly named: number | undefined }
  | { readonly kind: 'name'; readonly named: number | undefined; readonly pattern: SegmentPattern }

/** The problem of a glob of a model or a host; `undefined` if there is none. */
export function globProblem(selector: string): string | undefined {
  if (selector === '') return 'glob is empty'
  if (selector.length > MAX_GLOB_CHARS) return `glob is longer than ${MAX_GLOB_CHARS} characters`
  if (selector.includes('\0')) return 'glob contains a NUL character'
  const absolute = portableSelector(selector).startsWith('/') || /^(?:\\\\|[A-Za-z]:)/.test(selector)
  if (absolute) return 'glob must be relative'
  if (selector.split(/[\\/]/).includes('..')) return 'glob must not contain `..`'
  if (braceAlternatives(portableSelector(selector)).length > MAX_ALTERNATIVES)
    return 'glob has too many alternatives in braces'
  return undefined
}

/**
 * Also the path that the selector names if its brackets and braces are part of names, such as `app/[id]/page.tsx`.
 * @param selector Without a `globProblem`.
 */
export function compileGlob(selector: string): Glob {
  const pattern = portableSelector(selector)
  const named = pattern.replace(/\\?[?[\]{}]/g, (special) => (special.length > 1 ? special : `\\${special}`))
  const alternatives = braceAlternatives(pattern)
  return globOf((named === pattern ? alternatives : [...alternatives, named]).map(patternSegments))
}

/** A pattern that is already split into names, each list an alternative. */
export function globOf(alternatives: readonly (readonly string[])[]): Glob {
  const nodes: Node[] = []
  const starts: number[] = []
  for (const segments of alternatives) {
    starts.push(nodes.length)
    nodes.push(...globNodes(segments))
  }
  return {
    start: stateAt(nodes, starts, 0),
    step(state, name, namedOnly = false) {
      const reached: number[] = []
      const hidden = namedOnly && name.startsWith('.')
      for (const position of state.positions) {
        const node = nodes[position]
        if (node?.kind === 'globstar' && !hidden) reached.push(position)
        if (node?.kind === 'name' && node.pattern.test(name) && (!hidden || node.pattern.dotted)) {
          reached.push(position + 1)
        }
      }
      return stateAt(nodes, reached, state.depth + 1)
    },
  }
}

/** The alternatives of braces; at least one more than allowed if there are too many. */
export function braceAlternatives(text: string): string[] {
  const done: string[] = []
  const open = [text]
  while (open.length > 0 && done.length + open.length <= MAX_ALTERNATIVES) {
    const next = open.pop() ?? ''
    const braces = firstBraces(next)
    if (braces === undefined) done.push(next)
    else open.push(...braces.options.map((option) => braces.before + option + braces.after).reverse())
  }
  return [...done, ...open]
}

/** On Windows `\` is a separator; elsewhere it is one unless it escapes a special character. */
function portableSelector(selector: string): string {
  if (process.platform === 'win32') return selector.replaceAll('\\', '/')
  return selector.replace(/\\(?![*?[\]{},\\])/g, '/')
}

function patternSegments(pattern: string): string[] {
  return pattern.split('/').filter((segment) => segment !== '' && segment !== '.')
}

function globNodes(segments: readonly string[]): Node[] {
  const nodes: Node[] = []
  let named: number | undefined = 0
  for (const segment of segments) {
    const pattern = segmentPattern(segment)
    if (segment === '**') nodes.push({ kind: 'globstar', named })
    else nodes.push({ kind: 'name', named, pattern })
    named = named === undefined || pattern.literal === undefined ? undefined : named + 1
  }
  // `folder/**` matches the contents of the folder, not the folder.
  if (segments.at(-1) === '**') nodes.push({ kind: 'name', named: undefined, pattern: segmentPattern('*') })
  nodes.push({ kind: 'end', named })
  return nodes
}

/** `**` may match no folder: its place implies the next one. */
function stateAt(nodes: readonly Node[], reached: readonly number[], depth: number): GlobState {
  const positions = new Set<number>()
  for (const position of reached) {
    let next = position
    while (!positions.has(next)) {
      positions.add(next)
      if (nodes[next]?.kind === 'globstar') next++
    }
  }
  const current = [...positions].map((position) => nodes[position])
  return {
    matched: current.some((node) => node?.kind === 'end'),
    open: current.some((node) => node !== undefined && node.kind !== 'end'),
    named: current.some((node) => node?.named === depth),
    depth,
    positions: [...positions],
  }
}

interface Braces {
  readonly before: string
  readonly options: readonly string[]
  readonly after: string
}

/** The first `{…}` that is closed; commas in nested braces do not count. */
function firstBraces(text: string): Braces | undefined {
  for (let open = nextBrace(text, 0); open !== -1; open = nextBrace(text, open + 1)) {
    const options = optionsFrom(text, open + 1)
    if (options !== undefined) {
      const length = options.reduce((sum, option) => sum + option.length + 1, 0)
      return { before: text.slice(0, open), options, after: text.slice(open + 1 + length) }
    }
  }
  return undefined
}

function nextBrace(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === '{') return at
  }
  return -1
}

function optionsFrom(text: string, from: number): string[] | undefined {
  const options: string[] = []
  let depth = 0
  let start = from
  for (let at = from; at < text.length; at++) {
    const char = text[at]
    if (char === '\\') at++
    else if (char === '{') depth++
    else if (char === '}' && depth > 0) depth--
    else if (char === '}') return [...options, text.slice(start, at)]
    else if (char === ',' && depth === 0) {
      options.push(text.slice(start, at))
      start = at + 1
    }
  }
  return undefined
}

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
  const dotted = tokens[0] !== undefined && unescapedToken(tokens[0]) === '.'
  if (tokens.every((token) => token !== '*' && token !== '?' && !isClass(token))) {
    const literal = tokens.map(unescapedToken).join('')
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
  return isClass(token) ? characterClass(token) : codePoint(unescapedToken(token))
}

function characterClass(token: string): string {
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

function unescapedToken(token: string): string {
  return token.length > 1 && token.startsWith('\\') ? token.slice(1) : token
}

function codePoint(char: string): string {
  return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`
}
