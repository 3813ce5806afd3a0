import { lstat } from 'node:fs/promises'
import type { ToolOutcome } from '#core/tools/outcome.js'
import { cutText } from '#util/characters.js'
import type { JsonObject } from '#util/json.js'
import { withinTime } from '../workspace/call-time.js'
import { FileFailure, invalidInput } from '../workspace/failure.js'
import type { FileCall } from '../workspace/file-tool.js'
import { shownPath } from '../workspace/path-text.js'
import { SearchProgress } from '../workspace/search-progress.js'
import { spill } from '../workspace/spill.js'
import { walkStart } from '../workspace/walk.js'
import type { Workspace } from '../workspace/workspace.js'
import { DEFAULT_FILES, DEFAULT_MATCHES_PER_FILE } from './arguments.js'
import type { SearchArguments } from './arguments.js'
import type { EngineEnd, SearchQuery, SearchRequest } from './engine.js'
import { engineFor } from './engines.js'
import { exclusionsOf } from './exclusions.js'
import { readPage } from './page.js'
import type { ResultPage } from './page.js'
import { compilePattern, MAX_PATTERN_CHARS } from './pattern/pattern.js'
import type { Pattern } from './pattern/pattern.js'
import { incomplete, outputLimit, renderNothing, renderResult } from './render.js'
import { ResultCollector } from './result-collector.js'

const MAX_QUERY_SHOWN = 500
const MAX_WARNING_CHARS = 400

export async function runSearch(call: FileCall<SearchArguments>): Promise<ToolOutcome> {
  const { workspace, args } = call
  const { limits } = workspace
  const query = checkQuery(args)
  const pattern = await compileQuery(query)
  const starts = await startsOf(workspace, args.path)
  const engine = await engineFor(limits.ripgrep)
  const { file_type: typeName = '' } = args
  const fileType = typeName === '' ? undefined : await engine.fileType(typeName)
  const exclusions = exclusionsOf(limits.excludeGlobs)
  if (starts.length === 0) return nothingFound(call, { returncode: 1 })

  const limit = { label: engine.name, advice: 'narrow the path or the query', seconds: args.timeout }
  return withinTime(call, limit, async (time) => {
    const request: SearchRequest = { workspace, starts, query, pattern, fileType, exclusions, time }
    const collector = new ResultCollector(workspace, { maxFiles: args.max_files ?? DEFAULT_FILES })
    const progress = new SearchProgress(call)
    const end = await engine.search(request, (file) => {
      collector.add(file)
      progress.add(file.path)
    })
    const page = await readPage(request, collector, {
      maxLines: args.max_matches_per_file ?? DEFAULT_MATCHES_PER_FILE,
      maxLineChars: args.max_line_chars ?? limits.maxSearchLineChars,
      contextLines: args.context_lines ?? 0,
    })
    return pageOutcome(call, { page, end, engine: engine.name })
  })
}

function checkQuery({ query, literal = false, case_sensitive: caseSensitive = true }: SearchArguments): SearchQuery {
  if (query === '') throw new FileFailure('InvalidInput', 'query is empty')
  const checked: SearchQuery = { text: query, literal, caseSensitive }
  if (query.length <= MAX_PATTERN_CHARS) return checked
  throw invalidQuery(checked, `it is longer than ${MAX_PATTERN_CHARS} characters`)
}

async function compileQuery(query: SearchQuery): Promise<Pattern> {
  const compiled = await compilePattern(query.text, { scope: 'line', ...query })
  if (compiled.ok) return compiled.pattern
  throw invalidQuery(query, compiled.problem)
}

/** An invalid query, for the model. */
function invalidQuery({ literal }: SearchQuery, problem: string): FileFailure {
  const advice = literal ? '' : '. To search for the text as it is, set `literal`.'
  return invalidInput(`invalid query: ${problem}${advice}`, { returncode: 2 })
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

async function pageOutcome(
  call: FileCall<SearchArguments>,
  { page, end, engine }: { readonly page: ResultPage; readonly end: EngineEnd; readonly engine: string },
): Promise<ToolOutcome> {
  const { workspace } = call
  const returncode = page.problem === '' ? end.returncode : 2
  const metadata = { returncode }
  const detail = cutText(end.detail === '' ? page.problem : end.detail, MAX_WARNING_CHARS, '...')
  if (page.totalMatches === 0) {
    if (returncode <= 1) return nothingFound(call, { returncode: 1 })
    throw new FileFailure('SearchFailed', `${engine} failed (rc=${returncode}): ${detail}`, { metadata })
  }
  const isComplete = returncode <= 1
  const problem = isComplete ? '' : detail || 'the reason is unknown'
  const excluded = workspace.limits.excludeGlobs.length > 0 ? scopeText(call) : ''
  const text = renderResult({ ...page, excluded, problem }, page.files)
  const output = await spill(workspace, { text, prefix: 'search', limit: outputLimit(call) })
  const warning = !isComplete && incomplete(detail)
  return { kind: 'succeeded', content: output.content, metadata: { ...metadata, ...warning, ...output.metadata } }
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
