import type { RequestConstants } from '../../contracts/model.js'
import type { RunContext } from '../core/context.js'
import type { RunPlan } from '../core/plan.js'
import { configDigest } from '../machine/config-digest.js'
import type { Frozen, Offer } from '../core/frozen.js'
import type { Prepared } from './start.js'

/** Loads everything that a run is frozen with. Only the tools of servers can change later, at a turn boundary. */
export async function freeze(
  context: RunContext,
  plan: RunPlan,
  { model, output, rules, money }: Prepared,
): Promise<Frozen> {
  const { settings, input, deltas, sequential, root, sandbox, policies, readAnswer, refreshOffer } = plan
  const session = model.openSession()
  let offer = await plan.loadOffer(context.signal)
  const { constants, tools, config } = offered(offer)
  // Named one by one: each run needs one, and a spread copy with further members is slow to create.
  const frozen: { -readonly [Member in keyof Frozen]: Frozen[Member] } = {
    model,
    session,
    constants,
    tools,
    output,
    spending: money.spending,
    price: money.price,
    input,
    deltas,
    sequential,
    root,
    sandbox,
    policies: [...policies, ...context.extensions.policies],
    marks: plan.marksFor(rules),
    config,
    startChild: (parent, callId, start) => plan.startChild(parent, frozen, { callId, start }),
    endChild: plan.endChild,
    refresh: refreshOffer === null ? null : refresh,
    readAnswer,
  }
  return frozen

  async function refresh(signal: AbortSignal): Promise<void> {
    const now = (await refreshOffer?.(signal, offer)) ?? offer
    if (now === offer) return
    offer = now
    Object.assign(frozen, offered(offer))
  }

  function offered(now: Offer): Pick<Frozen, 'tools' | 'constants' | 'config'> {
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

function joined(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join('\n\n')
}
