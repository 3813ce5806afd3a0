import { lstat } from 'node:fs/promises'
import type { ToolOutcome } from '#core/tools/outcome.js'
import { incomplete, outputLimit } from '../search/render.js'
import { UnreadFiles } from '../search/unread-files.js'
import { withinTime } from '../workspace/call-time.js'
import type { CallTime } from '../workspace/call-time.js'
import { FileFailure, isMissing, PathValidationError } from '../workspace/failure.js'
import type { FileCall } from '../workspace/file-tool.js'
import { openListed } from '../workspace/safe-open.js'
import { SearchProgress } from '../workspace/search-progress.js'
import { spill } from '../workspace/spill.js'
import { walk } from '../workspace/walk.js'
import type { WalkOptions } from '../workspace/walk.js'
import type { Workspace } from '../workspace/workspace.js'
import { DEFAULT_FILES, DEFAULT_LIMIT, DEFAULT_ROWS_PER_FILE } from './arguments.js'
import type { JsonlSearchArguments } from './arguments.js'
import { createPlan } from './plan.js'
import type { Plan } from './plan.js'
import { FirstRows, RowCounts, RowsByFile } from './results.js'
import type { Body, RowResults } from './results.js'
import { scanFile } from './scan-file.js'
import type { ScanCounts } from './scan-file.js'
import { cutText } from '#util/characters.js'
import { shownPath } from '../workspace/path-text.js'

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
    const onRow = (value: unknown, line: number): void => {
      progress.add(path)
      results.add({ path, shown, line, value })
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
    ...(problem !== '' && incomplete(problem)),
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
