import { FileFailure } from '../workspace/failure.js'
import { compilePattern } from '../search/pattern/pattern.js'
import type { Pattern } from '../search/pattern/pattern.js'
import type { JsonlSearchArguments } from './arguments.js'
import { parseFieldPath } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { compileFieldSearches } from './field-search.js'
import type { FieldSearch } from './field-search.js'
import { compileFilter } from './filter.js'
import type { Filter } from './filter.js'
import { needleOf } from './needle.js'
import { compileOrders } from './order.js'
import type { Order } from './order.js'
import type { Projection } from './row-text.js'
import type { RowQuery } from './scan-file.js'

/** What a call asks for, all of it checked and compiled: nothing in it can fail once the scan has begun. */
export interface Plan {
  readonly query: RowQuery
  readonly fields: readonly Projection[]
  readonly searches: readonly FieldSearch[]
  readonly shape: Shape
}

/** What is shown: rows file by file, rows of all files in one list, or counts. */
export type Shape =
  | { readonly kind: 'pages' }
  | { readonly kind: 'ranked'; readonly orders: readonly Order[] }
  | { readonly kind: 'groups'; readonly path: FieldPath }

/** @throws FileFailure `InvalidInput`, in words that begin with what is wrong, such as `invalid where filter:`. */
export async function planOf(args: JsonlSearchArguments): Promise<Plan> {
  const filters: Filter[] = []
  for (const where of args.where ?? []) {
    const compiled = await compileFilter(where)
    if (!compiled.ok) throw invalid(`invalid where filter: ${compiled.problem}`)
    filters.push(compiled.filter)
  }
  const fields = Object.entries(args.fields ?? {}).map(([text, maxChars]) => ({ path: pathOf(text), maxChars }))
  const searches = await compileFieldSearches(args.field_searches ?? [])
  if (!searches.ok) throw invalid(searches.problem)
  const pattern = await patternOf(args.query)
  const query = { pattern, filters, needle: pattern === undefined ? needleOf(filters) : undefined }
  return { query, fields, searches: searches.searches, shape: shapeOf(args) }
}

function shapeOf({ count_by: countBy, order_by: orderBy = [], limit, offset, ...args }: JsonlSearchArguments): Shape {
  if (countBy !== undefined && countBy !== '') {
    const shows = ['fields', 'field_searches'] as const
    const isMixed = orderBy.length > 0 || shows.some((name) => Object.keys(args[name] ?? {}).length > 0)
    if (isMixed) throw invalid('`count_by` shows counts, not rows: leave out `fields`, `field_searches` and `order_by`')
    return { kind: 'groups', path: pathOf(countBy) }
  }
  const orders = compileOrders(orderBy)
  if (!orders.ok) throw invalid(orders.problem)
  const isRanked = orders.orders.length > 0 || limit !== undefined || offset !== undefined
  return isRanked ? { kind: 'ranked', orders: orders.orders } : { kind: 'pages' }
}

async function patternOf(query = ''): Promise<Pattern | undefined> {
  if (query === '') return undefined
  const compiled = await compilePattern(query, { scope: 'line' })
  if (compiled.ok) return compiled.pattern
  throw new FileFailure('InvalidInput', `invalid query: ${compiled.problem}`, {
    retry: true,
    metadata: { returncode: 2 },
  })
}

function pathOf(text: string): FieldPath {
  const parsed = parseFieldPath(text)
  if (!parsed.ok) throw invalid(`invalid field path: ${parsed.problem}`)
  return parsed.path
}

function invalid(problem: string): FileFailure {
  return new FileFailure('InvalidInput', problem, { retry: true })
}
