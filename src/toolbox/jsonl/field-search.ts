import { firstCharacters, isLonger } from '../../util/characters.js'
import { splitLines } from '../workspace/lines.js'
import { compilePattern } from '../search/pattern/pattern.js'
import type { Pattern } from '../search/pattern/pattern.js'
import { parseFieldPath, valueAt } from './field-path.js'
import type { FieldPath } from './field-path.js'
import type { Row } from './row.js'

/** A search as the model writes it. */
export interface FieldSearchArguments {
  readonly field: string
  readonly query: string
  readonly regex?: boolean
  readonly case_sensitive?: boolean
  readonly context_lines?: number
  readonly max_matches?: number
  readonly max_line_chars?: number
}

export interface FieldSearch {
  readonly label: string
  readonly path: FieldPath
  readonly pattern: Pattern
  readonly contextLines: number
  readonly maxMatches: number
  readonly maxLineChars: number
}

type FieldSearchesResult =
  { readonly ok: true; readonly searches: readonly FieldSearch[] } | { readonly ok: false; readonly problem: string }

/** Longest excerpt of one field, in characters. */
const MAX_EXCERPT_CHARS = 500_000

/** Checks and compiles the searches of a call, and names each. */
export async function compileFieldSearches(all: readonly FieldSearchArguments[]): Promise<FieldSearchesResult> {
  const searches: FieldSearch[] = []
  for (const [index, each] of all.entries()) {
    const path = parseFieldPath(each.field)
    if (!path.ok) return { ok: false, problem: `invalid field path: ${path.problem}` }
    const compiled = await compilePattern(each.query, {
      scope: 'text',
      literal: each.regex !== true,
      caseSensitive: each.case_sensitive === true,
    })
    if (!compiled.ok) return { ok: false, problem: `invalid field_search regex: ${compiled.problem}` }
    searches.push({
      label: labelOf(all, index),
      path: path.path,
      pattern: compiled.pattern,
      contextLines: each.context_lines ?? 0,
      maxMatches: each.max_matches ?? 20,
      maxLineChars: each.max_line_chars ?? 300,
    })
  }
  return { ok: true, searches }
}

function labelOf(all: readonly FieldSearchArguments[], index: number): string {
  const { field = '', query = '' } = all[index] ?? {}
  const ofField = all.flatMap((each, place) => (each.field === field ? [place] : []))
  const label = `${field} matches`
  return ofField.length === 1 ? label : `${label} #${ofField.indexOf(index) + 1} (query='${query.slice(0, 200)}')`
}

/**
 * What the searches find in a row, as lines to print under it. A miss is only told when no search of the row matched and
 * `tellMisses` is set.
 */
export function searchFields(
  row: Row,
  searches: readonly FieldSearch[],
  { tellMisses, onPause }: { readonly tellMisses: boolean; readonly onPause: () => void },
): string[] {
  const results = searches.map((search) => ({ search, found: searchField(row, search, onPause) }))
  const hits = results.filter(({ found }) => typeof found !== 'string')
  if (hits.length === 0 && !tellMisses) return []
  return (hits.length > 0 ? hits : results).flatMap(({ search, found }) =>
    typeof found === 'string' ? [`    ${search.label}: ${found}`] : [`    ${search.label}:`, ...found],
  )
}

/** The lines found, or why there are none. */
function searchField(row: Row, search: FieldSearch, onPause: () => void): readonly string[] | string {
  const value = valueAt(row.value, search.path)
  if (value === undefined) return 'none (missing field)'
  if (value === null) return 'none (null field)'
  if (typeof value !== 'string') return 'none (non-string field)'
  const lines = splitLines(value)
  const matches = lines.flatMap((line, index) => {
    onPause()
    return search.pattern.test(line) ? [index] : []
  })
  return matches.length === 0 ? 'none' : excerpt(lines, matches, search)
}

function excerpt(lines: readonly string[], matches: readonly number[], search: FieldSearch): readonly string[] {
  const { contextLines, maxMatches, maxLineChars } = search
  const windows = new Set<number>()
  for (const match of matches.slice(0, maxMatches)) {
    const last = Math.min(lines.length - 1, match + contextLines)
    for (let index = Math.max(0, match - contextLines); index <= last; index++) windows.add(index)
  }
  const shown: string[] = []
  const visible = new Set<number>()
  let chars = 0
  for (const index of [...windows].sort((left, right) => left - right)) {
    const text = cutAt(lines[index] ?? '', maxLineChars)
    chars += text.length
    if (chars > MAX_EXCERPT_CHARS) break
    visible.add(index)
    shown.push(`      ${index + 1}: ${text}`)
  }
  const omitted = matches.filter((match) => !visible.has(match)).length
  return omitted === 0 ? shown : [...shown, `      ... ${omitted} more match(es)`]
}

/** At most `maxChars` characters, and then `…`. */
export function cutAt(text: string, maxChars: number): string {
  return isLonger(text, maxChars) ? `${firstCharacters(text, maxChars)}…` : text
}
