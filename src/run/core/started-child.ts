import type { HarnessResult } from '../../contracts/result.js'
import type { RunAbort } from '../../util/abort.js'

/** A child run under way. */
export interface StartedChild {
  readonly abort: RunAbort
  readonly outcome: Promise<HarnessResult<unknown>>
}
