import type { CallTime } from '../workspace/call-time.js'
import type { Workspace } from '../workspace/workspace.js'
import type { Exclusions } from './exclusions.js'
import type { FileType } from './file-types.js'
import type { FileHits } from './hits.js'
import type { Pattern } from './pattern/pattern.js'

/**
 * What finds lines. All engines find the same ones: they read the same files (those of the one walker, links left out),
 * the same lines (LF ends one), with the same dialect of patterns.
 */
export interface SearchEngine {
  /** As messages name it. */
  readonly name: string
  /** What would be run. */
  command(request: SearchRequest): readonly string[]
  /**
   * Gives what it finds to `onFile`, file by file, in any order.
   * @throws DeadlinePassed; the signal's reason when aborted.
   */
  search(request: SearchRequest, onFile: (hits: FileHits) => void): Promise<EngineEnd>
}

export interface SearchRequest {
  readonly workspace: Workspace
  /** Files and folders: absolute, links resolved, existing, none inside another. */
  readonly starts: readonly string[]
  readonly pattern: Pattern
  readonly fileType: FileType | undefined
  readonly exclusions: Exclusions
  /** Matching lines of a file whose text is wanted. */
  readonly keepLines: number
  /** Whether the lines of a file are wanted at all; of the others the count is. */
  readonly wantsLines: (path: string) => boolean
  readonly maxLineChars: number
  readonly time: CallTime
}

export interface EngineEnd {
  /** What was run. */
  readonly command: readonly string[]
  /** As ripgrep has it: 0 when something was found, 1 when nothing was, 2 when something went wrong on the way. */
  readonly returncode: number
  /** What went wrong. */
  readonly detail: string
}
