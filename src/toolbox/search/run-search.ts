import { lstat } from 'node:fs/promises'
import type { ToolOutcome } from '../../tools/outcome.js'
import type { JsonObject } from '../../util/json.js'
import { DeadlinePassed, FileFailure } from '../workspace/failure.js'
import type { FileCall } from '../workspace/file-tool.js'
import { FoundSoFar } from '../workspace/found-so-far.js'
import { shownPath } from '../workspace/path-text.js'
import { scopeAt } from '../workspace/scope.js'
import { spill } from '../workspace/spill.js'
import type { Workspace } from '../workspace/workspace.js'
import { DEFAULT_FILES, DEFAULT_MATCHES_PER_FILE } from './arguments.js'
import type { SearchArguments } from './arguments.js'
import { contextLines } from './context-lines.js'
import { invalidQuery } from './engine.js'
import type { EngineEnd, SearchEngine, SearchQuery, SearchRequest } from './engine.js'
import { engineFor } from './engines.js'
import { exclusionsOf } from './exclusions.js'
import { cutText } from './line-text.js'
import { MAX_PATTERN_CHARS } from './pattern/pattern.js'
import { renderFile, renderNothing, renderResult } from './render.js'
import type { RenderedFile } from './render.js'
import { isConfirmed } from './ripgrep/confirm-file.js'
import { Shelf } from './shelf.js'
import type { ShownFile } from './shelf.js'
import { callTime } from '../workspace/call-time.js'

const MAX_QUERY_SHOWN = 500
const MAX_WARNING_CHARS = 400
/** Longest text that is put together; the files behind it are omitted. */
const MAX_TEXT_CHARS = 16_000_000
/** Files that are confirmed at once. */
const CONFIRMED_AT_ONCE = 16

export async function runSearch(call: FileCall<SearchArguments>): Promise<ToolOutcome> {
  const { workspace, args, context } = call
  const query = queryOf(args)
  const starts = await startsOf(workspace, args.path)
  const engine = await engineFor(workspace.limits.ripgrep)
  const { file_type: typeName = '' } = args
  const shelf = new Shelf(workspace, args.max_files ?? DEFAULT_FILES)
  const request: SearchRequest = {
    workspace,
    starts,
    query,
    fileType: typeName === '' ? undefined : await engine.fileType(typeName),
    exclusions: exclusionsOf(workspace.limits.excludeGlobs),
    wantsLines: (path) => shelf.wants(path),
    keepLines: args.max_matches_per_file ?? DEFAULT_MATCHES_PER_FILE,
    maxLineChars: args.max_line_chars ?? workspace.limits.maxSearchLineChars,
    time: callTime(args.timeout ?? workspace.limits.searchTimeoutMs / 1000, context.signal),
  }
  if (starts.length === 0) return nothingFound(call, { returncode: 1 })

  const found = new FoundSoFar(workspace, context)
  try {
    const end = await engine.search(request, (hits) => {
      shelf.add(hits)
      found.add(hits.path)
    })
    const ending = { ...end, engine: engine.name }
    return await outcomeOf({ call, request, end: ending, found: await confirmedOn(shelf, request) })
  } catch (error) {
    if (error instanceof DeadlinePassed) return timedOut(engine, request)
    throw error
  }
}

function queryOf({ query, literal = false, case_sensitive: caseSensitive = true }: SearchArguments): SearchQuery {
  if (query === '') throw new FileFailure('InvalidInput', 'query is empty')
  const checked: SearchQuery = { text: query, literal, caseSensitive }
  if (query.length <= MAX_PATTERN_CHARS) return checked
  throw invalidQuery(checked, `it is longer than ${MAX_PATTERN_CHARS} characters`)
}

/** Where to look: what the model names, or all that may be read. */
async function startsOf(workspace: Workspace, path = '.'): Promise<string[]> {
  if (path === '.' || path === '') return workspace.readPolicy.existingRoots()
  const scope = await scopeAt(workspace, path)
  if (!scope.isFolder && !(await lstat(scope.path)).isFile()) {
    throw new FileFailure('PathTypeError', `path is not a regular file: ${shownPath(path)}`)
  }
  return [scope.path]
}

interface Found {
  readonly files: readonly ShownFile[]
  readonly totalFiles: number
  readonly totalMatches: number
}

/** The files to show that are confirmed, and the sums without the others. */
async function confirmedOn(shelf: Shelf, request: SearchRequest): Promise<Found> {
  const kept = shelf.shown()
  const files: ShownFile[] = []
  for (let at = 0; at < kept.length; at += CONFIRMED_AT_ONCE) {
    await request.time.breathe()
    const some = kept.slice(at, at + CONFIRMED_AT_ONCE)
    const confirmed = await Promise.all(some.map((file) => isConfirmed(request, file)))
    files.push(...some.filter((_, index) => confirmed[index]))
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

interface Finished {
  readonly call: FileCall<SearchArguments>
  readonly request: SearchRequest
  readonly found: Found
  readonly end: EngineEnd & { readonly engine: string }
}

async function outcomeOf({ call, request, found, end }: Finished): Promise<ToolOutcome> {
  const { workspace, args } = call
  const metadata = { returncode: end.returncode, cmd: [...end.command], cwd: workspace.root }
  const detail = cutText(end.detail, MAX_WARNING_CHARS)
  const { totalFiles, totalMatches } = found
  if (totalMatches === 0) {
    if (end.returncode <= 1) return nothingFound(call, { ...metadata, returncode: 1 })
    throw new FileFailure('SearchFailed', `${end.engine} failed (rc=${end.returncode}): ${detail}`, { metadata })
  }
  const files = await rendered(request, found.files, args.context_lines ?? 0)
  const text = renderResult({ query: shownQuery(args), scope: scopeText(call), totalFiles, totalMatches }, files)
  const spilled = await spill(workspace, { text, prefix: 'search', limit: limitOf(call) })
  const warning = end.returncode > 1 ? { warning: 'the search is not complete', warning_excerpt: detail } : {}
  return { kind: 'succeeded', content: spilled.content, metadata: { ...metadata, ...warning, ...spilled.metadata } }
}

async function rendered(request: SearchRequest, found: readonly ShownFile[], around: number): Promise<RenderedFile[]> {
  const { workspace, maxLineChars, time } = request
  const files: RenderedFile[] = []
  let chars = 0
  for (const file of found) {
    const context = around === 0 ? undefined : await contextLines(workspace, file, { around, maxLineChars, time })
    const text = renderFile(file, context)
    chars += text.length
    if (files.length > 0 && chars > MAX_TEXT_CHARS) break
    files.push({ file, text })
  }
  return files
}

function nothingFound(call: FileCall<SearchArguments>, metadata: JsonObject): ToolOutcome {
  const content = renderNothing(shownQuery(call.args), scopeText(call))
  return { kind: 'succeeded', content, metadata: { matches: 0, ...metadata } }
}

function timedOut(engine: SearchEngine, request: SearchRequest): never {
  const { seconds } = request.time
  throw new FileFailure('Timeout', `${engine.name} timed out after ${seconds}s: narrow the path or the query`, {
    metadata: { timeout: seconds, cmd: [...engine.command(request)] },
  })
}

function shownQuery({ query }: SearchArguments): string {
  return cutText(query, MAX_QUERY_SHOWN)
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

function limitOf({ args, workspace }: FileCall<SearchArguments>): number {
  const { maxToolChars } = workspace.limits
  return Math.min(args.max_chars ?? maxToolChars, maxToolChars)
}
