import type { CallTime } from '../workspace/call-time.js'
import { fileFailureOf, isMissing } from '../workspace/file-failure.js'
import { ignoreVerdict, parseIgnoreFile } from '../workspace/ignore-rules.js'
import type { Workspace } from '../workspace/workspace.js'
import type { Pattern } from './pattern.js'

/** Counts matching lines. All engines read the same files (those of the walker, except links) and the same lines (LF ends a line). */
export interface SearchEngine {
  /** In messages. */
  readonly name: string
  /**
   * The type of files with this name.
   * @throws FileFailure `InvalidInput` if there is none, or if the engine knows no types.
   */
  fileType(name: string): Promise<FileType>
  /**
   * Passes files with matches to `onFile`, in any order.
   * @throws DeadlinePassed; the signal's reason when aborted.
   */
  search(request: SearchRequest, onFile: (file: FileCount) => void): Promise<EngineEnd>
}

export interface SearchRequest {
  readonly workspace: Workspace
  /** Files and folders: absolute, links resolved, existing, none inside another. */
  readonly starts: readonly string[]
  readonly query: SearchQuery
  /** The query, compiled. */
  readonly pattern: Pattern
  readonly fileType: FileType | undefined
  readonly exclusions: Exclusions
  readonly time: CallTime
}

export interface SearchQuery {
  readonly text: string
  /** The query is plain text; otherwise it is a regular expression. */
  readonly literal: boolean
  readonly caseSensitive: boolean
}

/** A kind of files, identified by their names. */
export interface FileType {
  readonly name: string
  /** True if a file name, without its folder, is of this type. */
  matches(fileName: string): boolean
}

/** A file with matches. */
export interface FileCount {
  /** Absolute. */
  readonly path: string
  /** Number of matching lines; counting ends at `MAX_MATCHES_COUNTED`. */
  readonly matches: number
}

export interface EngineEnd {
  /** As ripgrep's: 0 if there are matches, 1 if there are none, 2 after a problem. */
  readonly returncode: number
  /** The problem. */
  readonly detail: string
}

/** Files that the host excludes from searches. */
export interface Exclusions {
  /** Without a leading `!`. */
  readonly globs: readonly string[]
  /** True if a file, given by its names from the root, or a folder above it is excluded. */
  excludes(segments: readonly string[]): boolean
}

/** @param globs In the syntax of gitignore, as ripgrep's `--glob` takes them; a leading `!` changes nothing. */
export function exclusionsOf(globs: readonly string[]): Exclusions {
  const plain = globs.map((glob) => glob.replace(/^!/, ''))
  if (plain.length === 0) return { globs: plain, excludes: () => false }
  // In an ignore file, a leading `#` would start a comment.
  const rules = parseIgnoreFile(plain.map((glob) => glob.replace(/^[#!]/, '\\$&')).join('\n'))
  const scope = { parent: undefined, depth: 0, rules: { '.ignore': rules } }
  return {
    globs: plain,
    excludes: (segments) =>
      segments.some((_, index) => {
        const isFile = index === segments.length - 1
        return ignoreVerdict(scope, segments.slice(0, index + 1), !isFile) === 'ignored'
      }),
  }
}

/** Files that could not be read: their number, and the problem of the first. Never their content. */
export class UnreadFiles {
  readonly #workspace: Workspace
  #first: string | undefined
  #count = 0

  constructor(workspace: Workspace) {
    this.#workspace = workspace
  }

  /** Reads a file. If it cannot be read, the search continues; a file that no longer exists is not a problem. */
  async unless(path: string, read: () => Promise<void>): Promise<void> {
    try {
      await read()
    } catch (error) {
      if (isMissing(error)) return
      const failure = fileFailureOf(error, this.#workspace.display(path))
      if (failure === undefined) throw error
      this.#add(failure.message)
    }
  }

  addCut(path: string): void {
    this.#add(`${this.#workspace.display(path)}: only the beginning of a very long line was searched`)
  }

  #add(problem: string): void {
    this.#first ??= problem
    this.#count++
  }

  /** Empty if there are none. */
  get text(): string {
    if (this.#first === undefined) return ''
    return this.#count === 1 ? this.#first : `${this.#first} (and ${this.#count - 1} more that could not be read)`
  }
}
