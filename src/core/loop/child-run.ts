import type { HarnessResult } from '#contracts/result.js'
import type { SpawnOptions } from '../tools/tool-spec.js'
import type { RunAbort } from '#util/abort.js'
import type { Answer } from '../state/answers.js'
import type { StoredChild } from '../state/child-state.js'

/** A run to be started under a call. */
export interface ChildStart {
  readonly runId: string
  /** The call that starts it. */
  readonly callId: string
  readonly options: SpawnOptions<unknown>
  /** Its state when the call last waited; the log may know more. */
  readonly stored: StoredChild | null
  /** The answers of people since then. */
  readonly answers: readonly Answer[]
  /** Aborted with the call, or with the run if that goes on after its call. */
  readonly signal: AbortSignal
  /** When it may begin. Default: at once. */
  readonly within?: Within
  /** If nothing is known of it, it is not begun. */
  readonly isKnown?: boolean
}

/** Does work when its time has come. Rejects, without having done it, when `signal` is aborted before. */
export type Within = <T>(signal: AbortSignal, work: () => Promise<T>) => Promise<T>

/** Child runs that a crash, or a pause, left behind. */
export interface Forgotten {
  /** Those that the state named when the run went on. */
  readonly named: readonly string[]
  /** The log is asked for more: after a crash, no state names them. */
  readonly isAfterCrash: boolean
  /** Calls that have not ended keep theirs. */
  readonly isPaused: boolean
}

/** A child run under way. */
export interface StartedChild {
  readonly abort: RunAbort
  readonly outcome: Promise<HarnessResult<unknown>>
}

/** A run that a call leaves: it begins once the call has succeeded. */
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
