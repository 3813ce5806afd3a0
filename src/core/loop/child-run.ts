import type { TranscriptEntry } from '#contracts/entry.js'
import type { HarnessResult, PendingItem } from '#contracts/result.js'
import type { RunUsage } from '#contracts/run-usage.js'
import type { ChildRun, SpawnOptions, ToolOutcome } from '../tools/tool-spec.js'
import type { RunAbort } from '#util/abort.js'
import type { Answer } from '../state/answers.js'
import type { BatchCall } from '../state/batch-call.js'
import type { StoredChild } from '../state/child-state.js'
import type { DurablePayloads } from '../state/events.js'
import type { InputPort } from '../stream/input.js'
import type { Until } from './effects.js'

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

/** The runs of a call that has ended, as its event has them. */
export type UsedRuns = Pick<DurablePayloads['tool_call_completed'], 'childUsage' | 'background'>

/** The call whose runs they are. */
export type ParentCall = Pick<BatchCall, 'callId' | 'name' | 'children' | 'answers'>

/** The runs that one call starts: a port, filled by `run/children`. */
export interface CallRuns {
  /** A run waits for people. */
  readonly isWaiting: boolean
  /** The run above was left, and a run with it. */
  readonly isLeft: boolean
  readonly waiting: readonly PendingItem[]
  readonly states: readonly StoredChild[]
  readonly transcripts: readonly (readonly TranscriptEntry[])[]
  readonly usage: RunUsage | null
  /** Throws `invalid_options` for a key that was used already by this call. */
  spawn<Output>(options: SpawnOptions<Output>, signal: AbortSignal): ChildRun<Output>
  /** The background runs of a call that has succeeded: they may begin. */
  takeLeft(): readonly LeftChild[]
  /** The background runs of a call that has not succeeded will not begin. */
  dropLeft(): void
  usedBy(outcome: ToolOutcome, entered: string): UsedRuns
  /** Waits until no run is in progress. */
  settled(): Promise<void>
  end(): Promise<void>
  endOpen(): Promise<void>
}

/** The background runs of one run, in this process: a port, filled by `run/children`. */
export interface BackgroundRuns {
  begin(callId: string, left: readonly LeftChild[]): void
  /** Reports the runs that have ended, or that ask people. True if there are any. */
  report(until: Until, input: InputPort | null): Promise<boolean>
  end(): Promise<void>
}

/** Where the runs under calls come from. `Context` and `Setup` are those of the run above. */
export interface ChildrenPort<Context, Setup> {
  /** The runs that one call starts. */
  ofCall(context: Context, setup: Setup, call: ParentCall): CallRuns
  inBackground(context: Context, setup: Setup): BackgroundRuns
}
