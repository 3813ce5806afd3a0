import { textBlocks } from '../search/text-blocks.js'
import { eachMatchingLine, lineFeeds, compilePattern } from '../search/pattern.js'
import type { Pattern } from '../search/pattern.js'
import { incompleteMetadata, outputLimit } from '../search/render.js'
import { UnreadFiles } from '../search/engine.js'
import { withinTime } from '../workspace/call-time.js'
import type { CallTime } from '../workspace/call-time.js'
import { FileFailure, isMissing, PathValidationError, invalidInput } from '../workspace/file-failure.js'
import type { FileCall } from '../workspace/file-tool.js'
import { shownPath } from '../workspace/path-text.js'
import { openListed } from '../workspace/safe-open.js'
import type { ListedFile } from '../workspace/safe-open.js'
import { SearchProgress } from '../workspace/search-progress.js'
import { spill } from '../workspace/spill.js'
import { walk } from '../workspace/walk.js'
import type { WalkOptions } from '../workspace/walk.js'
import type { Workspace } from '../workspace/workspace.js'
import { DEFAULT_FILES, DEFAULT_LIMIT, DEFAULT_ROWS_PER_FILE } from './arguments.js'
import type { JsonlSearchArguments, FieldSearchArguments, OrderArguments } from './arguments.js'
import { fieldPath } from './field-path.js'
import type { FieldPath } from './field-path.js'
import { compileFilter } from './filter.js'
import type { Filter } from './filter.js'
import { FirstRows, RowCounts, RowsByFile } from './results.js'
import type { Body, RowResults, Order } from './results.js'
import type { FieldSearch, RowProjection } from './row-text.js'
import type { ToolOutcome } from '#core/tools/tool-spec.js'
import { cutText } from '#util/characters.js'
import { parseJson } from '#util/json.js'
import { lstat } from 'node:fs/promises'

const MAX_WARNING_CHARS = 400

/** `jsonl_search`. */
export async function runJsonlSearch(call: FileCall<JsonlSearchArguments>): Promise<ToolOutcome> {
  const plan = await createPlan(call.args)
  const limit = { label: 'jsonl_search', advice: 'narrow the path, or add a query', seconds: call.args.timeout }
  return withinTime(call, limit, async (time) => {
    const results = createResults(call, plan, time)
    const scan = await scanFiles(call, plan, { results, time })
    return rowsOutcome(call, plan, { ...scan, results })
  })
}

function createResults({ workspace, args }: FileCall<JsonlSearchArguments>, plan: Plan, time: CallTime): RowResults {
  const { limit = DEFAULT_LIMIT, offset = 0 } = args
  const { max_files: maxFiles = DEFAULT_FILES, max_matches_per_file: maxRows = DEFAULT_ROWS_PER_FILE } = args
  const { fields, searches, shape } = plan
  const view = { fields, searches, onPause: time.check }
  switch (shape.kind) {
    case 'counts':
      return new RowCounts(shape.path, { offset, limit })
    case 'rows':
      return new FirstRows(shape.orders, { offset, limit }, view)
    case 'files':
      return new RowsByFile(workspace, { maxFiles, maxRows }, view)
  }
}

interface ScanEnd {
  readonly counts: ScanCounts
  readonly unread: UnreadFiles
}

async function scanFiles(
  call: FileCall<JsonlSearchArguments>,
  { query }: Plan,
  { results, time }: { readonly results: RowResults; readonly time: CallTime },
): Promise<ScanEnd> {
  const { workspace, args } = call
  const counts: ScanCounts = { rowsMatched: 0, compareWarnings: 0, parseErrors: 0, overlongLines: 0 }
  const unread = new UnreadFiles(workspace)
  const progress = new SearchProgress(call)
  for await (const path of jsonlFiles(workspace, args.path ?? '.', time)) {
    const shown = workspace.display(path)
    const onRow: Scan['onRow'] = (value, line, text) => {
      progress.add(path)
      results.add({ path, shown, line, value, text })
    }
    await unread.unless(path, async () => {
      const file = await openListed(workspace, path)
      try {
        await scanFile(file, { query, counts, time, onRow })
      } finally {
        await file.close()
      }
    })
  }
  return { counts, unread }
}

