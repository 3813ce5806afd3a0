import { lstat } from 'node:fs/promises'
import type { ToolOutcome } from '../../tools/outcome.js'
import { cutText } from '../../util/characters.js'
import type { JsonObject } from '../../util/json.js'
import { withinTime } from '../workspace/call-time.js'
import { FileFailure } from '../workspace/failure.js'
import type { FileCall } from '../workspace/file-tool.js'
import { shownPath } from '../workspace/path-text.js'
import { SearchProgress } from '../workspace/search-progress.js'
import { spill } from '../workspace/spill.js'
import { walkStart } from '../workspace/walk.js'
import type { Workspace } from '../workspace/workspace.js'
import { DEFAULT_FILES, DEFAULT_MATCHES_PER_FILE } from './arguments.js'
import type { SearchArguments } from './arguments.js'
import { contextLines } from './context-lines.js'
import { invalidQuery } from './engine.js'
import type { EngineEnd, SearchQuery, SearchRequest, SearchTask } from './engine.js'
import { engineFor } from './engines.js'
import { exclusionsOf } from './exclusions.js'
import { MAX_PATTERN_CHARS } from './pattern/pattern.js'
import { incomplete, outputLimit, renderFile, renderNothing, renderResult } from './render.js'
import type { RenderedFile } from './render.js'
import { isConfirmed } from './ripgrep/confirm-file.js'
import { Shelf } from './shelf.js'
import type { ShownFile } from './shelf.js'

const MAX_QUERY_SHOWN = 500
const MAX_WARNING_CHARS = 400
/** Longest text that is composed; the files after it are omitted. */
const MAX_TEXT_CHARS = 16_000_000
/** Files that are confirmed at once. */
const CONFIRMED_AT_ONCE = 16

export async function runSearch(call: FileCall<SearchArguments>): Promise<ToolOutcome> {
  const { workspace, args } = call
  const { limits } = workspace
  const query = queryOf(args)
  const starts = await startsOf(workspace, args.path)
  const engine = await engineFor(limits.ripgrep)
  const { file_type: typeName = '' } = args
  const shelf = new Shelf(workspace, args.max_files ?? DEFAULT_FILES)
  const task: SearchTask = {
    workspace,
    starts,
    query,
    fileType: typeName === '' ? undefined : await engine.fileType(typeName),
    exclusions: exclusionsOf(limits.excludeGlobs),
    wantsLines: (path) => shelf.wants(path),
    keepLines: args.max_matches_per_file ?? DEFAULT_MATCHES_PER_FILE,
    maxLineChars: args.max_line_chars ?? limits.maxSearchLineChars,
  }
  if (starts.length === 0) return nothingFound(call, { returncode: 1 })

  const limit = { label: engine.name, advice: 'narrow the path or the query', seconds: args.timeout }
  return withinTime(call, limit, async (time) => {
    const request = { ...task, time }
    const progress = new SearchProgress(call)
    const end = await engine.search(request, (hits) => {
      shelf.add(hits)
      progress.add(hits.path)
    })
    return outcomeOf(call, request, { matches: await confirmedMatches(shelf, request), end, engine: engine.name })
  })
}

function queryOf({ query, literal = false, case_sensitive: caseSensitive = true }: SearchArguments): SearchQuery {
  if (query === '') throw new FileFailure('InvalidInput', 'query is empty')
  const checked: SearchQuery = { text: query, literal, caseSensitive }
  if (query.length <= MAX_PATTERN_CHARS) return checked
  throw invalidQuery(checked, `it is longer than ${MAX_PATTERN_CHARS} characters`)
}

/** The path that the model names, or everything readable. */
async function startsOf(workspace: Workspace, path = '.'): Promise<string[]> {
  if (path === '.' || path === '') return workspace.readPolicy.existingRoots()
  const start = await walkStart(workspace, path)
  if (!start.isFolder && !(await lstat(start.path)).isFile()) {
    throw new FileFailure('PathTypeError', `path is not a regular file: ${shownPath(path)}`)
  }
  return [start.path]
}

interface Matches {
  readonly files: readonly ShownFile[]
  readonly totalFiles: number
  readonly totalMatches: number
}

/** The confirmed files to show, and the sums without the others. */
async function confirmedMatches(shelf: Shelf, request: SearchRequest): Promise<Matches> {
  const kept = shelf.shown()
  const files: ShownFile[] = []
  for (let at = 0; at < kept.length; at += CONFIRMED_AT_ONCE) {
    await request.time.breathe()
    const some = kept.slice(at, at + CONFIRMED_AT_ONCE)
    const results = await Promise.all(some.map((file) => isConfirmed(request, file)))
    files.push(...some.filter((_, index) => results[index]))
  }
  return {
    files,
    totalFiles: shelf.totalFiles - kept.length + files.length,
    totalMatches: shelf.totalMatches - matchesOf(kept) + matchesOf(files),
  }
}

function matchesOf(files: readonly ShownFile[]): number {
  return files.reduce((sum, { matches }) => sum + matches, 0)
}

async function outcomeOf(
  call: FileCall<SearchArguments>,
  request: SearchRequest,
  { matches, end, engine }: { readonly matches: Matches; readonly end: EngineEnd; readonly engine: string },
): Promise<ToolOutcome> {
  const { workspace, args } = call
  const { returncode } = end
  const metadata = { returncode }
  const detail = cutText(end.detail, MAX_WARNING_CHARS, '...')
  const { totalFiles, totalMatches } = matches
  if (totalMatches === 0) {
    if (returncode <= 1) return nothingFound(call, { ...metadata, returncode: 1 })
    throw new FileFailure('SearchFailed', `${engine} failed (rc=${returncode}): ${detail}`, { metadata })
  }
  const files = await renderFiles(request, matches.files, args.context_lines ?? 0)
  const isComplete = returncode <= 1
  const problem = isComplete ? '' : detail || 'the reason is unknown'
  const excluded = workspace.limits.excludeGlobs.length > 0 ? scopeText(call) : ''
  const text = renderResult({ totalFiles, totalMatches, excluded, problem }, files)
  const output = await spill(workspace, { text, prefix: 'search', limit: outputLimit(call) })
  const warning = !isComplete && incomplete(detail)
  return { kind: 'succeeded', content: output.content, metadata: { ...metadata, ...warning, ...output.metadata } }
}

async function renderFiles(
  request: SearchRequest,
  files: readonly ShownFile[],
  around: number,
): Promise<RenderedFile[]> {
  const all: RenderedFile[] = []
  let chars = 0
  for (const file of files) {
    const text = renderFile(file, around === 0 ? undefined : await contextLines(request, file, around))
    chars += text.length
    if (all.length > 0 && chars > MAX_TEXT_CHARS) break
    all.push({ file, text })
  }
  return all
}

function nothingFound(call: FileCall<SearchArguments>, metadata: JsonObject): ToolOutcome {
  const content = renderNothing(shownQuery(call.args), scopeText(call))
  return { kind: 'succeeded', content, metadata: { matches: 0, ...metadata } }
}

function shownQuery({ query }: SearchArguments): string {
  return cutText(query, MAX_QUERY_SHOWN, '...')
}

function scopeText({ args, workspace }: FileCall<SearchArguments>): string {
  const { path = '.', file_type: fileType = '' } = args
  const parts = [
    ...(path === '.' || path === '' ? [] : [`path=${shownPath(path)}`]),
    ...(fileType === '' ? [] : [`type=${fileType}`]),
    ...workspace.limits.excludeGlobs.map((glob) => `exclude=${glob}`),
  ]
  return parts.length === 0 ? 'all readable files' : parts.join(', ')
}
