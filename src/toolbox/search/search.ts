import { withinTime } from '../workspace/call-time.js'
import type { CallTime } from '../workspace/call-time.js'
import { FileFailure, invalidInput, fileFailureOf } from '../workspace/file-failure.js'
import { fileTool } from '../workspace/file-tool.js'
import type { FileCall } from '../workspace/file-tool.js'
import type { FileToolOptions } from '../workspace/options.js'
import { shownPath } from '../workspace/path-text.js'
import { openListed } from '../workspace/safe-open.js'
import type { ListedFile } from '../workspace/safe-open.js'
import { SearchProgress } from '../workspace/search-progress.js'
import { sourcesOfFiles, spill } from '../workspace/spill.js'
import { walkStart } from '../workspace/walk.js'
import type { Workspace } from '../workspace/workspace.js'
import { DEFAULT_FILES, DEFAULT_MATCHES_PER_FILE, SEARCH_PARAMETERS } from './arguments.js'
import type { SearchArguments } from './arguments.js'
import { textBlocks } from './text-blocks.js'
import { engineFor } from './choose-engine.js'
import type { EngineEnd, SearchQuery, SearchRequest, FileCount } from './engine.js'
import { exclusionsOf, UnreadFiles } from './engine.js'
import { lineText, matchFile, matchText } from './match-file.js'
import type { Line } from './match-file.js'
import { compilePattern, MAX_PATTERN_CHARS } from './pattern.js'
import type { Pattern } from './pattern.js'
import { incompleteMetadata, outputLimit, renderNothing, renderResult, renderFile } from './render.js'
import type { RenderedFile, ShownFile } from './render.js'
import { ResultCollector } from './result-collector.js'
import type { CollectedFile } from './result-collector.js'
import type { ToolOutcome, ToolSpec } from '#core/tools/tool-spec.js'
import { cutText } from '#util/characters.js'
import type { JsonObject } from '#util/json.js'
import { lstat } from 'node:fs/promises'

const MAX_QUERY_SHOWN = 500
const MAX_WARNING_CHARS = 400

/** `search`: lines of text files by regular expression or plain text. */
export function searchTool(options: FileToolOptions = {}): ToolSpec {
  return fileTool<SearchArguments>(options, {
    name: 'search',
    description: 'Search text files line by line with a regular expression, and get the matches grouped by file.',
    instructions: [
      '`search`: pass the text or the regular expression to search for.',
      '- Scope it with `path`; `file_type` takes the name of a type, never a glob.',
      '- Set `literal` when the text contains special characters of regular expressions.',
    ].join('\n'),
    parameters: SEARCH_PARAMETERS,
    annotations: { readOnly: true, idempotent: true, openWorld: false },
    aliases: { pattern: 'query', regex: 'query' },
    pathFields: ['path'],
    run: runSearch,
  })
}

