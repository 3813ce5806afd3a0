import type { HarnessResult } from '../../contracts/result.js'
import type { RunAbort } from '../../util/abort.js'

/** A child run under way. */
export interface StartedChild {
  readonly abort: RunAbort
  readonly outcome: Promise<HarnessResult<unknown>>
}

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
