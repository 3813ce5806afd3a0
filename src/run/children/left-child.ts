import type { StartedChild } from '../core/child-run.js'

/** A background run: it begins once its call has succeeded. */
export interface LeftChild {
  readonly key: string
  readonly childRunId: string
  readonly agent: string
  readonly task: string
  readonly started: StartedChild
  /** Lets it begin. */
  readonly begin: () => void
  /** It will not begin. */
  readonly drop: () => void
}
