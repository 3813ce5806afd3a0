import { DeadlinePassed, FileFailure } from './failure.js'
import type { FileCall } from './file-tool.js'
import { callTime } from './call-time.js'
import type { CallTime } from './call-time.js'

/**
 * Looks through folders for at most the time that a search may take.
 * @throws FileFailure `Timeout`; the signal's reason when aborted.
 */
export async function withinTime<T>(
  tool: string,
  { workspace, context }: FileCall<unknown>,
  look: (time: CallTime) => Promise<T>,
): Promise<T> {
  const time = callTime(workspace.limits.searchTimeoutMs / 1000, context.signal)
  try {
    return await look(time)
  } catch (error) {
    if (!(error instanceof DeadlinePassed)) throw error
    const problem = `${tool} timed out after ${time.seconds}s: narrow the path or the pattern`
    throw new FileFailure('Timeout', problem, { metadata: { timeout: time.seconds } })
  }
}
