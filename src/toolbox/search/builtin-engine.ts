import { basename, relative, sep } from 'node:path'
import { Slots } from '../../util/slots.js'
import { invalidInput } from '../workspace/failure.js'
import { openListed } from '../workspace/safe-open.js'
import type { ListedFile } from '../workspace/safe-open.js'
import { walk } from '../workspace/walk.js'
import { blocksOf } from './blocks.js'
import { concurrently } from './concurrently.js'
import { invalidQuery } from './engine.js'
import type { SearchEngine, SearchRequest, SearchTask } from './engine.js'
import { BINARY_BYTES, lineText, MAX_MATCHES_COUNTED } from './hits.js'
import type { FileHits, Line } from './hits.js'
import { eachMatchingLine, lineFeeds } from './pattern/matching-lines.js'
import { compilePattern } from './pattern/pattern.js'
import type { Pattern } from './pattern/pattern.js'
import { UnreadFiles } from './unread-files.js'

/** Files that are open at once. */
const FILES_AT_ONCE = 32
/** A larger file may have a line that needs as much memory as many files: only one of them is searched at a time. In bytes. */
const LARGE_BYTES = 4 << 20

/** The engine that needs no program: the walker, and patterns that run line by line in linear time. */
export const builtinEngine: SearchEngine = {
  name: 'the built-in search',

  async fileType(name) {
    throw invalidInput(
      `\`file_type\` (\`${name.slice(0, 40)}\`) needs ripgrep, which is not available here: leave it out, and narrow \`path\` instead`,
    )
  },

  async search(request, onFile) {
    const { query, workspace, time } = request
    const compiled = await compilePattern(query.text, { scope: 'line', ...query })
    if (!compiled.ok) throw invalidQuery(query, compiled.problem)
    const unread = new UnreadFiles(workspace)
    const largeFiles = new Slots(1)
    let filesFound = 0
    const searchOne = async (path: string): Promise<void> => {
      const file = await openListed(workspace, path)
      const search = (): Promise<SearchedFile> => searchFile(file, path, { request, pattern: compiled.pattern })
      try {
        const { hits, isCut } = await (file.size > LARGE_BYTES ? largeFiles.within('', time.signal, search) : search())
        if (isCut) unread.add(`${workspace.display(path)}: only the beginning of a very long line was searched`)
        if (hits.matches === 0) return
        filesFound++
        onFile(hits)
      } finally {
        await file.close()
      }
    }
    await concurrently(filesOf(request), FILES_AT_ONCE, (path) => unread.unless(path, () => searchOne(path)))
    const detail = unread.text
    return { returncode: detail !== '' ? 2 : filesFound > 0 ? 0 : 1, detail }
  },
}

/** True if a file below a start is to be searched; the starts themselves always are. */
export function isWanted({ workspace, fileType, exclusions }: SearchTask, path: string): boolean {
  if (fileType?.matches(basename(path)) === false) return false
  return exclusions.globs.length === 0 || !exclusions.excludes(relative(workspace.root, path).split(sep))
}

async function* filesOf(request: SearchRequest): AsyncGenerator<string, void, undefined> {
  const { workspace, starts, time } = request
  for (const start of starts) {
    for await (const entry of walk(workspace, { start, ...time })) {
      if (entry.kind !== 'file' || entry.link) continue
      if (entry.path === start || isWanted(request, entry.path)) yield entry.path
    }
  }
}

interface SearchedFile {
  readonly hits: FileHits
  /** A line was too long to be searched completely. */
  readonly isCut: boolean
}

/** The matching lines of one file. A binary file has none. */
async function searchFile(
  file: ListedFile,
  path: string,
  { request, pattern }: { readonly request: SearchRequest; readonly pattern: Pattern },
): Promise<SearchedFile> {
  const { maxLineChars, time } = request
  const keepLines = request.wantsLines(path) ? request.keepLines : 0
  const lines: Line[] = []
  let matches = 0
  let isCut = false
  let isFirst = true
  /** Number of the first line of the block. */
  let number = 1
  const searchBlock = (bytes: Buffer): Promise<void> =>
    eachMatchingLine(bytes, {
      pattern,
      time,
      onLine: ({ start, end, before }) => {
        matches++
        if (lines.length < keepLines) {
          lines.push({ number: number + before, text: lineText(bytes.subarray(start, end), maxLineChars) })
        }
        return matches < MAX_MATCHES_COUNTED
      },
      onCut: () => (isCut = true),
    })
  for await (const block of blocksOf(file, file)) {
    time.check()
    if (isFirst && block?.subarray(0, BINARY_BYTES).includes(0) === true) break
    isFirst = false
    if (block === null) isCut = true
    else await searchBlock(block)
    number += block === null ? 1 : lineFeeds(block, 0, block.length)
    if (matches >= MAX_MATCHES_COUNTED) break
  }
  return { hits: { path, matches, lines, isReported: false }, isCut }
}
