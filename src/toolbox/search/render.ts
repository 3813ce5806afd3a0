import type { JsonObject } from '#util/json.js'
import type { FileCall } from '../workspace/file-tool.js'
import { MAX_MATCHES_COUNTED } from './match-file.js'
import type { Line } from './match-file.js'

interface SearchSummary {
  readonly totalFiles: number
  readonly totalMatches: number
  /** The scope if the host excludes files from it, which the model does not know; else empty. */
  readonly excluded: string
  /** Why matches may be missing; empty if none are. */
  readonly problem: string
}

/** A file of the result. */
export interface ShownFile {
  /** The path for the model. */
  readonly shown: string
  /** Number of matching lines; counting ends at `MAX_MATCHES_COUNTED`. */
  readonly matches: number
  /** The first of them, ascending. */
  readonly lines: readonly Line[]
}

/** A file and its block of text. */
export interface RenderedFile {
  readonly file: ShownFile
  readonly text: string
}

/** The result of a search with matches: a line with the sums, and a block for each file. */
export function renderResult(summary: SearchSummary, files: readonly RenderedFile[]): string {
  const shown = files.reduce((sum, { file }) => sum + file.lines.length, 0)
  const omittedFiles = summary.totalFiles - files.length
  // If counting ended early in a shown file, the sums are lower bounds.
  const more = files.some(({ file }) => file.matches >= MAX_MATCHES_COUNTED) ? '+' : ''
  const omitted = `${summary.totalMatches - shown}${more}`
  const scope = summary.excluded === '' ? '' : `; scope: ${summary.excluded}`
  const head = `[files: ${summary.totalFiles} total, ${files.length} shown; matches: ${shown} shown, ${omitted} omitted${scope}]`
  const notes = omittedFiles > 0 ? [`note: ${omittedFiles} more file(s) omitted`] : []
  if (summary.problem !== '') notes.push(`note: the search is not complete: ${summary.problem}`)
  return [head, ...files.map(({ text }) => text), ...notes].join('\n\n')
}

/** A file's block: its path, then `<line>: <text>` for a match and `<line>- <text>` for a line of context. */
export function renderFile(file: ShownFile, context: readonly Line[] | undefined): string {
  const matching = new Set(file.lines.map(({ number }) => number))
  const lines = [file.shown]
  let before: number | undefined
  for (const { number, text } of context ?? file.lines) {
    if (context !== undefined && before !== undefined && number > before + 1) lines.push('--')
    lines.push(`${number}${matching.has(number) ? ':' : '-'} ${text}`)
    before = number
  }
  for (const { number, hidden = 0 } of file.lines) {
    if (hidden > 0) lines.push(`... ${hidden} more match(es) in line ${number}`)
  }
  const omitted = file.matches - file.lines.length
  if (omitted > 0) {
    const more = file.matches >= MAX_MATCHES_COUNTED ? '+' : ''
    lines.push(`... ${omitted}${more} more match(es)`)
  }
  return lines.join('\n')
}

/** The result of a search without matches. */
export function renderNothing(query: string, scope: string): string {
  return [
    'no matches',
    `query: ${query}`,
    `scope: ${scope}`,
    'hint: try another spelling, a broader scope, or `case_sensitive: false`; hidden, ignored and binary files are not searched',
  ].join('\n')
}

/** Metadata of a result that lacks something. */
export function incompleteMetadata(detail: string): JsonObject {
  return { warning: 'the search is not complete', warning_excerpt: detail }
}

/** Longest result, in characters. */
export function outputLimit({ args, workspace }: FileCall<{ readonly max_chars?: number }>): number {
  const { maxToolChars } = workspace.limits
  return Math.min(args.max_chars ?? maxToolChars, maxToolChars)
}
