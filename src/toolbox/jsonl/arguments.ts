import { objectSchema } from '#util/json.js'
import type { JsonSchema } from '#util/json.js'
import { MAX_CHARS, MAX_TIMEOUT_SECONDS, wholeNumber } from '../search/arguments.js'
import { MAX_LINE_CHARS } from '../search/match-file.js'
import { FILTER_OPERATORS } from './filter.js'
import type { WhereFilter } from './filter.js'

export const DEFAULT_FILES = 100
export const DEFAULT_ROWS_PER_FILE = 25
export const DEFAULT_LIMIT = 25

/** Rows or groups that can be reached with `offset` and `limit`. */
const MAX_RANKED = 10_000

export interface JsonlSearchArguments {
  readonly query?: string
  readonly path?: string
  readonly fields?: Readonly<Record<string, number>>
  readonly where?: readonly WhereFilter[]
  readonly field_searches?: readonly FieldSearchArguments[]
  readonly order_by?: readonly OrderArguments[]
  readonly count_by?: string
  readonly limit?: number
  readonly offset?: number
  readonly max_files?: number
  readonly max_matches_per_file?: number
  readonly timeout?: number
  readonly max_chars?: number
}

/** A search in the lines of a field. */
export interface FieldSearchArguments {
  readonly field: string
  readonly query: string
  readonly regex?: boolean
  readonly case_sensitive?: boolean
  readonly context_lines?: number
  readonly max_matches?: number
  readonly max_line_chars?: number
}

export interface OrderArguments {
  readonly field: string
  readonly direction?: 'asc' | 'desc'
  readonly type?: 'number' | 'date'
}

const FIELD = 'Path of a field: `status`, `user.name`, `tags[0]`, `items[-1].id`, `["any key"]`.'

const scalar: JsonSchema = { type: ['string', 'number', 'boolean'] }

const where: JsonSchema = {
  type: 'array',
  description: 'Filters; a row must pass all of them.',
  maxItems: 50,
  items: objectSchema(['field', 'op'], {
    field: { type: 'string', description: FIELD },
    op: {
      type: 'string',
      enum: [...FILTER_OPERATORS],
      description:
        'eq, ne: equal as text, or by `type`. in: one of `values`. contains, regex: in the text of the value. exists: present and not null. gt, gte, lt, lte: need `type`. A missing or null field passes none of them.',
    },
    value: { ...scalar, description: 'Value to compare with.' },
    values: { type: 'array', items: scalar, maxItems: 1_000, description: 'For the operator in.' },
    type: {
      type: 'string',
      enum: ['number', 'date'],
      description:
        'Compare as numbers (JSON numbers only) or as ISO dates (`2024-05-31`, `2024-05-31T12:00:00Z`), as they are written. For eq, ne, gt, gte, lt, lte.',
    },
  }),
}

const fieldSearches: JsonSchema = {
  type: 'array',
  description: 'For big text fields: show only the matching lines of a field.',
  maxItems: 20,
  items: objectSchema(['field', 'query'], {
    field: { type: 'string', minLength: 1, description: FIELD },
    query: { type: 'string', minLength: 1, description: 'Text to find; with `regex`, a regular expression.' },
    regex: { type: 'boolean', description: 'Default false.' },
    case_sensitive: { type: 'boolean', description: 'Default false.' },
    context_lines: wholeNumber(0, 50, 'Lines to show before and after each match. Default 0.'),
    max_matches: wholeNumber(1, 1_000, 'Most matches to show. Default 20.'),
    max_line_chars: wholeNumber(1, MAX_LINE_CHARS, 'Longest line to show, in characters. Default 300.'),
  }),
}

const orderBy: JsonSchema = {
  type: 'array',
  description: 'Show rows of all files together, in this order; rows without the field come last.',
  maxItems: 5,
  items: objectSchema(['field'], {
    field: { type: 'string', description: FIELD },
    direction: { type: 'string', enum: ['asc', 'desc'], description: 'Default asc.' },
    type: { type: 'string', enum: ['number', 'date'], description: 'Order as dates, or as numbers only.' },
  }),
}

export const JSONL_SEARCH_PARAMETERS: JsonSchema = objectSchema([], {
  query: {
    type: 'string',
    description: 'Regular expression on the raw line, to select rows before they are parsed. Default: every row.',
  },
  path: {
    type: 'string',
    description: 'A .jsonl file, a directory (searched recursively), or a glob such as `logs/**/*.jsonl`. Default `.`.',
  },
  fields: {
    type: 'object',
    additionalProperties: { type: 'integer', minimum: 0 },
    description: 'Fields to show: path to most characters, 0 for no limit. Default: the whole row.',
  },
  where,
  field_searches: fieldSearches,
  order_by: orderBy,
  count_by: { type: 'string', description: 'Instead of rows, show the number of rows for each value of this field.' },
  limit: wholeNumber(1, MAX_RANKED, `Most rows or groups of all files together. Default ${DEFAULT_LIMIT}.`),
  offset: wholeNumber(0, MAX_RANKED, 'Rows or groups to skip. Default 0.'),
  max_files: wholeNumber(1, 10_000, `Most files to show. Default ${DEFAULT_FILES}.`),
  max_matches_per_file: wholeNumber(1, 10_000, `Most rows to show of a file. Default ${DEFAULT_ROWS_PER_FILE}.`),
  timeout: wholeNumber(1, MAX_TIMEOUT_SECONDS, 'Longest time to search, in seconds.'),
  max_chars: MAX_CHARS,
})