async function runSearch(call: FileCall<SearchArguments>): Promise<ToolOutcome> {
  const { workspace, args } = call
  const { limits } = workspace
  const query = checkQuery(args)
  const pattern = await compileQuery(query)
  const starts = await searchStarts(workspace, args.path)
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
async function searchStarts(workspace: Workspace, path = '.'): Promise<string[]> {
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
  const files = page.files.map(({ file }) => file.path)
  const { metadata: source, prefix } = sourcesOfFiles(workspace, files, 'search')
  const output = await spill(workspace, { text, prefix, limit: outputLimit(call) })
  const warning = !isComplete && incompleteMetadata(detail)
  return {
    kind: 'succeeded',
    content: output.content,
    metadata: { ...metadata, ...warning, ...source, ...output.metadata },
  }
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

export interface PageOptions {
  /** Most matching lines of a file. */
  readonly maxLines: number
  readonly maxLineChars: number
  /** Lines to show before and after each match. */
  readonly contextLines: number
}

/** The files that are shown, and the corrected sums. */
export interface ResultPage {
  readonly files: readonly (RenderedFile & { readonly file: MatchedFile })[]
  readonly totalFiles: number
  readonly totalMatches: number
  /** Why lines are missing from the files; empty if none are. */
  readonly problem: string
}

/** Longest text that is composed, in characters; the files after it are omitted. */
const MAX_TEXT_CHARS = 16_000_000
/** Longest context of one file, in characters. */
const MAX_CONTEXT_CHARS = 2_000_000
const LF = 0x0a

/**
 * Reads the matching lines of the first files by name. A program that counts opens files by name, and may have read one
 * outside the root: a file is shown only if it, opened at its place inside the root, has matching lines.
 */
async function readPage(request: SearchRequest, collector: ResultCollector, options: PageOptions): Promise<ResultPage> {
  const unread = new UnreadFiles(request.workspace)
  const files: (RenderedFile & { readonly file: MatchedFile })[] = []
  let { totalFiles, totalMatches } = collector
  let chars = 0
  for (const collected of collector.firstFiles()) {
    await request.time.breathe()
    const file = await shownFile(request, collected, options)
    totalMatches += (file?.matches ?? 0) - collected.matches
    if (file === undefined) {
      totalFiles--
      continue
    }
    if (file.isCut) unread.addCut(collected.path)
    const context = options.contextLines === 0 ? undefined : await linesAround(request, file, options)
    const text = renderFile(file, context)
    files.push({ file, text })
    chars += text.length
    if (chars > MAX_TEXT_CHARS) break
  }
  return { files, totalFiles, totalMatches, problem: unread.text }
}

interface MatchedFile extends ShownFile {
  readonly path: string
  /** A line that was counted is too long to be searched here. */
  readonly isCut: boolean
}

/** A file with its first matching lines; `undefined` if it has none, or can no longer be read. */
async function shownFile(
  { workspace, pattern, time }: SearchRequest,
  { path, shown, matches: counted }: CollectedFile<FileCount>,
  { maxLines, maxLineChars }: PageOptions,
): Promise<MatchedFile | undefined> {
  const lines: Line[] = []
  const onLine = (number: number, bytes: Buffer): boolean =>
    lines.push({ number, ...matchText(bytes, pattern, maxLineChars) }) < maxLines
  const end = await whileOpen({ workspace, path }, (file) =>
    matchFile(file, { pattern, time, isTextOnly: false, onLine }),
  )
  if (end === undefined || end.isBinary) return undefined
  const isComplete = lines.length < maxLines && !end.isCut
  const matches = isComplete ? lines.length : Math.max(counted, lines.length)
  if (matches === 0) return undefined
  return { path, shown, matches, lines, isCut: end.isCut && lines.length < Math.min(counted, maxLines) }
}

interface Range {
  readonly first: number
  readonly last: number
}

/** The matches of a file with the lines around them, ascending; `undefined` if it can no longer be read. */
async function linesAround(
  request: SearchRequest,
  { path, lines }: MatchedFile,
  { contextLines, maxLineChars }: PageOptions,
): Promise<readonly Line[] | undefined> {
  const around = await whileOpen({ workspace: request.workspace, path }, (file) =>
    readRanges(textBlocks(file, file), joinedRanges(lines, contextLines), { time: request.time, maxLineChars }),
  )
  const matching = new Map(lines.map((line) => [line.number, line]))
  return around?.map((line) => matching.get(line.number) ?? line)
}

/** Line numbers to show; adjacent and overlapping ranges are joined. */
function joinedRanges(lines: readonly Line[], around: number): Range[] {
  const ranges: Range[] = []
  for (const { number } of lines) {
    const first = Math.max(1, number - around)
    const last = number + around
    const before = ranges.at(-1)
    if (before !== undefined && first <= before.last + 1) ranges[ranges.length - 1] = { first: before.first, last }
    else ranges.push({ first, last })
  }
  return ranges
}

async function readRanges(
  blocks: AsyncIterable<Buffer | null>,
  ranges: Range[],
  { maxLineChars, time }: { readonly maxLineChars: number; readonly time: CallTime },
): Promise<readonly Line[]> {
  const lines: Line[] = []
  let number = 1
  let chars = 0
  for await (const block of blocks) {
    await time.breathe()
    if (block === null) {
      number++
      continue
    }
    for (let start = 0; start < block.length; number++) {
      const [range] = ranges
      if (range === undefined || chars > MAX_CONTEXT_CHARS) return lines
      const lineFeed = block.indexOf(LF, start)
      const end = lineFeed === -1 ? block.length : lineFeed
      if (number >= range.first) {
        const text = lineText(block.subarray(start, end), maxLineChars)
        chars += text.length
        lines.push({ number, text })
      }
      if (number >= range.last) ranges.shift()
      start = end + 1
    }
  }
  return lines
}

/** Uses an opened file, and closes it; `undefined` if it cannot be read. */
async function whileOpen<T>(
  { workspace, path }: { readonly workspace: Workspace; readonly path: string },
  use: (file: ListedFile) => Promise<T>,
): Promise<T | undefined> {
  try {
    const file = await openListed(workspace, path)
    try {
      return await use(file)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (fileFailureOf(error) === undefined) throw error
    return undefined
  }
}
