import { decisionOf } from '#core/extension/policy-decision.js'
import { extensionContext } from '#core/loop/run-context.js'
import type { RunRules } from '#core/state/run-rules.js'
import type { RunContext } from '#core/loop/run-context.js'
import type { Offer, RunPlan, ToolOffers } from '#core/loop/run-plan.js'
import type { Model, ToolDefinition } from '#core/model-session.js'
import type { ToolSpec } from '#core/tools/tool-spec.js'

/**
 * The plan with an offer that policies have looked at: no call of a hosted tool is ever admitted, so the tool is left out with a
 * warning unless they allow it. Each is asked about once in a run, with its options as the arguments.
 */
export function withHostedPolicy(plan: RunPlan, context: RunContext): RunPlan {
  const { policies, hasRunMembers } = context.extensions
  const mayHave = plan.offers.own.some(({ hosted }) => hosted !== undefined) || policies.length > 0 || hasRunMembers
  return mayHave ? { ...plan, offers: new PermittedOffers(plan, context) } : plan
}

class PermittedOffers implements ToolOffers {
  readonly canChange: boolean
  readonly #plan: RunPlan
  readonly #context: RunContext
  /** Why a tool is left out, in words; null: it is offered. */
  readonly #decided = new Map<ToolSpec, string | null>()

  constructor(plan: RunPlan, context: RunContext) {
    this.canChange = plan.offers.canChange
    this.#plan = plan
    this.#context = context
  }

  get own(): readonly ToolSpec[] {
    return this.#plan.offers.own
  }

  definitions(tools: Offer['tools'], model: Model): readonly ToolDefinition[] {
    return this.#plan.offers.definitions(tools, model)
  }

  async load(signal: AbortSignal, rules: RunRules): Promise<Offer> {
    return this.#permitted(await this.#plan.offers.load(signal, rules))
  }

  async refresh(signal: AbortSignal, before: Offer): Promise<Offer> {
    const offer = await this.#plan.offers.refresh(signal, before)
    return offer === before ? before : this.#permitted(offer)
  }

  async #permitted(offer: Offer): Promise<Offer> {
    if (!offer.tools.some(({ hosted }) => hosted !== undefined)) return offer
    const tools: ToolSpec[] = []
    const all = new Map(offer.tools.map((spec) => [spec.name, spec]))
    for (const spec of offer.tools) if ((await this.#reasonAgainst(spec, all)) === null) tools.push(spec)
    return { ...offer, tools }
  }

  async #reasonAgainst(spec: ToolSpec, tools: ReadonlyMap<string, ToolSpec>): Promise<string | null> {
    if (spec.hosted === undefined) return null
    const known = this.#decided.get(spec)
    if (known !== undefined) return known
    const { name, requiresApproval = false, hosted } = spec
    const args = hosted.config
    const call = { callId: '', name, arguments: JSON.stringify(args), args }
    const about = { ...extensionContext(this.#context), root: this.#plan.root, tools }
    const decided = await decisionOf(this.#context.extensions.policies, { call, spec }, about)
    const asks = decided === null ? requiresApproval !== false : requiresApproval === 'always'
    const decision = decided === null || decided.decision === 'allow' ? (asks ? 'ask' : 'allow') : decided.decision
    const { reason: why = null } = decided ?? {}
    const because = why === null ? '' : `: ${why}`
    const word = decision === 'ask' ? 'nobody can be asked about its calls' : `a policy denies it${because}`
    const reason = decision === 'allow' ? null : word
    this.#decided.set(spec, reason)
    const what = `The hosted tool \`${name}\` is left out, since ${word}. Its provider would call it within a reply.`
    if (reason !== null) this.#context.emitLive('warning', { message: what })
    return reason
  }
}
