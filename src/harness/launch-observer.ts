import type { HarnessResult } from '../contracts/result.js'
import type { RunContext } from '../run/core/context.js'
import type { RunEvent } from '../run/machine/events.js'
import type { ReplayedStretch, Stretch } from '../run/replay/replay.js'
import type { OpenRun } from './open-runs.js'
import type { ReplayOptions } from './options.js'

/** A run at the top that has been launched and has not emitted an event yet. */
export interface ObservedLaunch {
  readonly run: OpenRun
  readonly context: RunContext
  readonly outcome: Promise<HarnessResult<unknown>>
  /** Calls `listener` with each event of the run; returns how to stop. */
  readonly listen: (listener: (event: RunEvent) => void) => () => void
  /** Executes a recorded stretch of the run again, with the tools that the harness had at the launch. */
  readonly replay: (stretch: Stretch, options: ReplayOptions) => ReplayedStretch<unknown>
}

type LaunchObserver = (launch: ObservedLaunch) => void

let observer: LaunchObserver | null = null

/** For the tests of this package, which replay every run: reports each launch in this process to `observe`. */
export function observeLaunches(observe: LaunchObserver): void {
  observer = observe
}

export function reportLaunch(launch: ObservedLaunch): void {
  observer?.(launch)
}