async function rowsOutcome(
  call: FileCall<JsonlSearchArguments>,
  plan: Plan,
  { counts, unread, results }: ScanEnd & { readonly results: RowResults },
): Promise<ToolOutcome> {
  const problem = unread.text.slice(0, MAX_WARNING_CHARS)
  const metadata = {
    returncode: problem !== '' ? 2 : counts.rowsMatched > 0 ? 0 : 1,
    ...(problem !== '' && incompleteMetadata(problem)),
    ...(counts.compareWarnings > 0 && { compare_warnings: counts.compareWarnings }),
  }
  if (counts.rowsMatched === 0 && problem !== '') {
    throw new FileFailure('SearchFailed', `jsonl_search failed (rc=2): ${problem}`, { metadata })
  }
  const text = renderResult(call.args, plan, { counts, body: results.body(counts.rowsMatched) })
  const output = await spill(call.workspace, { text, prefix: 'jsonl_search', limit: outputLimit(call) })
  return { kind: 'succeeded', content: output.content, metadata: { ...metadata, ...output.metadata } }
}

/**
 * The JSONL files of a path: a file, a folder (recursively), or a glob from the root; `.` for everything readable. None if
 * the path does not exist.
 * @throws PathValidationError.
 */
async function* jsonlFiles(
  workspace: Workspace,
  path: string,
  time: CallTime,
): AsyncGenerator<string, void, undefined> {
  for (const each of await walksFor(workspace, path)) {
    for await (const { kind, link, path } of walk(workspace, { ...each, ...time })) {
      if (kind === 'file' && !link && /\.jsonl$/i.test(path)) yield path
    }
  }
}

async function walksFor(workspace: Workspace, path: string): Promise<readonly Pick<WalkOptions, 'start' | 'glob'>[]> {
  const { readPolicy, root } = workspace
  if (path === '.' || path === '') return (await readPolicy.existingRoots()).map((start) => ({ start }))
  if (/[*?[\]{}]/.test(path) && !(await isName(workspace, path))) {
    readPolicy.checkGlob(path)
    return [{ start: root, glob: path }]
  }
  const start = await readPolicy.resolveScope(path)
  return (await pathExists(start)) ? [{ start }] : []
}

/** True for a file whose name looks like a glob. */
async function isName(workspace: Workspace, path: string): Promise<boolean> {
  try {
    return await pathExists(await workspace.readPolicy.resolveScope(path))
  } catch (error) {
    if (error instanceof PathValidationError) return false
    throw error
  }
}

async function pathExists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

const MAX_SHOWN_CHARS = 500

/** The summary and the body. */
function renderResult(
  args: JsonlSearchArguments,
  plan: Plan,
  { counts, body }: { readonly counts: ScanCounts; readonly body: Body },
): string {
  const { query = '', path = '', field_searches: searches = [], order_by: orders = [], count_by: countBy = '' } = args
  const fields = plan.fields.map(({ path, maxChars }) => (maxChars === 0 ? path.text : `${path.text} (${maxChars})`))
  const lines = [
    `query: ${query === '' ? '(none)' : cutText(query, MAX_SHOWN_CHARS)}`,
    `scope: path=${shownPath(path === '' ? '.' : path)}`,
    ...itemLine('where', plan.query.filters.map(({ shown }) => shown).join('; ')),
    ...itemLine('fields', fields.join(', ')),
    ...itemLine('field_searches', searches.map(({ field, query }) => `${field} '${cutText(query, 80)}'`).join(', ')),
    ...itemLine('order_by', orders.map(({ field, direction = 'asc' }) => `${field} ${direction}`).join(', ')),
    ...itemLine('count_by', countBy),
    body.count,
    `rows_matched: ${counts.rowsMatched}`,
    ...countLine('compare_warnings', counts.compareWarnings, ' row(s) with a value that could not be compared'),
    ...countLine('json_parse_errors', counts.parseErrors),
    ...countLine('overlong_lines', counts.overlongLines, ' line(s) too long to be read'),
  ]
  return [['summary:', ...lines.map((line) => `  ${line}`)].join('\n'), ...body.blocks].join('\n\n')
}

