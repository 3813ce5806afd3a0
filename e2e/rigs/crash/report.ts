import type { RunUsage, ToolCallRecord } from 'thinharness'

/** An append at which a process ends itself, counted from 1. */
export interface Kill {
  readonly at: number
  /** `before` and `after` the append: SIGKILL. `close`: it gets SIGTERM, closes its harness and leaves the run. */
  readonly when: 'before' | 'after' | 'close'
}

/** An append at which the run at the top is cancelled, or after which its next request fails. It is retried then. */
export interface Stop {
  readonly at: number
  readonly how: 'cancel' | 'fail'
}

/** The disturbances of a process; absent ones do not happen. */
export interface Interruption {
  readonly kill?: Kill | undefined
  readonly stop?: Stop | undefined
  /** An append takes so long before it is stored, and again before it resolves. */
  readonly appendMs?: number | undefined
}

/** Exit code of a process that has closed its harness. */
export const CLOSED = 3

/** The work of one process of the rig: JSON, as its argument. */
export interface Job extends Interruption {
  readonly store: string
  /** Folder of the store, or address of its database. */
  readonly place: string
  readonly runId: string
  readonly seed: number
  readonly counterPath: string
}

/** The last line that a process prints: the run has ended. */
export interface Report {
  readonly appends: number
  readonly outcome: Outcome
  /** The outcome as the log has it. */
  readonly recovered: Outcome
  readonly runs: readonly RunReport[]
}

/** The fields of a result that are the same in every run of a scenario. */
export interface Outcome {
  readonly text: string
  readonly output: unknown
  readonly usage: Pick<RunUsage, 'modelRequests' | 'toolCalls' | 'outputRetries' | 'children'>
  readonly records: readonly ToolCallRecord[]
}

/** A run, as its log has it. */
export interface RunReport {
  readonly runId: string
  /** The kinds of its events, in their order; `pause` for a `run_completed` with pending items. */
  readonly kinds: readonly string[]
  readonly calls: readonly CallReport[]
  /** Idempotency keys of the calls that have started. */
  readonly started: readonly string[]
  /** Ids of the runs that it started in the background. */
  readonly background: readonly string[]
  readonly reported: readonly { readonly runId: string; readonly ok: boolean }[]
  readonly reportRequests: number
  /** Null: its log can be replayed, or it is not the run at the top. */
  readonly replayFailure: string | null
}

export interface CallReport {
  /** The idempotency key. */
  readonly key: string
  readonly toolName: string
  readonly ok: boolean
  readonly errorType: string | null
}
