import { MAX_MATCHES_COUNTED } from './hits.js'
import type { FileHits, Line } from './hits.js'
import { lineText } from './line-text.js'
import type { RipgrepRecord } from './ripgrep-output.js'

export interface FilesSeen {
  /** Files whose records are complete, with the path as ripgrep gave it. */
  readonly hits: readonly FileHits[]
  /** Files that ripgrep's records do not do justice to: they are binary, or hold a line that is too long for a record. */
  readonly again: readonly string[]
}

interface OpenFile {
  matches: number
  lines: Line[]
  isForAgain: boolean
}

/** Gathers records by file. What is kept is bounded by what was asked for. */
export class RipgrepFiles {
  readonly #keepLines: number
  readonly #maxLineChars: number
  readonly #open = new Map<string, OpenFile>()
  #current: string | undefined

  constructor(keepLines: number, maxLineChars: number) {
    this.#keepLines = keepLines
    this.#maxLineChars = maxLineChars
  }

  /** Takes a record, `undefined` for one that was too long; gives the file that it completes. */
  add(record: RipgrepRecord | 'too_long'): FilesSeen {
    if (record === 'too_long') {
      if (this.#current !== undefined) this.#fileAt(this.#current).isForAgain = true
      return NOTHING
    }
    const file = this.#fileAt(record.path)
    this.#current = record.path
    switch (record.kind) {
      case 'begin':
        return NOTHING
      case 'match':
        this.#addMatch(file, record.line, record.bytes)
        return NOTHING
      case 'end':
        file.isForAgain ||= record.isBinary
        return this.#close(record.path, file)
    }
  }

  /** The files that were never completed. */
  rest(): FilesSeen {
    const rest = [...this.#open].map(([path, file]) => this.#close(path, file))
    return { hits: rest.flatMap(({ hits }) => hits), again: rest.flatMap(({ again }) => again) }
  }

  #fileAt(path: string): OpenFile {
    const known = this.#open.get(path)
    if (known !== undefined) return known
    const opened = { matches: 0, lines: [], isForAgain: false }
    this.#open.set(path, opened)
    return opened
  }

  /** Lines come in order from ripgrep itself; whoever stands in for it may be less orderly (FT-30). */
  #addMatch(file: OpenFile, number: number, bytes: Buffer): void {
    if (file.matches < MAX_MATCHES_COUNTED) file.matches++
    const last = file.lines.at(-1)
    const isFull = file.lines.length >= this.#keepLines
    if (isFull && last !== undefined && number > last.number) return
    const end = bytes.at(-1) === LF ? bytes.length - 1 : bytes.length
    file.lines.push({ number, text: lineText(bytes, 0, end, this.#maxLineChars) })
    if (last !== undefined && number < last.number) file.lines.sort((left, right) => left.number - right.number)
    if (isFull) file.lines.pop()
  }

  #close(path: string, file: OpenFile): FilesSeen {
    this.#open.delete(path)
    if (file.isForAgain) return { hits: [], again: [path] }
    return file.matches === 0 ? NOTHING : { hits: [{ path, matches: file.matches, lines: file.lines }], again: [] }
  }
}

const LF = 0x0a
const NOTHING: FilesSeen = { hits: [], again: [] }