function itemLine(name: string, items: string): string[] {
  return items === '' ? [] : [`${name}: ${cutText(items, MAX_SHOWN_CHARS * 4)}`]
}

function countLine(name: string, count: number, explanation = ''): string[] {
  return count === 0 ? [] : [`${name}: ${count}${explanation}`]
}

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
async function createPlan(args: JsonlSearchArguments): Promise<Plan> {
  const filters: Filter[] = []
  for (const where of args.where ?? []) filters.push(await compileFilter(where))
  const fields = Object.entries(args.fields ?? {}).map(([text, maxChars]) => ({ path: fieldPath(text), maxChars }))
  const searches = await compileSearches(args.field_searches ?? [])
  return { query: { pattern: await compileQuery(args.query), filters }, fields, searches, shape: resultShape(args) }
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
      label: searchLabel(each, all),
      path,
      pattern: compiled.pattern,
      contextLines,
      maxMatches,
      maxLineChars,
    })
  }
  return searches
}

function searchLabel(search: FieldSearchArguments, all: readonly FieldSearchArguments[]): string {
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

function resultShape(args: JsonlSearchArguments): ResultShape {
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

/** The condition for rows. */
export interface RowQuery {
  /** Only matching lines are parsed. */
  readonly pattern: Pattern | undefined
  readonly filters: readonly Filter[]
}

/** Sums over all files; only ever added to. */
export interface ScanCounts {
  rowsMatched: number
  /** Rows that a typed filter could not compare. */
  compareWarnings: number
  /** Lines that are not JSON. */
  parseErrors: number
  /** Lines that are too long to be held in memory, or to be searched completely. */
  overlongLines: number
}

export interface Scan {
  readonly query: RowQuery
  readonly counts: ScanCounts
  readonly time: CallTime
  /** Receives each row that passes, with its line number and its text. */
  readonly onRow: (value: unknown, line: number, text: string) => void
}

/** Rows between two checks of the time. */
const ROWS_BETWEEN_BREATHS = 128

/** Reads a JSONL file from beginning to end, in bounded memory: its lines are matched, parsed and filtered. */
async function scanFile(file: ListedFile, scan: Scan): Promise<void> {
  const { counts, time } = scan
  const { pattern } = scan.query
  let lines = 0
  for await (const block of textBlocks(file, file)) {
    await time.breathe()
    if (block === null) {
      lines++
      counts.overlongLines++
      continue
    }
    if (pattern === undefined) {
      for (const text of blockLines(block)) {
        scanLine(text, ++lines, scan)
        if (lines % ROWS_BETWEEN_BREATHS === 0) await time.breathe()
      }
      continue
    }
    await eachMatchingLine(block, {
      pattern,
      time,
      onLine: ({ start, end, before }) => {
        scanLine(block.toString('utf8', start, end), lines + before + 1, scan)
        return true
      },
      onCut: () => counts.overlongLines++,
    })
    lines += lineFeeds(block, 0, block.length)
  }
}

function blockLines(block: Buffer): readonly string[] {
  const lines = block.toString('utf8').split('\n')
  // After the last line feed there is nothing.
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function scanLine(text: string, line: number, { query, counts, time, onRow }: Scan): void {
  if (!/\S/.test(text)) return
  const parsed = parseJson(text)
  if (!parsed.ok) {
    counts.parseErrors++
    return
  }
  // Filters after the first that fails are not evaluated.
  for (const filter of query.filters) {
    const verdict = filter.test(parsed.value, time.check)
    if (verdict === 'incomparable') counts.compareWarnings++
    if (verdict !== true) return
  }
  counts.rowsMatched++
  onRow(parsed.value, line, text.trim())
}
