import type { BackgroundWork } from './background-work.js'
import type { RunContext } from './context.js'
import type { Frozen } from './frozen.js'

/** The runs in the background of a run: few have any, so that the code for it is loaded by the first. */
export async function backgroundOf(context: RunContext, frozen: Frozen): Promise<BackgroundWork> {
  const { BackgroundRuns } = await import('./background.js')
  return (context.background ??= new BackgroundRuns(context, frozen))
}
