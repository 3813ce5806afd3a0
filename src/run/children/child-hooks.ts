import { HarnessError } from '#contracts/errors.js'
import { NO_USAGE } from '#contracts/run-usage.js'
import type { HarnessResult } from '#contracts/result.js'
import type { RunContext } from '#core/loop/run-context.js'
import type { HookContexts } from '#core/extension/hooks.js'

/** The fields about a child run that its hooks receive. */
export type AboutChild = HookContexts['before_subagent_run']

/** Asks the `before_subagent_run` hooks of the parent. Rejects with `cancelled_by_hook` if one of them blocks the child. */
export async function askBeforeChild(parent: RunContext, about: AboutChild): Promise<void> {
  if (!parent.hasHook('before_subagent_run')) return
  let cancel: string | true | undefined
  await parent.askHooks('before_subagent_run', about, (same, answer) => {
    cancel = answer.cancel
    return cancel === undefined ? same : null
  })
  if (cancel === undefined) return
  const why = cancel === true || cancel === '' ? 'unspecified' : cancel
  throw new HarnessError('cancelled_by_hook', `Subagent execution blocked by hook: ${why}`)
}

/**
 * The outcome of a child, after the `after_subagent_run` hooks of its parent. They are asked about a run that ended in this
 * process, not about one that pauses, was blocked or left, or had ended before.
 */
export async function afterChild<Output>(
  parent: RunContext,
  about: AboutChild,
  { child, outcome }: { readonly child: RunContext; readonly outcome: Promise<HarnessResult<Output>> },
): Promise<HarnessResult<Output>> {
  const [settled] = await Promise.allSettled([outcome])
  const isOver = settled.status === 'rejected' ? !child.abort.isLeft : settled.value.pending.length === 0
  if (isOver && child.hasBegun && parent.hasHook('after_subagent_run')) await askAfterChild(parent, about, settled)
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}

async function askAfterChild(
  parent: RunContext,
  about: AboutChild,
  settled: PromiseSettledResult<HarnessResult<unknown>>,
): Promise<void> {
  const result = settled.status === 'fulfilled' ? settled.value : null
  const error = settled.status === 'rejected' && settled.reason instanceof HarnessError ? settled.reason : null
  const usage = result?.usage ?? error?.run?.usage ?? NO_USAGE
  try {
    await parent.askHooks('after_subagent_run', { ...about, result, error, usage })
  } catch (thrown) {
    // A hook that fails closed ends the run that asks it, not the child alone.
    parent.abort.abort(thrown)
    throw thrown
  }
}
