import { basename, relative, sep } from 'node:path'
import { Slots } from '../../util/slots.js'
import { fileFailureOf, isMissing } from '../workspace/failure.js'
import { openListed } from '../workspace/safe-open.js'
import { walk } from '../workspace/walk.js'
import { concurrently } from './concurrently.js'
import type { SearchEngine, SearchRequest } from './engine.js'
import type { ReadHits } from './hits.js'
import { searchFile } from './search-file.js'
import { UnreadFiles } from './unread-files.js'

/** Files that are open at once. */
const FILES_AT_ONCE = 32
/** A larger file may hold a line that fills the memory of many: such are searched one after the other. In bytes. */
const LARGE_BYTES = 4 << 20

/** The engine that is always there: the one walker, and patterns that run in linear time. */
export const builtinEngine: SearchEngine = {
  name: 'the built-in search',

  command,

  async search(request, onFile) {
    const unread = new UnreadFiles()
    const largeFiles = new Slots(1)
    let filesFound = 0
    await concurrently(filesOf(request), FILES_AT_ONCE, async (path) => {
      try {
        const hits = await searchPath(request, path, largeFiles)
        if (hits.matches === 0) return
        filesFound++
        onFile(hits)
      } catch (error) {
        if (!isMissing(error)) unread.add(problemOf(error, request.workspace.display(path)))
      }
    })
    const detail = unread.text
    return { command: command(request), returncode: detail !== '' ? 2 : filesFound > 0 ? 0 : 1, detail }
  },
}

function command({ pattern, workspace, starts }: SearchRequest): readonly string[] {
  return ['builtin-search', '--', pattern.source, ...starts.map((start) => workspace.display(start))]
}

/** Searches one file, as this engine does it; a large one when it is its turn. */
export async function searchPath(request: SearchRequest, path: string, largeFiles = new Slots(1)): Promise<ReadHits> {
  const file = await openListed(request.workspace, path)
  try {
    const keepLines = request.wantsLines(path) ? request.keepLines : 0
    const found = () => searchFile(file, { ...request, keepLines })
    const isLarge = file.size > LARGE_BYTES
    const hits = await (isLarge ? largeFiles.within('', request.time.signal, found) : found())
    return { kind: 'read', path, ...hits }
  } finally {
    await file.close()
  }
}

/** Whether a file that lies below a start is to be searched; the starts themselves always are. */
export function isWanted({ workspace, fileType, exclusions }: SearchRequest, path: string): boolean {
  if (fileType?.matches(basename(path)) === false) return false
  return exclusions.globs.length === 0 || !exclusions.excludes(relative(workspace.root, path).split(sep))
}

async function* filesOf(request: SearchRequest): AsyncGenerator<string, void, undefined> {
  const { workspace, starts, time } = request
  for (const start of starts) {
    for await (const entry of walk(workspace, { start, signal: time.signal, deadline: time.deadline })) {
      if (entry.kind !== 'file' || entry.link) continue
      if (entry.path === start || isWanted(request, entry.path)) yield entry.path
    }
  }
}

/** A file that cannot be read does not end the search; one that has gone since it was listed is no problem at all. */
function problemOf(error: unknown, shown: string): string {
  const failure = fileFailureOf(error, shown)
  if (failure === undefined) throw error
  return failure.message
}
