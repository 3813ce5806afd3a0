import { HarnessError, messageOf } from '../../contracts/errors.js'
import type { DurableEvent } from '../machine/events.js'
import type { ListOptions, PruneOptions } from './listing.js'
import type { RunSummary } from './summary.js'

/**
 * Where the durable events of runs are kept. The harness calls `append` on the very object that it was given, one call
 * at a time for each run, with events numbered without gaps.
 */
export interface RunLog {
  /**
   * Resolved = kept. Must reject, and keep nothing, when `events` do not follow the last one that it has, and with
   * `run_owned` when somebody other than `owner` has claimed the run, or nobody has and there is an `owner`. Who loses
   * the run while an append is under way may be refused although it was kept: who took over has it then.
   */
  append(runId: string, events: readonly DurableEvent[], owner?: string): Promise<void>
  /** The events of a run with `seq >= from` (default 1), in order; nothing for a run that it does not know. */
  read(runId: string, from?: number): AsyncIterable<DurableEvent>
  /**
   * Makes `owner` the only one who may append to the run, for `ttlMs` from now on; again, to stay it longer. False when
   * the run is another's, whose time is not over and whose process is not known to have ended. 0 ms gives it back.
   * Whose time is over stays the owner until somebody else claims the run.
   */
  claim?(runId: string, owner: string, ttlMs: number): Promise<boolean>
}

/** A log that can also be looked through and tidied: all that come with this package are. */
export interface RunStore extends RunLog {
  claim(runId: string, owner: string, ttlMs: number): Promise<boolean>
  /** A run in short; null for one that it does not know. Changes nothing. */
  inspect(runId: string): Promise<RunSummary | null>
  /** The runs in short, newest first (by `startedAt`, then by id). Changes nothing. */
  list(options?: ListOptions): AsyncIterable<RunSummary>
  /** Removes the logs of runs that have ended; resolves to how many. */
  prune(options: PruneOptions): Promise<number>
}

/**
 * The number of the last of `events`, which must follow `lastSeq` without gaps. A run that is resumed from a stored
 * state goes on in a log that has not seen its beginning: behind 0 comes anything.
 */
export function lastSeqOf(runId: string, lastSeq: number, events: readonly DurableEvent[]): number {
  let last = lastSeq
  for (const { seq } of events) {
    if (last !== 0 && seq !== last + 1) throw doesNotFollow(runId, last, seq)
    last = seq
  }
  return last
}

/** The refusal of events that do not follow the last one: of a second run of one id, where they begin anew. */
function doesNotFollow(runId: string, lastSeq: number, seq: number): HarnessError {
  const message = `The log of run \`${runId}\` ends with event ${lastSeq}: it does not take event ${seq}.`
  return new HarnessError(seq === 1 ? 'run_exists' : 'store_failure', message)
}

/** The refusal of an append by anybody but the run's owner. */
export function ownedByAnother(runId: string, owner: string | undefined): HarnessError {
  const message =
    owner === undefined
      ? `Run \`${runId}\` has been claimed: only its owner may append to its log.`
      : `Run \`${runId}\` is not, or no longer, claimed by \`${owner}\`: it may not append to its log.`
  return new HarnessError('run_owned', message)
}

/** What a store rejects with when it could not do `what`: `thrown` itself where that says enough already. */
export function storeFailure(what: string, thrown: unknown): HarnessError {
  if (thrown instanceof HarnessError) return thrown
  return new HarnessError('store_failure', `The log could not ${what}: ${messageOf(thrown)}`, { cause: thrown })
}

/** Refuses owners and times that are none. */
export function checkClaim(owner: unknown, ttlMs: unknown): void {
  if (typeof owner !== 'string' || owner === '') {
    throw new HarnessError('invalid_options', 'Expected the owner of a claim to be a text that is not empty.')
  }
  if (typeof ttlMs === 'number' && ttlMs >= 0 && ttlMs < 2 ** 31) return
  const message = `Expected the time of a claim to be a number of ms from 0 up, got \`${String(ttlMs)}\`.`
  throw new HarnessError('invalid_options', message)
}
