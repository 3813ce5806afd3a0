import type { RequestConstants } from '../../contracts/model.js'
import type { ToolSpec } from '../../tools/spec.js'
import type { RunContext } from '../core/context.js'
import type { RunPlan } from '../core/plan.js'
import { configDigest } from '../machine/config-digest.js'
import type { ConfigDigest } from '../machine/config-digest.js'
import type { Frozen, Offer } from '../core/frozen.js'
import type { Prepared } from './start.js'

/** Loads what a run is frozen with. Only what servers offer can be others later, at a turn boundary. */
export async function freeze(
  context: RunContext,
  plan: RunPlan,
  { model, output, rules, spending }: Prepared,
): Promise<Frozen> {
  const { settings, input, deltas, sequential, root, policies, readAnswer, refreshOffer } = plan
  let offer = await plan.loadOffer(context.signal)
  let told = toldOf(offer)
  const refresh = async (now: AbortSignal): Promise<void> => {
    const offered = (await refreshOffer?.(now, offer)) ?? offer
    if (offered === offer) return
    offer = offered
    told = toldOf(offer)
  }
  const frozen: Frozen = {
    ...{
      model,
      session: model.openSession(),
      output,
      spending,
      input,
      deltas,
      sequential,
      root,
      policies: [...policies, ...context.seams.policies],
      readAnswer,
    },
    marks: plan.marksFor(rules),
    get tools() {
      return told.tools
    },
    get constants() {
      return told.constants
    },
    get config() {
      return told.config
    },
    refresh: refreshOffer === null ? null : refresh,
    startChild: (parent, callId, start) => plan.startChild(parent, frozen, { callId, start }),
  }
  return frozen

  function toldOf(now: Offer): Told {
    const { tools: specs } = now
    const definitions = specs.map(({ name, description, parameters }) => ({ name, description, parameters }))
    const constants: RequestConstants = plan.constants ?? {
      instructions: joined([plan.instructionsFor(now), output?.instructions ?? '']),
      tools: [...definitions, ...(output?.tool ? [output.tool] : [])],
      structuredOutput: output?.request ?? null,
      settings,
    }
    const tools = new Map(specs.map((spec) => [spec.name, spec]))
    return { constants, tools, config: configDigest(constants, specs, rules.limits) }
  }
}

interface Told {
  readonly constants: RequestConstants
  readonly tools: ReadonlyMap<string, ToolSpec>
  readonly config: ConfigDigest
}

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n\n')
}
