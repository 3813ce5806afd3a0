import { basename, relative, sep } from 'node:path'
import { Slots } from '#util/queue/slots.js'
import { invalidInput } from '../workspace/file-failure.js'
import { openListed } from '../workspace/safe-open.js'
import type { ListedFile } from '../workspace/safe-open.js'
import { walk } from '../workspace/walk.js'
import type { SearchEngine, SearchRequest } from './engine.js'
import { matchFile, MAX_MATCHES_COUNTED } from './match-file.js'
import { UnreadFiles } from './engine.js'

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
    const { workspace, time } = request
    const unread = new UnreadFiles(workspace)
    const largeFiles = new Slots(1)
    let filesFound = 0
    const searchOne = async (path: string): Promise<void> => {
      const file = await openListed(workspace, path)
      const count = (): Promise<MatchCount> => countMatches(file, path, request)
      try {
        const { matches, isCut } = await (file.size > LARGE_BYTES ? largeFiles.within('', time.signal, count) : count())
        if (isCut) unread.addCut(path)
        if (matches === 0) return
        filesFound++
        onFile({ path, matches })
      } finally {
        await file.close()
      }
    }
    await forEachConcurrently(requestedFiles(request), FILES_AT_ONCE, (path) =>
      unread.unless(path, () => searchOne(path)),
    )
    const detail = unread.text
    return { returncode: detail !== '' ? 2 : filesFound > 0 ? 0 : 1, detail }
  },
}

/** True if a file below a start is to be searched; the starts themselves always are. */
export function isWanted({ workspace, fileType, exclusions }: SearchRequest, path: string): boolean {
  if (fileType?.matches(basename(path)) === false) return false
  return exclusions.globs.length === 0 || !exclusions.excludes(relative(workspace.root, path).split(sep))
}

async function* requestedFiles(request: SearchRequest): AsyncGenerator<string, void, undefined> {
  const { workspace, starts, time } = request
  for (const start of starts) {
    for await (const entry of walk(workspace, { start, ...time })) {
      if (entry.kind !== 'file' || entry.link) continue
      if (entry.path === start || isWanted(request, entry.path)) yield entry.path
    }
  }
}

interface MatchCount {
  readonly matches: number
  readonly isCut: boolean
}

async function countMatches(
  file: ListedFile,
  path: string,
  { pattern, time, starts }: SearchRequest,
): Promise<MatchCount> {
  let matches = 0
  const onLine = (): boolean => ++matches < MAX_MATCHES_COUNTED
  const isTextOnly = !starts.includes(path)
  const { isBinary, isCut } = await matchFile(file, { pattern, time, isTextOnly, onLine })
  return { matches: isBinary ? 0 : matches, isCut }
}

/**
 * Does `work` for each item, `limit` of them at once, and requests the next item only when there is room. Stops at the first
 * error, which it throws after the work in progress has ended.
 */
export async function forEachConcurrently<Item>(
  items: AsyncIterable<Item>,
  limit: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.asyncIterator]()
  let isStopped = false
  const worker = async (): Promise<void> => {
    try {
      while (!isStopped) {
        const next = await iterator.next()
        if (next.done === true) return
        await work(next.value)
      }
    } catch (error) {
      isStopped = true
      throw error
    }
  }
  const ends = await Promise.allSettled(Array.from({ length: limit }, worker))
  await iterator.return?.()
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
