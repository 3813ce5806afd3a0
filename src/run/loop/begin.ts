import { RunSetup } from '../core/plan.js'
import type { FreshOpening } from '../core/plan.js'
import type { Ending } from './driver.js'
import { addedByHooks, askStart, drive, prepare, startedBy, tracedRun } from './start.js'
import type { Conducted } from './start.js'

/** Begins a run with a prompt. */
export async function begin(run: Conducted, { prompt, history }: FreshOpening): Promise<Ending> {
  const { context, plan } = run
  const { conversation, start } = await context.fromLog(history())
  context.prepareDeps(context.metadata)
  context.tracer?.open(() => tracedRun(context, plan, null))
  context.openExtensions(null)
  const prepared = await prepare(run, null)
  context.inherit(conversation)
  await context.emit('run_started', { begun: 'fresh', prompt, ...startedBy(run, prepared), ...start })
  context.signal.throwIfAborted()
  await askStart(run, prompt, prepared.rules)
  const addition = await addedByHooks(context, prompt)
  return drive(run, await RunSetup.open(context, plan, prepared), addition)
}
