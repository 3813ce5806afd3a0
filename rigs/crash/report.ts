import type { RunUsage, ToolCallRecord } from 'thinharness'
import type { Kill } from './kill.js'

/** Exit code of a process that has closed its harness. */
export const CLOSED = 3

/** The work of one process of the rig: JSON, as its argument. */
export interface Job {
  readonly store: string
  /** Folder of the store, or address of its database. */
  readonly place: string
  readonly runId: string
  readonly seed: number
  readonly counterPath: string
  readonly kill?: Kill | undefined
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
  /** Kind of the last event. */
  readonly end: string | null
  readonly calls: readonly CallReport[]
  /** Ids of the runs that it started in the background. */
  readonly background: readonly string[]
  readonly reported: readonly { readonly runId: string; readonly ok: boolean }[]
  readonly reportRequests: number
}

export interface CallReport {
  /** The idempotency key. */
  readonly key: string
  readonly toolName: string
  readonly ok: boolean
  readonly errorType: string | null
}
