import { basename, relative, sep } from 'node:path'
import { Slots } from '../../util/slots.js'
import { FileFailure, fileFailureOf, isMissing } from '../workspace/failure.js'
import { openListed } from '../workspace/safe-open.js'
import type { ListedFile } from '../workspace/safe-open.js'
import { walk } from '../workspace/walk.js'
import { blocksOf } from './blocks.js'
import { concurrently } from './concurrently.js'
import { invalidQuery } from './engine.js'
import type { SearchEngine, SearchRequest } from './engine.js'
import { BINARY_BYTES, MAX_MATCHES_COUNTED } from './hits.js'
import type { Line, ReadHits } from './hits.js'
import { lineText } from './line-text.js'
import { eachMatchingLine, lineFeeds } from './pattern/matching-lines.js'
import { compilePattern } from './pattern/pattern.js'
import type { Pattern } from './pattern/pattern.js'
import { UnreadFiles } from './unread-files.js'

/** Files that are open at once. */
const FILES_AT_ONCE = 32
/** A larger file may hold a line that fills the memory of many: such are searched one after the other. In bytes. */
const LARGE_BYTES = 4 << 20

/** The engine that needs no program: the walker, and patterns that run line by line in linear time. */
export const builtinEngine: SearchEngine = {
  name: 'the built-in search',

  command,

  fileType(name) {
    const problem = `\`file_type\` (\`${name.slice(0, 40)}\`) needs ripgrep, which is not available here: leave it out, and narrow \`path\` instead`
    return Promise.reject(new FileFailure('InvalidInput', problem, { retry: true }))
  },

  async search(request, onFile) {
    const { query, workspace } = request
    const compiled = await compilePattern(query.text, { scope: 'line', ...query })
    if (!compiled.ok) throw invalidQuery(query, compiled.problem)
    const unread = new UnreadFiles()
    const largeFiles = new Slots(1)
    let filesFound = 0
    await concurrently(filesOf(request), FILES_AT_ONCE, async (path) => {
      try {
        const file = await openListed(workspace, path)
        const collector = new LineCollector(request, path)
        const search = (): Promise<void> => searchFile(file, compiled.pattern, collector)
        try {
          await (file.size > LARGE_BYTES ? largeFiles.within('', request.time.signal, search) : search())
        } finally {
          await file.close()
        }
        if (collector.isCut)
          unread.add(`${workspace.display(path)}: only the beginning of a very long line was searched`)
        if (collector.matches === 0) return
        filesFound++
        onFile(collector.hits)
      } catch (error) {
        if (!isMissing(error)) unread.add(problemOf(error, workspace.display(path)))
      }
    })
    const detail = unread.text
    return { command: command(request), returncode: detail !== '' ? 2 : filesFound > 0 ? 0 : 1, detail }
  },
}

function command({ query, workspace, starts }: SearchRequest): readonly string[] {
  return ['builtin-search', '--', query.text, ...starts.map((start) => workspace.display(start))]
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

/** Collects the matching lines of one file. A file that is not text has none. */
async function searchFile(file: ListedFile, pattern: Pattern, collector: LineCollector): Promise<void> {
  let isFirst = true
  for await (const block of blocksOf(file, file)) {
    collector.request.time.check()
    if (block.kind === 'overlong') collector.skipLine()
    else {
      if (isFirst && block.bytes.subarray(0, BINARY_BYTES).includes(0)) return
      await collector.add(block.bytes, pattern)
    }
    isFirst = false
    if (collector.isFull) return
  }
}

class LineCollector {
  readonly request: SearchRequest
  isCut = false
  matches = 0
  readonly #path: string
  readonly #keepLines: number
  readonly #lines: Line[] = []
  /** Number of the first line of the current block. */
  #number = 1

  constructor(request: SearchRequest, path: string) {
    this.request = request
    this.#path = path
    this.#keepLines = request.wantsLines(path) ? request.keepLines : 0
  }

  get hits(): ReadHits {
    return { kind: 'read', path: this.#path, matches: this.matches, lines: this.#lines }
  }

  get isFull(): boolean {
    return this.matches >= MAX_MATCHES_COUNTED
  }

  skipLine(): void {
    this.#number++
    this.isCut = true
  }

  async add(bytes: Buffer, pattern: Pattern): Promise<void> {
    const { maxLineChars, time } = this.request
    await eachMatchingLine(bytes, {
      pattern,
      time,
      onLine: ({ start, end, before }) => {
        this.matches++
        if (this.#lines.length < this.#keepLines) {
          this.#lines.push({ number: this.#number + before, text: lineText(bytes.subarray(start, end), maxLineChars) })
        }
        return !this.isFull
      },
      onCut: () => {
        this.isCut = true
      },
    })
    this.#number += lineFeeds(bytes, 0, bytes.length)
  }
}

/** A file that cannot be read does not end the search; one that has gone since it was listed is no problem at all. */
function problemOf(error: unknown, shown: string): string {
  const failure = fileFailureOf(error, shown)
  if (failure === undefined) throw error
  return failure.message
}
