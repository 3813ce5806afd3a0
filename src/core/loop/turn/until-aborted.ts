import { settle } from '#util/abort.js'
import type { RunContext } from '../run-context.js'

/** The value of `work`. Rejects when the run is aborted; work that ignores its signal is left alone then. */
export async function untilAborted<T>(context: RunContext, work: () => Promise<T>): Promise<T | undefined> {
  context.signal.throwIfAborted()
  const { value } = await settle(work, { abort: context.abort, timeoutMs: undefined })
  context.signal.throwIfAborted()
  return value
}
