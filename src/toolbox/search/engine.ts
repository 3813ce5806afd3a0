import type { CallTime } from '../workspace/call-time.js'
import type { Workspace } from '../workspace/workspace.js'
import type { Exclusions } from './exclusions.js'
import type { Pattern } from './pattern/pattern.js'

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
