import type { StartedChild } from '../core/started-child.js'

/** A run for the background: it begins once the call that leaves it has ended well. */
export interface LeftChild {
  readonly key: string
  readonly childRunId: string
  readonly agent: string
  readonly task: string
  readonly started: StartedChild
  /** It may begin. */
  readonly begin: () => void
  /** It never will. */
  readonly drop: () => void
}
