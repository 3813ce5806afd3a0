import { lineText, MAX_MATCHES_COUNTED } from '../hits.js'
import type { FileHits, Line } from '../hits.js'
import type { SearchTask } from '../engine.js'
import { isMatchRecord } from './records.js'
import type { RipgrepRecord } from './records.js'

interface OpenFile {
  matches: number
  lines: Line[]
}

/** Groups records by file. Memory is bounded by the lines that are kept. */
export class RipgrepFiles {
  readonly #limits: Pick<SearchTask, 'keepLines' | 'maxLineChars' | 'wantsLines'>
  readonly #open = new Map<string, OpenFile>()
  #current: string | undefined
  /** The current file, if its matches are only counted. */
  #counted: OpenFile | undefined

  /** @param limits With paths as ripgrep reports them. */
  constructor(limits: Pick<SearchTask, 'keepLines' | 'maxLineChars' | 'wantsLines'>) {
    this.#limits = limits
  }

  /** Counts a record without parsing it, if that is sufficient; else returns `false`. */
  count(bytes: Buffer, start: number, length: number): boolean {
    if (this.#counted === undefined || !isMatchRecord(bytes, start, length)) return false
    if (this.#counted.matches < MAX_MATCHES_COUNTED) this.#counted.matches++
    return true
  }

  /** Adds a record; returns the file that it completes, with the path as ripgrep reports it. */
  add(record: RipgrepRecord | 'too_long'): FileHits | undefined {
    if (record === 'too_long') {
      // Only a match can be too long: it counts, but its line cannot be shown.
      if (this.#current !== undefined) this.#fileAt(this.#current).matches++
      return undefined
    }
    const file = this.#fileAt(record.path)
    this.#current = record.path
    switch (record.kind) {
      case 'begin':
        this.#counted = this.#limits.wantsLines(record.path) ? undefined : file
        return undefined
      case 'match':
        this.#addMatch(file, record)
        return undefined
      case 'end':
        this.#counted = undefined
        this.#current = undefined
        if (record.isBinary) file.matches = 0
        return this.#close(record.path, file)
    }
  }

  /** The files that were never completed. */
  rest(): readonly FileHits[] {
    return [...this.#open].map(([path, file]) => this.#close(path, file)).filter((hits) => hits !== undefined)
  }

  #fileAt(path: string): OpenFile {
    const known = this.#open.get(path)
    if (known !== undefined) return known
    const opened = { matches: 0, lines: [] }
    this.#open.set(path, opened)
    return opened
  }

  /** ripgrep itself reports lines in order; a program in its place may not (FT-30). */
  #addMatch(file: OpenFile, { line: number, offset, bytes }: RipgrepRecord & { kind: 'match' }): void {
    if (file.matches < MAX_MATCHES_COUNTED) file.matches++
    const last = file.lines.at(-1)
    const isFull = file.lines.length >= this.#limits.keepLines
    if (isFull && last !== undefined && number > last.number) return
    const end = bytes.at(-1) === LF ? bytes.length - 1 : bytes.length
    file.lines.push({ number, offset, text: lineText(bytes.subarray(0, end), this.#limits.maxLineChars) })
    if (last !== undefined && number < last.number) file.lines.sort((left, right) => left.number - right.number)
    if (isFull) file.lines.pop()
  }

  #close(path: string, { matches, lines }: OpenFile): FileHits | undefined {
    this.#open.delete(path)
    return matches === 0 ? undefined : { path, matches, lines, isReported: true }
  }
}

const LF = 0x0a
