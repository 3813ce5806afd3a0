import type { CallTime } from '../workspace/call-time.js'
import { invalidInput } from '../workspace/failure.js'
import type { FileFailure } from '../workspace/failure.js'
import type { Workspace } from '../workspace/workspace.js'
import type { Exclusions } from './exclusions.js'
import type { FileHits } from './hits.js'

/** Finds lines. All engines read the same files (those of the walker, except links) and the same lines (LF ends a line). */
export interface SearchEngine {
  /** In messages. */
  readonly name: string
  /**
   * The type of files with this name.
   * @throws FileFailure `InvalidInput` if there is none, or if the engine knows no types.
   */
  fileType(name: string): Promise<FileType>
  /**
   * Passes matches to `onFile`, file by file, in any order.
   * @throws FileFailure `InvalidInput` for an invalid query; DeadlinePassed; the signal's reason when aborted.
   */
  search(request: SearchRequest, onFile: (hits: FileHits) => void): Promise<EngineEnd>
}

export interface SearchTask {
  readonly workspace: Workspace
  /** Files and folders: absolute, links resolved, existing, none inside another. */
  readonly starts: readonly string[]
  readonly query: SearchQuery
  readonly fileType: FileType | undefined
  readonly exclusions: Exclusions
  /** Matching lines per file whose text is kept. */
  readonly keepLines: number
  /** False if only the number of matches in a file is needed. */
  readonly wantsLines: (path: string) => boolean
  readonly maxLineChars: number
}

export interface SearchRequest extends SearchTask {
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

export interface EngineEnd {
  /** As ripgrep's: 0 if there are matches, 1 if there are none, 2 after a problem. */
  readonly returncode: number
  /** The problem. */
  readonly detail: string
}

/** An invalid query, for the model. */
export function invalidQuery({ literal }: SearchQuery, problem: string): FileFailure {
  const advice = literal ? '' : '. To search for the text as it is, set `literal`.'
  return invalidInput(`invalid query: ${problem}${advice}`, { returncode: 2 })
}
