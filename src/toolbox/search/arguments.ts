import { objectSchema } from '#util/json.js'
import type { JsonSchema } from '#util/json.js'
import { MAX_LINE_CHARS, MAX_MATCHES_COUNTED } from './match-file.js'

export const DEFAULT_FILES = 50
export const DEFAULT_MATCHES_PER_FILE = 10

/** Longest time that a model may request, in seconds. */
export const MAX_TIMEOUT_SECONDS = 600

export interface SearchArguments {
  readonly query: string
  readonly path?: string
  readonly literal?: boolean
  readonly case_sensitive?: boolean
  readonly context_lines?: number
  readonly file_type?: string
  readonly max_files?: number
  readonly max_matches_per_file?: number
  readonly max_line_chars?: number
  readonly timeout?: number
  readonly max_chars?: number
}

/** The schema of a whole number with bounds. */
export function wholeNumber(minimum: number, maximum: number, description: string): JsonSchema {
  return { type: 'integer', minimum, maximum, description }
}

export const MAX_CHARS: JsonSchema = {
  type: 'integer',
  minimum: 1,
  description: 'Longest result, in characters; a longer one is saved to a file.',
}

export const SEARCH_PARAMETERS: JsonSchema = objectSchema(['query'], {
  query: {
    type: 'string',
    description:
      'Regular expression, matched line by line (ripgrep dialect: no look-around, no backreferences); with `literal`, plain text.',
  },
  path: { type: 'string', description: 'File or directory to search in. Default `.`: everything readable.' },
  literal: { type: 'boolean', description: 'Search for `query` as plain text. Default false.' },
  case_sensitive: { type: 'boolean', description: 'Default true.' },
  context_lines: wholeNumber(0, 50, 'Lines to show before and after each match. Default 0.'),
  file_type: { type: 'string', description: 'Only files of this type: a name such as md, txt, csv, json or py.' },
  max_files: wholeNumber(1, 10_000, `Most files to show. Default ${DEFAULT_FILES}.`),
  max_matches_per_file: wholeNumber(
    1,
    MAX_MATCHES_COUNTED,
    `Most matches to show of a file. Default ${DEFAULT_MATCHES_PER_FILE}.`,
  ),
  max_line_chars: wholeNumber(1, MAX_LINE_CHARS, 'Longest line to show, in characters.'),
  timeout: wholeNumber(1, MAX_TIMEOUT_SECONDS, 'Longest time to search, in seconds.'),
  max_chars: MAX_CHARS,
})
