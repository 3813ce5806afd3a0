import type { RunStatus, RunSummary, ThreadSummary } from './run-summary.js'
import type { LogKind, LogRef } from './ref.js'
import type { Labels } from '../state/labels.js'

export interface ListOptions<Kind extends LogKind = LogKind> {
  /** Default: runs. */
  readonly kind?: Kind | undefined
  /** Only runs with this status, or one of these. Default: all. */
  readonly status?: RunStatus | readonly RunStatus[] | undefined
  /** Only runs that this one's tools started; null: only those at the top. Default: all. */
  readonly parentRunId?: string | null | undefined
  /** Only runs with this `metadata.resourceId`, or threads with this `resourceId` in their digest. Default: all. */
  readonly resourceId?: string | undefined
  /** Only runs that have all of these labels. Default: all. */
  readonly labels?: Labels | undefined
  /**
   * In the order of their last append, those at the top and those that tools started: only logs with one after this `cursor` of a
   * summary; null: from the beginning. Whatever is appended while, or after, a list is read comes after all cursors of that list, or
   * is in it: whoever passes the last cursor again and again misses none. Default: newest first.
   */
  readonly changedAfter?: string | null | undefined
  /** Only logs that come after this one in the list. Pass the last one of a page for the next page. */
  readonly before?: ListPlaces[Kind] | undefined
}

/** The fields that give a run's place in a list. */
export type ListPlace = Pick<RunSummary, 'startedAt' | 'runId'>

export interface ListPlaces {
  readonly run: ListPlace
  readonly thread: Pick<ThreadSummary, 'updatedAt' | 'threadId'>
}

/** How many runs `waiting` gives. */
export interface WaitingOptions {
  /** Default 100. */
  readonly limit?: number | undefined
  /** Of each tenant, by the label `tenant`; runs without one count as those of one tenant. Default: no limit. */
  readonly perTenant?: number | undefined
}

/** At least one of `olderThanMs`, `keep` and `only`. A run is removed if all of them allow it. */
export interface PruneOptions {
  /** Only runs whose last event is older than this, in ms. */
  readonly olderThanMs?: number | undefined
  /** Keeps this many of the newest runs; runs that tools started are not counted. */
  readonly keep?: number | undefined
  /** Statuses that are removed in addition to those of ended runs. Default: none. A running or queued run is never removed. */
  readonly also?: readonly ('paused' | 'interrupted')[] | undefined
  /** Only these logs, whatever their status, unless a process owns them or they are queued. The only way to remove a thread. */
  readonly only?: readonly LogRef[] | undefined
  /**
   * Logs that this owner has claimed are removed as if nobody owned them; its claims of removed logs end. None is removed if somebody
   * else owns one of them.
   */
  readonly owner?: string | undefined
}
