import type { CallTime } from '../workspace/call-time.js'
import { FileFailure } from '../workspace/failure.js'
import type { Workspace } from '../workspace/workspace.js'
import type { Exclusions } from './exclusions.js'
import type { FileHits } from './hits.js'

/** Finds lines. All engines read the same files (those of the walker, links left out) and the same lines (LF ends one). */
export interface SearchEngine {
  /** As messages name it. */
  readonly name: string
  /** The command that a search runs, for the metadata of its result. */
  command(request: SearchRequest): readonly string[]
  /**
   * The type of files with this name.
   * @throws FileFailure `InvalidInput` if there is none, or if the engine knows no types.
   */
  fileType(name: string): Promise<FileType>
  /**
   * Gives what it finds to `onFile`, file by file, in any order.
   * @throws FileFailure `InvalidInput` for a query that is no pattern; DeadlinePassed; the signal's reason when aborted.
   */
  search(request: SearchRequest, onFile: (hits: FileHits) => void): Promise<EngineEnd>
}

export interface SearchRequest {
  readonly workspace: Workspace
  /** Files and folders: absolute, links resolved, existing, none inside another. */
  readonly starts: readonly string[]
  readonly query: SearchQuery
  readonly fileType: FileType | undefined
  readonly exclusions: Exclusions
  /** Matching lines of a file whose text is wanted. */
  readonly keepLines: number
  /** Whether the lines of a file are wanted at all; of the others the count is. */
  readonly wantsLines: (path: string) => boolean
  readonly maxLineChars: number
  readonly time: CallTime
}

export interface SearchQuery {
  readonly text: string
  /** The text is searched for as it is; else it is a regular expression. */
  readonly literal: boolean
  readonly caseSensitive: boolean
}

/** A kind of files, known by their names. */
export interface FileType {
  readonly name: string
  /** Whether a file name, without its folder, is of this type. */
  matches(fileName: string): boolean
}

export interface EngineEnd {
  /** What was run. */
  readonly command: readonly string[]
  /** As ripgrep has it: 0 when something was found, 1 when nothing was, 2 when something went wrong on the way. */
  readonly returncode: number
  /** What went wrong. */
  readonly detail: string
}

/** A query that is no pattern, for the model. */
export function invalidQuery({ literal }: SearchQuery, problem: string): FileFailure {
  const advice = literal ? '' : '. To search for the text as it is, set `literal`.'
  return new FileFailure('InvalidInput', `invalid query: ${problem}${advice}`, {
    retry: true,
    metadata: { returncode: 2 },
  })
}
