import type { Answer } from '#core/state/answers.js'
import type { Extension } from '#core/extension/extension.js'
import type { HarnessDescription } from '#harness/launch/describe.js'
import type { PendingItem } from '#contracts/result.js'
import type { grant, Rule } from '#extensions/policy/rule.js'
import type { PolicyExtension } from '#extensions/policy/policy.js'
import { isObject, parseJson } from '#util/json.js'
import { SessionError } from '../errors.js'
import type { Grant } from './thread-events.js'
import { requestConditions } from '../tools/ask-people.js'
import type { AccessRequest } from '../tools/ask-people.js'
import { isPayload } from '../tools/result.js'

/** An answer of a person; an approval can be remembered for the rest of the conversation. */
export type ChatAnswer = Answer & {
  /**
   * Allows later calls of the same tool, those of its category, or those that the rule matches. Other items that wait for them are
   * answered too. Never lifts a deny, nor an approval that a tool always needs.
   */
  readonly remember?: 'tool' | 'category' | Rule | undefined
}

/** Name of the extension that applies grants without a policy. */
const GRANTS = 'grants'

type ToolFacts = HarnessDescription['tools'][number]

/** The permissions that people gave in one conversation, and the policy that they extend. */
export class Grants {
  readonly #policy: PolicyExtension | null
  readonly #stored: () => readonly Grant[]
  /** Of answers that are being stored. */
  #coming: readonly Grant[] = []

  constructor(policy: PolicyExtension | null, stored: () => readonly Grant[]) {
    this.#policy = policy
    this.#stored = stored
  }

  get all(): readonly Grant[] {
    return this.#coming.length === 0 ? this.#stored() : [...this.#stored(), ...this.#coming]
  }

  /** Grants of answers, which apply while `work` stores them. */
  async during<T>(grants: readonly Grant[], work: () => Promise<T>): Promise<T> {
    this.#coming = grants
    return work().finally(() => (this.#coming = []))
  }

  /** The policy of a stretch of a run, with the grants as they are at each call. */
  async extensions(): Promise<readonly Extension[]> {
    if (this.#policy === null && this.all.length === 0) return []
    const extended = await this.#extended(this.all)
    // A policy in shadow mode changes nothing.
    if (extended.forRun !== undefined) return [extended]
    let [grants, current] = [this.all, extended]
    const policyWithGrants: PolicyExtension['policy'] = async (...call) => {
      if (grants !== this.all) {
        grants = this.all
        current = await this.#extended(grants)
      }
      return current.policy(...call)
    }
    return [{ name: extended.name, policy: policyWithGrants }]
  }

  /** The grants that answers ask for. `describe`: the harness of the run. Throws a `SessionError`. */
  async of(
    answers: readonly ChatAnswer[],
    pending: readonly PendingItem[],
    describe: () => Promise<readonly ToolFacts[]>,
  ): Promise<readonly Grant[]> {
    const grants: Grant[] = []
    for (const answer of answers) {
      const item = pending.find(({ callId }) => callId === answer.callId)
      const rule = item === undefined ? null : await answeredRule(answer, item, describe)
      if (rule !== null) grants.push({ ...rule, id: rule.id ?? `grant_${answer.callId}` })
    }
    return grants
  }

  /** Approvals of waiting items that are allowed now. */
  async released(
    items: readonly PendingItem[],
    grants: readonly Grant[],
    describe: () => Promise<readonly ToolFacts[]>,
  ): Promise<readonly Answer[]> {
    const askedHere = items.filter((item) => this.#hasAsked(item))
    const rules = [...(this.#policy?.rules ?? []), ...this.all, ...grants]
    if (askedHere.length === 0 || rules.some((rule) => rule.decision === 'ask' && needsRun(rule))) return []
    const { explain } = await import('#extensions/policy/index.js')
    const tools = await describe()
    return askedHere.flatMap((item): Answer[] => {
      const facts = tools.find(({ name }) => name === item.toolName)
      if (facts?.approvalCanBeLifted !== true) return []
      const args = parseJson(item.arguments)
      if (!args.ok || !isObject(args.value)) return []
      const call = { ...describedCall(item, facts), args: args.value, requiresApproval: facts.approval !== 'never' }
      const { decision, rule } = explain(rules, call)
      if (decision !== 'allow' || (rule !== null && needsRun(rule))) return []
      return [{ callId: item.callId, approved: true, by: 'policy' }]
    })
  }

  /** The item waits because of this policy or of the tool itself: no other policy has it asked about, nor a child run. */
  #hasAsked({ kind, path, decision }: PendingItem): boolean {
    if (kind !== 'approval' || path.length > 1) return false
    if (decision === undefined) return true
    return decision.alsoAsked === undefined && decision.extension === (this.#policy?.name ?? GRANTS)
  }

  async #extended(grants: readonly Rule[]): Promise<PolicyExtension> {
    if (this.#policy !== null) return grants.length === 0 ? this.#policy : this.#policy.extend(grants)
    const { policy } = await import('#extensions/policy/index.js')
    return policy(grants, { name: GRANTS })
  }
}

/** Links and the sources of content are known only to the run: a person answers. A rule that denies is asked again there. */
function needsRun({ path, source }: Rule): boolean {
  return path !== undefined || source !== undefined
}

async function answeredRule(
  answer: ChatAnswer,
  item: PendingItem,
  describe: () => Promise<readonly ToolFacts[]>,
): Promise<Rule | null> {
  const access = grantedAccess(answer, item)
  const { remember } = answer
  if (access === null && remember === undefined) return null
  const policies = await import('#extensions/policy/index.js')
  if (access !== null) return policies.grant(requestConditions(access))
  if (remember === undefined) return null
  if (!('approved' in answer) || !answer.approved)
    throw invalidAnswer(`Only an approval can be remembered: the answer to \`${answer.callId}\` is none.`)
  if (typeof remember === 'object') return grantOfRule(remember, policies.grant)
  const facts = remember === 'category' ? (await describe()).find(({ name }) => name === item.toolName) : undefined
  return policies.grantFor(describedCall(item, facts), remember)
}

/** An approved request for access. */
function grantedAccess(answer: ChatAnswer, { toolName, payload }: PendingItem): AccessRequest | null {
  if (toolName !== 'request_access' || !isPayload<AccessRequest>(payload, 'access') || !('answer' in answer))
    return null
  return isObject(answer.answer) && answer.answer['approved'] === true ? payload : null
}

function grantOfRule(rule: Rule, makeGrant: typeof grant): Rule {
  const { decision, grant: _grant, ...conditions } = rule
  if (decision !== 'allow') throw invalidAnswer(`Expected \`remember\` to be a rule that allows, got \`${decision}\`.`)
  return makeGrant(conditions)
}

function describedCall(
  { toolName: tool }: PendingItem,
  facts: ToolFacts | undefined,
): {
  readonly tool: string
  readonly annotations?: ToolFacts['annotations']
  readonly metadata?: { readonly source: string }
} {
  if (facts === undefined) return { tool }
  const { annotations, reach, from } = facts
  return {
    tool,
    annotations,
    ...(reach !== null && { reach }),
    ...(from === 'server' && { metadata: { source: 'mcp' } }),
  }
}

function invalidAnswer(message: string): SessionError {
  return new SessionError('invalid_answer', message)
}
