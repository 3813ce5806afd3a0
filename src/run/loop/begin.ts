import type { FreshOpening } from '../core/plan.js'
import type { Ending } from './driver.js'
import { freeze } from './freeze.js'
import { askStart, drive, effectivePrompt, prepare, startedBy, timed, tracedRun } from './start.js'
import type { Conducted } from './start.js'

/** Begins a run with a prompt. */
export async function begin(run: Conducted, opening: FreshOpening): Promise<Ending> {
  const { context, plan } = run
  const { prompt } = opening
  const history = typeof opening.history === 'function' ? await opening.history() : opening.history
  context.tracer?.open(() => tracedRun(context, plan, null))
  const prepared = await prepare(run, null)
  await context.emit('run_started', { begun: 'fresh', prompt, ...startedBy(run, prepared), history })
  return timed(run, prepared.rules, async () => {
    await askStart(run, prompt, prepared.rules)
    const content = await effectivePrompt(context, prompt)
    return drive(run, await freeze(context.signal, plan, prepared), content)
  })
}
