import type { CallTime } from '../workspace/call-time.js'
import { fileFailureOf } from '../workspace/failure.js'
import { openListed } from '../workspace/safe-open.js'
import type { ListedFile } from '../workspace/safe-open.js'
import type { Workspace } from '../workspace/workspace.js'
import { textBlocks } from './blocks.js'
import type { FileCount, SearchRequest } from './engine.js'
import { lineText, matchFile } from './match-file.js'
import type { Line } from './match-file.js'
import { renderFile } from './render.js'
import type { RenderedFile, ShownFile } from './render.js'
import type { CollectedFile, ResultCollector } from './result-collector.js'
import { UnreadFiles } from './unread-files.js'

export interface PageOptions {
  /** Most matching lines of a file. */
  readonly maxLines: number
  readonly maxLineChars: number
  /** Lines to show before and after each match. */
  readonly contextLines: number
}

/** The files that are shown, and the corrected sums. */
export interface ResultPage {
  readonly files: readonly RenderedFile[]
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
export async function readPage(
  request: SearchRequest,
  collector: ResultCollector,
  options: PageOptions,
): Promise<ResultPage> {
  const unread = new UnreadFiles(request.workspace)
  const files: RenderedFile[] = []
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
    lines.push({ number, text: lineText(bytes, maxLineChars) }) < maxLines
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
  return whileOpen({ workspace: request.workspace, path }, (file) =>
    linesIn(textBlocks(file, file), joinedRanges(lines, contextLines), { time: request.time, maxLineChars }),
  )
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

async function linesIn(
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
