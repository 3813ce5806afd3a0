import { compilePattern } from '../search/pattern/pattern.js'
import type { Pattern } from '../search/pattern/pattern.js'
import { invalidInput } from '../workspace/failure.js'
import type { FieldSearchArguments, JsonlSearchArguments, OrderArguments } from './arguments.js'
import { fieldPath } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { compileFilter } from './filter.js'
import type { Filter } from './filter.js'
import type { Order } from './results.js'
import type { FieldSearch, RowProjection } from './row-text.js'
import type { RowQuery } from './scan-file.js'

/** A call, completely checked and compiled: no argument can fail after the scan has begun. */
export interface Plan {
  readonly query: RowQuery
  readonly fields: readonly RowProjection[]
  readonly searches: readonly FieldSearch[]
  readonly shape: ResultShape
}

/** The result: rows file by file, rows of all files in one list, or counts. */
type ResultShape =
  | { readonly kind: 'files' }
  | { readonly kind: 'rows'; readonly orders: readonly Order[] }
  | { readonly kind: 'counts'; readonly path: FieldPath }

/** @throws FileFailure `InvalidInput`; the message begins with the problem, such as `invalid where filter:`. */
export async function createPlan(args: JsonlSearchArguments): Promise<Plan> {
  const filters: Filter[] = []
  for (const where of args.where ?? []) filters.push(await compileFilter(where))
  const fields = Object.entries(args.fields ?? {}).map(([text, maxChars]) => ({ path: fieldPath(text), maxChars }))
  const searches = await compileSearches(args.field_searches ?? [])
  return { query: { pattern: await compileQuery(args.query), filters }, fields, searches, shape: shapeOf(args) }
}

async function compileSearches(all: readonly FieldSearchArguments[]): Promise<readonly FieldSearch[]> {
  const searches: FieldSearch[] = []
  for (const each of all) {
    const { field, query, regex = false, case_sensitive: caseSensitive = false } = each
    const path = fieldPath(field)
    const compiled = await compilePattern(query, { scope: 'text', literal: !regex, caseSensitive })
    if (!compiled.ok) throw invalidInput(`invalid field_search regex: ${compiled.problem}`)
    const { context_lines: contextLines = 0, max_matches: maxMatches = 20, max_line_chars: maxLineChars = 300 } = each
    searches.push({
      label: labelOf(each, all),
      path,
      pattern: compiled.pattern,
      contextLines,
      maxMatches,
      maxLineChars,
    })
  }
  return searches
}

function labelOf(search: FieldSearchArguments, all: readonly FieldSearchArguments[]): string {
  const sameField = all.filter(({ field }) => field === search.field)
  const label = `${search.field} matches`
  if (sameField.length === 1) return label
  return `${label} #${sameField.indexOf(search) + 1} (query='${search.query.slice(0, 200)}')`
}

async function compileQuery(query = ''): Promise<Pattern | undefined> {
  if (query === '') return undefined
  const compiled = await compilePattern(query, { scope: 'line' })
  if (compiled.ok) return compiled.pattern
  throw invalidInput(`invalid query: ${compiled.problem}`, { returncode: 2 })
}

function shapeOf(args: JsonlSearchArguments): ResultShape {
  const {
    count_by: countBy = '',
    order_by: orderBy = [],
    limit,
    offset,
    fields = {},
    field_searches: searches = [],
  } = args
  if (countBy !== '') {
    const isMixed = orderBy.length + searches.length + Object.keys(fields).length > 0
    if (!isMixed) return { kind: 'counts', path: fieldPath(countBy) }
    throw invalidInput('`count_by` shows counts, not rows: leave out `fields`, `field_searches` and `order_by`')
  }
  const isOneList = orderBy.length > 0 || limit !== undefined || offset !== undefined
  return isOneList ? { kind: 'rows', orders: orderBy.map(parseOrder) } : { kind: 'files' }
}

function parseOrder({ field, direction, type }: OrderArguments): Order {
  return { path: fieldPath(field), isDescending: direction === 'desc', type }
}
