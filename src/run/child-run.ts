import type { HarnessResult, ResumeState } from '../report.js'
import type { SpawnOptions } from '../tools/spec.js'
import type { RunAbort } from './abort.js'
import type { Answer } from './answers.js'
import type { RunContext } from './context.js'

/** A run to be started under a call. */
export interface ChildStart {
  readonly runId: string
  readonly options: SpawnOptions<unknown>
  /** Its state when the call last waited; the log may know more. */
  readonly stored: ResumeState | null
  /** What people have answered to it since. */
  readonly answers: readonly Answer[]
  /** Aborted with the call. */
  readonly signal: AbortSignal
}

/** Starts a run under a call of `parent`. */
export type StartChild = (parent: RunContext, callId: string, start: ChildStart) => StartedChild

/** A child run under way. */
export interface StartedChild {
  readonly abort: RunAbort
  readonly outcome: Promise<HarnessResult<unknown>>
}
