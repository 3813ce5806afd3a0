import { lstat } from 'node:fs/promises'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { JsonObject } from '../../util/json.js'
import { concurrently } from '../search/concurrently.js'
import type { Line } from '../search/hits.js'
import { Shelf } from '../search/shelf.js'
import { UnreadFiles } from '../search/unread-files.js'
import { callTime } from '../workspace/call-time.js'
import type { CallTime } from '../workspace/call-time.js'
import { DeadlinePassed, FileFailure, fileFailureOf, isMissing, PathValidationError } from '../workspace/failure.js'
import type { FileCall } from '../workspace/file-tool.js'
import { FoundSoFar } from '../workspace/found-so-far.js'
import { openFile } from '../workspace/safe-open.js'
import { spill } from '../workspace/spill.js'
import { walk } from '../workspace/walk.js'
import type { Workspace } from '../workspace/workspace.js'
import { DEFAULT_FILES, DEFAULT_LIMIT, DEFAULT_ROWS_PER_FILE } from './arguments.js'
import type { JsonlSearchArguments } from './arguments.js'
import type { RowCollector } from './row.js'
import { Groups } from './groups.js'
import { planOf } from './plan.js'
import type { Plan } from './plan.js'
import { Ranked } from './ranked.js'
import { filesBody, groupsBody, rankedBody, renderResult } from './render.js'
import type { Body } from './render.js'
import { rowText } from './row-text.js'
import type { RowView } from './row-text.js'
import { scanFile } from './scan-file.js'
import type { ScanCounts } from './scan-file.js'

/** Files that are open at once: one is computed on while others are opened. */
const FILES_AT_ONCE = 4
const MAX_WARNING_CHARS = 400

/** `jsonl_search`. */
export async function runJsonlSearch(call: FileCall<JsonlSearchArguments>): Promise<ToolOutcome> {
  const { workspace, args, context } = call
  const plan = await planOf(args)
  const time = callTime(args.timeout ?? workspace.limits.searchTimeoutMs / 1000, context.signal)
  try {
    const collection = collectionFor(workspace, args, { plan, time })
    const soFar = new FoundSoFar(workspace, context)
    const scanned = await scanAll(call, plan, { into: { collector: collection.collector, soFar }, time })
    return await outcomeOf(call, plan, { scanned, body: collection.body(scanned.counts) })
  } catch (error) {
    if (!(error instanceof DeadlinePassed)) throw error
    const problem = `jsonl_search timed out after ${time.seconds}s: narrow the path, or add a query`
    throw new FileFailure('Timeout', problem, { metadata: { timeout: time.seconds, cmd: commandOf(args) } })
  }
}

interface Collection {
  readonly collector: RowCollector
  body(counts: ScanCounts): Body
}

function collectionFor(
  workspace: Workspace,
  args: JsonlSearchArguments,
  { plan, time }: { readonly plan: Plan; readonly time: CallTime },
): Collection {
  const { limit = DEFAULT_LIMIT, offset = 0 } = args
  const view = { fields: plan.fields, searches: plan.searches, onPause: time.check }
  switch (plan.shape.kind) {
    case 'groups': {
      const groups = new Groups(plan.shape.path)
      return { collector: groups, body: () => groupsBody(groups.sorted(), { offset, limit, others: groups.others }) }
    }
    case 'ranked': {
      const ranked = new Ranked(plan.shape.orders, offset + limit, { view, display: (path) => workspace.display(path) })
      return { collector: ranked, body: ({ rowsMatched }) => rankedBody(ranked.rows, offset, rowsMatched) }
    }
    case 'pages': {
      const shelf = new Shelf(workspace, args.max_files ?? DEFAULT_FILES)
      const collector = pageCollector(shelf, args.max_matches_per_file ?? DEFAULT_ROWS_PER_FILE, view)
      return { collector, body: () => filesBody(shelf.shown(), shelf.totalFiles) }
    }
  }
}

interface Scanned {
  readonly counts: ScanCounts
  readonly unread: UnreadFiles
}

