import type { ConfigDigest } from '../state/config-digest.js'
import type { DurablePayloads, RequestKind } from '../state/events.js'
import type { BatchCall } from '../state/batch-call.js'
import type { Unstamped, UserEntry } from '#contracts/entry.js'

/**
 * How long to wait for the other runs that calls of this run have left: take the reports of those that have ended; until one
 * of them ends or asks, or a steering message arrives; until all have ended or ask.
 */
export type Until = 'now' | 'next' | 'all'

/** The effects of the loop: live, or taken from a recording. */
export interface Effects {
  /** The current configuration, before each turn: the tools of servers can change. */
  configure(): Promise<ConfigDigest>
  /** The notices of the host that the next request is to carry; null if there are none, or none that changed. */
  hostNotices(): Promise<HostNotices | null>
  /** Asks the model for the next reply. */
  ask(requestKind: RequestKind): Promise<Reply>
  /** Runs the calls of a batch, up to their outcomes or their questions to people. */
  runTools(calls: readonly BatchCall[]): Promise<void>
  /** Answers the calls of a batch that is over its budget; none of them is run. */
  refuseCalls(calls: readonly BatchCall[]): Promise<void>
  /** Settles calls that had started when the process that ran them ended. */
  settleUnknown(calls: readonly BatchCall[]): Promise<void>
  /** Emits the reports and questions of other runs. True if there were any. */
  takeReports(until: Until): Promise<boolean>
  /** Ends the other runs, and emits their reports. */
  endOthers(): Promise<void>
  /** The run fails: ends all work in progress for it. */
  stop(): Promise<void>
}

/** A reply, and its meaning. */
export interface Reply {
  readonly message: DurablePayloads['model_message']
  /** The answer as the caller's schema parsed it; of a final reply only. */
  readonly value: unknown
}

/** Notices of the host: the entry that carries them, and their names and digests. */
export interface HostNotices {
  readonly entry: Unstamped<UserEntry>
  readonly notices: NonNullable<DurablePayloads['model_request_started']['hostNotices']>
}
