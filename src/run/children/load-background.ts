import type { BackgroundWork } from '../core/background-work.js'
import type { RunContext } from '../core/context.js'
import type { Frozen } from '../core/frozen.js'

/** The runs in the background of a run: few have any, so that the code for it is loaded by the first. */
export async function backgroundOf(context: RunContext, frozen: Frozen): Promise<BackgroundWork> {
  const { BackgroundRuns } = await import('./background.js')
  return (context.background ??= new BackgroundRuns(context, frozen))
}
