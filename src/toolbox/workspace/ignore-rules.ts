import { braceAlternatives, globOf, segmentPattern } from '#util/glob.js'
import type { Glob } from '#util/glob.js'

/** The verdict of the ignore files above an entry. `shown`: a rule with `!` includes it again. */
export type IgnoreVerdict = 'ignored' | 'shown' | undefined

/** Names of ignore files by precedence: a rule in an earlier kind wins, however deep the file of a later kind is. */
export const IGNORE_FILES = ['.rgignore', '.ignore', '.gitignore'] as const

export type IgnoreFileName = (typeof IGNORE_FILES)[number]

/** No path is longer. */
const MAX_RULE_CHARS = 4_096

/** The rules of one folder's ignore files, and of those of the folders above it. */
export interface IgnoreScope {
  readonly parent: IgnoreScope | undefined
  /** Number of names from the folder of the outermost scope to this folder. */
  readonly depth: number
  readonly rules: Readonly<Partial<Record<IgnoreFileName, readonly IgnoreRule[]>>>
}

export interface IgnoreRule {
  readonly negated: boolean
  readonly foldersOnly: boolean
  /** `segments` are the names from the rule's folder to the entry. */
  matches(segments: readonly string[]): boolean
}

/** The rules in the text of an ignore file, in the syntax of gitignore. */
export function parseIgnoreFile(text: string): IgnoreRule[] {
  return text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map(ignoreRule)
    .filter((rule) => rule !== undefined)
}

/** The verdict on an entry; `segments` are its names from the outermost scope's folder. */
export function ignoreVerdict(
  scope: IgnoreScope | undefined,
  segments: readonly string[],
  isFolder: boolean,
): IgnoreVerdict {
  if (scope === undefined) return undefined
  for (const file of IGNORE_FILES) {
    for (let at: IgnoreScope | undefined = scope; at !== undefined; at = at.parent) {
      const rules = at.rules[file]
      if (rules === undefined) continue
      const relative = segments.slice(at.depth)
      const rule = rules.findLast((each) => (isFolder || !each.foldersOnly) && each.matches(relative))
      if (rule !== undefined) return rule.negated ? 'shown' : 'ignored'
    }
  }
  return undefined
}

function ignoreRule(line: string): IgnoreRule | undefined {
  if (line.startsWith('#') || line.length > MAX_RULE_CHARS) return undefined
  const text = withoutSpacesAtEnd(line)
  const negated = text.startsWith('!')
  const pattern = negated ? text.slice(1) : text
  const foldersOnly = pattern.endsWith('/')
  const body = foldersOnly ? pattern.slice(0, -1) : pattern
  if (body === '') return undefined
  const alternatives = braceAlternatives(body.replace(/^\//, '')).map((each) => each.split('/'))
  const matches = body.includes('/') ? pathTest(globOf(alternatives)) : nameTest(alternatives)
  return { negated, foldersOnly, matches }
}

/** A space after `\` stays. */
function withoutSpacesAtEnd(line: string): string {
  const text = line.trimEnd()
  return text.endsWith('\\') && text.length < line.length ? line.slice(0, text.length + 1) : text
}

/** A pattern without a slash inside matches a name at any depth. */
function nameTest(alternatives: readonly (readonly string[])[]): IgnoreRule['matches'] {
  const patterns = alternatives.map(([segment = '']) => segmentPattern(segment))
  return (segments) => {
    const name = segments.at(-1) ?? ''
    return patterns.some((pattern) => pattern.test(name))
  }
}

function pathTest(glob: Glob): IgnoreRule['matches'] {
  return (segments) => {
    let state = glob.start
    for (const segment of segments) {
      state = glob.step(state, segment)
      if (!state.matched && !state.open) return false
    }
    return state.matched
  }
}
