import { readlink, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { parse } from '#contracts/parse.js'
import { sourcesIn } from '#run/provenance/flows.js'
import type { Decision, Policy, PolicyCall, PolicyContext } from '#core/extension/policy-decision.js'
import type { Extension } from '#core/extension/extension.js'
import type { ToolAnnotations, ToolReach, ToolSpec } from '#core/tools/tool-spec.js'
import {
  anything,
  boolean,
  either,
  filledString,
  functionOf,
  jsonObject,
  list,
  nullable,
  object,
  oneOf,
  optional,
  partial,
  string,
} from '#util/validate.js'
import { pathsToFollow, callSubject, categoryOf } from './call-subject.js'
import type { DescribedCall } from './call-subject.js'
import { decideCall, compiledRule } from './decide-call.js'
import type { Explanation, Ruling, CompiledRule } from './decide-call.js'
import { checkedRules, grant } from './rule.js'
import type { Rule } from './rule.js'

/** Options of a policy. */
export interface PolicyOptions {
  /** Name of the extension, for events; two policies of a run need two names. Default `policy`. */
  readonly name?: string | undefined
  /**
   * The decision about a call if no policy has an opinion. Of several policies with a default, the strictest counts.
   * Default: none, so the tool's `requiresApproval` decides.
   */
  readonly default?: 'allow' | 'ask' | 'deny' | undefined
  /**
   * Reports the decision about each call and changes nothing: `true` records it in the log of the run, a function is called with
   * it. Default false.
   */
  readonly shadow?: boolean | ((report: ShadowReport) => void) | undefined
}

/** The decision that a policy in shadow mode would have made. */
export interface ShadowReport {
  readonly runId: string
  readonly callId: string
  readonly toolName: string
  /** Null: no opinion. */
  readonly decision: 'allow' | 'ask' | 'deny' | null
  /** Name of the rule that decided; null if none did. */
  readonly rule: string | null
  readonly step: Explanation['step']
  readonly reason: string | null
}

/** A policy as a value for `use`. */
export interface PolicyExtension extends Extension {
  readonly policy: NonNullable<Extension['policy']>
  /** Its rules, in order. */
  readonly rules: readonly Rule[]
  /** A new policy with the same options that has these rules, such as grants, after its own. */
  extend(rules: readonly Rule[]): PolicyExtension
}

const OPTIONS = partial<PolicyOptions>({
  name: filledString,
  default: oneOf('allow', 'ask', 'deny'),
  shadow: either(boolean, functionOf<(report: ShadowReport) => void>()),
})

/**
 * An extension that allows calls, asks a person about them, or denies them, by rules.
 * @throws HarnessError `invalid_options` with the index of the rule and the field.
 * @example
 * new Harness({ model, use: [policy([{ decision: 'deny', path: '**\/.env' }], { default: 'ask' })] })
 */
export function policy(rules: readonly Rule[], options: PolicyOptions = {}): PolicyExtension {
  const judge = new Judge(checkedRules(rules))
  const { name = 'policy', default: otherwise = null, shadow = false } = parse(OPTIONS, options, '`policy`')
  const decideByRules: Policy = async (call, spec, context) =>
    policyDecision(await judge.ruling(call, spec, context), otherwise)
  const extension: Extension & Pick<PolicyExtension, 'policy'> =
    shadow === false ? { name, policy: decideByRules } : { name, ...inShadow(judge, shadow) }
  const own: Pick<PolicyExtension, 'rules' | 'extend'> = {
    rules: judge.rules,
    extend: (more) => policy([...rules, ...more], options),
  }
  // An extension has no members but those that the harness knows.
  return Object.freeze(withHidden(extension, own))
}

/** Decides about the calls of runs. */
class Judge {
  readonly rules: readonly Rule[]
  readonly #compiled: readonly CompiledRule[]
  readonly #readsPaths: boolean
  readonly #readsSources: boolean

  constructor(rules: readonly Rule[]) {
    this.rules = rules
    this.#compiled = rules.map(compiledRule)
    this.#readsPaths = rules.some(({ path }) => path !== undefined)
    this.#readsSources = rules.some(({ source }) => source !== undefined)
  }

  async ruling(call: PolicyCall, spec: ToolSpec, context: PolicyContext): Promise<Ruling> {
    const { annotations, reach, pathFields, metadata } = spec
    const { root, agentName, transcript } = context
    const described: DescribedCall = {
      ...{ tool: call.name, args: call.args, annotations, reach, pathFields, metadata, root },
      requiresApproval: await approvalFor(call, spec, context),
      agent: agentName,
      sources: this.#readsSources ? sourcesIn(call.arguments, transcript) : [],
    }
    const links = this.#readsPaths ? await resolveLinks(pathsToFollow(described, root)) : undefined
    return decideCall(this.#compiled, callSubject(described, links))
  }
}

/** The members of a policy that only reports. */
function inShadow(
  judge: Judge,
  report: true | ((report: ShadowReport) => void),
): Pick<PolicyExtension, 'policy' | 'forRun'> {
  const watchByRules =
    (send: (made: ShadowReport) => unknown): Policy =>
    async (call, spec, context) => {
      const { decision, by, step, reason } = await judge.ruling(call, spec, context)
      const { runId } = context
      await send({
        ...{ runId, callId: call.callId, toolName: call.name, decision, step, reason },
        rule: by?.name ?? null,
      })
      return null
    }
  if (report !== true) return { policy: watchByRules(report) }
  return { policy: () => null, forRun: ({ record }) => ({ policy: watchByRules(record) }) }
}

function withHidden<Shown extends object, Hidden extends object>(shown: Shown, hidden: Hidden): Shown & Hidden {
  const names = Object.keys(hidden) as (keyof Hidden)[]
  return Object.defineProperties(
    shown,
    Object.fromEntries(names.map((name) => [name, { value: hidden[name] }])),
  ) as Shown & Hidden
}

/**
 * The decision of rules about a call, and the rule that decided. It knows no default, and follows no links.
 * @throws HarnessError `invalid_options` with the index of the rule and the field.
 */
export function explain(rules: readonly Rule[], call: DescribedCall): Explanation {
  checkedRules(rules)
  const { decision, by, step } = decideCall(rules.map(compiledRule), callSubject(parse(CALL, call, 'the call')))
  return { decision, rule: by?.rule ?? null, step }
}

const names = list(string, 'a list of names')

const CALL = object<DescribedCall>({
  tool: filledString,
  args: optional(jsonObject),
  annotations: optional(anything<ToolAnnotations>()),
  reach: optional(anything<ToolReach>()),
  pathFields: optional(names),
  requiresApproval: optional(oneOf(true, false, 'always')),
  metadata: optional(jsonObject),
  sources: optional(names),
  agent: optional(nullable(string)),
  root: optional(string),
})

/** A rule of a tool that cannot decide is no permission. */
async function approvalFor(
  { args, callId }: PolicyCall,
  { requiresApproval: rule = false }: ToolSpec,
  { runId, metadata }: PolicyContext,
): Promise<boolean | 'always'> {
  if (typeof rule !== 'function') return rule
  try {
    return await rule(args, { runId, callId, metadata })
  } catch {
    // No rule without conditions lifts that.
    return 'always'
  }
}

function policyDecision({ decision, by, reason }: Ruling, otherwise: 'allow' | 'ask' | 'deny' | null): Decision | null {
  if (decision !== null) return { decision, reason: reason ?? undefined, rule: by?.name }
  return otherwise === null ? null : { decision: otherwise, isDefault: true }
}

const MOST_PATHS = 200
const MOST_LINKS = 40

/** The paths behind the links of these absolute paths; of one that does not exist, as far as it does. */
async function resolveLinks(paths: Iterable<string>): Promise<ReadonlyMap<string, string>> {
  const links = new Map<string, string>()
  const wanted = [...new Set(paths)].slice(0, MOST_PATHS)
  await Promise.all(wanted.map(async (path) => links.set(path, await behindLinks(path, MOST_LINKS))))
  return links
}

async function behindLinks(path: string, most: number): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const folder = dirname(path)
    if (folder === path || most === 0) return path
    const parent = await behindLinks(folder, most - 1)
    const here = join(parent, basename(path))
    // A link to something that does not exist yet.
    const target = await readlink(here).catch(() => null)
    return target === null ? here : behindLinks(resolve(parent, target), most - 1)
  }
}

/**
 * The grant for a call that a person allowed once and for all: of its tool, or of all tools of its category. Null for the category
 * `other`, which says nothing about a tool.
 */
export function grantFor(call: DescribedCall, scope: 'tool' | 'category'): Rule | null {
  if (scope === 'tool') return grant({ tool: call.tool })
  const category = categoryOf({ ...call, name: call.tool })
  return category === 'other' ? null : grant({ category })
}