async function scanAll(
  { workspace, args }: FileCall<JsonlSearchArguments>,
  plan: Plan,
  {
    into: { collector, soFar },
    time,
  }: { readonly into: { readonly collector: RowCollector; readonly soFar: FoundSoFar }; readonly time: CallTime },
): Promise<Scanned> {
  const counts: ScanCounts = { rowsMatched: 0, compareWarnings: 0, parseErrors: 0, overlongLines: 0 }
  const unread = new UnreadFiles()
  await concurrently(jsonlFiles(workspace, args.path ?? '.', time), FILES_AT_ONCE, async (file) => {
    const shown = workspace.display(file)
    try {
      const { handle, stats } = await openFile(workspace, file, shown)
      const collected = collector.openFile(file)
      try {
        const onRow: Parameters<typeof scanFile>[2]['onRow'] = (row, line) => {
          soFar.add(file)
          collected.add(row, line)
        }
        await scanFile(handle, Number(stats.size), { query: plan.query, counts, time, onRow })
      } finally {
        collected.close()
        await handle.close()
      }
    } catch (error) {
      // It has gone since it was listed.
      if (isMissing(error)) return
      const failure = fileFailureOf(error, shown)
      if (failure === undefined) throw error
      unread.add(failure.message)
    }
  })
  return { counts, unread }
}

async function outcomeOf(
  { workspace, args }: FileCall<JsonlSearchArguments>,
  plan: Plan,
  { scanned: { counts, unread }, body }: { readonly scanned: Scanned; readonly body: Body },
): Promise<ToolOutcome> {
  const problem = unread.text.slice(0, MAX_WARNING_CHARS)
  const returncode = problem !== '' ? 2 : counts.rowsMatched > 0 ? 0 : 1
  const metadata: JsonObject = { returncode, cmd: commandOf(args), ...warningOf(problem), ...comparisons(counts) }
  if (counts.rowsMatched === 0 && problem !== '') {
    throw new FileFailure('SearchFailed', `jsonl_search failed (rc=2): ${problem}`, { metadata })
  }
  const text = renderResult(args, plan, { counts, body })
  const { maxToolChars } = workspace.limits
  const limit = Math.min(args.max_chars ?? maxToolChars, maxToolChars)
  const spilled = await spill(workspace, { text, prefix: 'jsonl_search', limit })
  return { kind: 'succeeded', content: spilled.content, metadata: { ...metadata, ...spilled.metadata } }
}

/** The prefilter that is used; there is no other program than this one. */
function commandOf({ query = '', path = '.' }: JsonlSearchArguments): string[] {
  return ['builtin-jsonl-search', ...(query === '' ? [] : [`--query=${query}`]), '--', path]
}

function warningOf(problem: string): JsonObject {
  return problem === '' ? {} : { warning: 'the search is not complete', warning_excerpt: problem }
}

function comparisons({ compareWarnings }: ScanCounts): JsonObject {
  return compareWarnings === 0 ? {} : { compare_warnings: compareWarnings }
}

/** Shows the first rows of each file, file by file. */
function pageCollector(shelf: Shelf, maxRows: number, view: RowView): RowCollector {
  return {
    openFile(path) {
      const lines: Line[] = []
      const keepRows = shelf.wants(path) ? maxRows : 0
      let rows = 0
      return {
        add(row, number) {
          rows++
          if (lines.length < keepRows) lines.push({ number, text: rowText(row, view) })
        },
        close() {
          if (rows > 0) shelf.add({ kind: 'read', path, matches: rows, lines })
        },
      }
    },
  }
}

/**
 * The JSONL files that a path stands for: a file, a folder with all below it, or a glob from the root; `.` for all that may
 * be read. A path where nothing is gives none.
 * @throws PathValidationError.
 */
async function* jsonlFiles(
  workspace: Workspace,
  path: string,
  { signal, deadline }: CallTime,
): AsyncGenerator<string, void, undefined> {
  for (const each of await walksFor(workspace, path)) {
    for await (const entry of walk(workspace, { ...each, signal, deadline })) {
      if (entry.kind === 'file' && !entry.link && /\.jsonl$/i.test(entry.path)) yield entry.path
    }
  }
}

interface Walk {
  readonly start: string
  readonly glob?: string
}

async function walksFor(workspace: Workspace, path: string): Promise<readonly Walk[]> {
  const { readPolicy, root } = workspace
  if (path === '.' || path === '') return (await readPolicy.existingRoots()).map((start) => ({ start }))
  if (/[*?[\]{}]/.test(path) && !(await isThere(workspace, path))) {
    readPolicy.checkGlob(path)
    return [{ start: root, glob: path }]
  }
  const start = await readPolicy.resolveScope(path)
  return (await exists(start)) ? [{ start }] : []
}

/** A file may have a name that looks like a glob. */
async function isThere(workspace: Workspace, path: string): Promise<boolean> {
  try {
    return await exists(await workspace.readPolicy.resolveScope(path))
  } catch (error) {
    if (error instanceof PathValidationError) return false
    throw error
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
