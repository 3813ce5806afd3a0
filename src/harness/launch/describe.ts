import { withoutCredentials } from '#util/secrets.js'
import type { Config } from '../config.js'
import type { Offer } from '#core/loop/run-plan.js'
import type { ModelSettings } from '#core/model-session.js'
import { outputSchemaOf } from '#run/output/output-form.js'
import type { JsonSchema } from '#util/json.js'
import type { RunLimits } from '#contracts/limits.js'
import type { SubagentSpec } from '#toolbox/agents/subagent-options.js'
import { missingRoot, sandboxWarning } from './harness-resources.js'
import type { SandboxState } from '#toolbox/sandbox/sandbox.js'
import type { SandboxMode, ToolAnnotations, ToolReach, ToolSource, ToolSpec } from '#core/tools/tool-spec.js'

/** The runs of a harness, as data; `String(description)` is the same for people. Contains names of secrets, no secrets. */
export interface HarnessDescription {
  /** `provider:id`, or the reference; null if none was chosen. */
  readonly model: string | null
  /** Absolute path of the workspace. */
  readonly root: string
  /** As they were set, without what tools, skills and extensions add; empty if there are none. */
  readonly instructions: string
  readonly settings: ModelSettings
  /** JSON schema of the answer; null if it is text. */
  readonly output: JsonSchema | null
  readonly tools: readonly ToolDescription[]
  readonly servers: readonly ServerDescription[]
  /** Agents that tasks can be handed to. */
  readonly agents: readonly AgentDescription[]
  /** Events that hooks are asked at: they may refuse and change calls. */
  readonly hooks: readonly string[]
  /** The sandbox of the tools that start programs; null if no tool wants one. */
  readonly sandbox: SandboxDescription | null
  readonly budgets: RunLimits & { readonly toolRetries: number; readonly outputRetries: number }
  /** Problems that were found, such as a server that could not be reached. */
  readonly warnings: readonly string[]
  toString(): string
}

export interface AgentDescription {
  readonly name: string
  /** Its tools, without those of its servers; null for those of the run that calls it. */
  readonly tools: readonly ToolDescription[] | null
  /** Ids of its own servers, which are connected when its first run needs them. */
  readonly servers: readonly string[]
}

export interface SandboxDescription {
  /** `none`: this machine has no sandbox. See `docs/sandbox.md`. */
  readonly form: 'bubblewrap' | 'namespaces' | 'none'
  /** Why there is none; else null. */
  readonly problem: string | null
}

export interface ToolDescription {
  readonly name: string
  readonly description: string
  /** `package`: comes with thinharness, by name. `own`: given to the harness. `server`: offered by one. */
  readonly from: 'package' | 'own' | 'server'
  /** Id of the server that offers it; null for others. */
  readonly server: string | null
  /** The approval of a call by a person; `by_arguments`: decided for each call. */
  readonly approval: 'never' | 'always' | 'by_arguments'
  /** A policy or a grant can allow calls for which `approval` asks. */
  readonly approvalCanBeLifted: boolean
  readonly annotations: ToolAnnotations
  /** The resources that its code can touch, as declared by its author; null if undeclared, which means anything. */
  readonly reach: ToolReach | null
  /** How the programs that it starts are confined; null if it does not say so. */
  readonly sandbox: SandboxMode | null
  readonly timeoutMs: number | null
  /** It is not listed to the model, which finds it by search. Absent for others. */
  readonly deferred?: true
}

export interface ServerDescription {
  readonly id: string
  readonly required: boolean
  /** How many tools it offers. */
  readonly tools: number
}

/** The parts that were loaded for a description. */
interface Found {
  readonly offer: Offer
  readonly sources: readonly ToolSource[]
  readonly warnings: readonly string[]
  readonly sandbox: SandboxState | null
}

/** Describes the runs that begin now. */
export function describeHarness(
  config: Config<unknown>,
  own: readonly ToolSpec[],
  { offer, sources, warnings, sandbox }: Found,
): HarnessDescription {
  const missing = [missingRoot(config), sandboxWarning(offer.tools, config.sandbox, sandbox)]
  const { model, root, instructions, settings, outputType, extensions, limits, toolRetries, outputRetries } = config
  const servers = sources.map(({ id, required }, index) => ({ id, required, tools: offer.servers[index] ?? [] }))
  const serverOf = new Map(servers.flatMap(({ id, tools }) => tools.map((tool) => [tool, id])))
  const described = {
    model: typeof model === 'string' ? withoutCredentials(model) : model && `${model.provider}:${model.id}`,
    root,
    instructions,
    settings,
    output: outputType === null ? null : outputSchemaOf(outputType),
    tools: offer.tools.map((tool) =>
      toolDescription(tool, { server: serverOf.get(tool) ?? null, isOwn: own.includes(tool), mode: config.sandbox }),
    ),
    servers: servers.map((server) => ({ ...server, tools: server.tools.length })),
    agents: (config.subagents ?? []).map((agent) => agentDescription(agent, config.sandbox)),
    hooks: extensions.hooks.events,
    sandbox: sandbox && { form: sandbox.form, problem: sandbox.problem ?? null },
    budgets: { ...limits, toolRetries, outputRetries },
    warnings: [...warnings, ...missing.filter((text) => text !== null)],
  }
  // For people; not compared or stored.
  Object.defineProperty(described, 'toString', { value: () => descriptionText(described), enumerable: false })
  return described
}

function agentDescription(
  { name, mcpServers, tools = mcpServers ? [] : 'inherit' }: SubagentSpec,
  mode: SandboxMode,
): AgentDescription {
  return {
    name,
    tools: tools === 'inherit' ? null : tools.map((tool) => toolDescription(tool, { server: null, isOwn: true, mode })),
    servers: (mcpServers ?? []).map(({ id }) => id),
  }
}

function toolDescription(
  tool: ToolSpec,
  { server, isOwn, mode }: { readonly server: string | null; readonly isOwn: boolean; readonly mode: SandboxMode },
): ToolDescription {
  const { name, description, requiresApproval = false, annotations = {}, reach = null, timeoutMs = null } = tool
  const approval = typeof requiresApproval === 'function' ? 'by_arguments' : requiresApproval ? 'always' : 'never'
  const from = server !== null ? 'server' : isOwn ? 'own' : 'package'
  const sandbox = tool.sandbox === 'harness' ? mode : (tool.sandbox ?? null)
  const approvalCanBeLifted = requiresApproval !== 'always'
  return {
    ...{ name, description, from, server, approval, approvalCanBeLifted, annotations, reach, sandbox, timeoutMs },
    ...(tool.deferred === true && { deferred: true }),
  }
}

function descriptionText(described: Omit<HarnessDescription, 'toString'>): string {
  const { model, root, output, tools, servers, agents, hooks, sandbox, budgets, warnings } = described
  return [
    `model     ${model ?? 'none'}`,
    `root      ${onOneLine(root)}`,
    ...(output === null ? [] : [`answer    ${onOneLine(JSON.stringify(output))}`]),
    `budgets   ${Object.entries(budgets).map(budgetText).join(', ')}`,
    `hooks     ${hooks.join(', ') || 'none'}`,
    ...(sandbox === null ? [] : [`sandbox   ${sandbox.form}`]),
    ...servers.map(({ id, required, tools: count }) => {
      return `server    ${onOneLine(id)}: ${count} tools${required ? ', required' : ''}`
    }),
    ...warnings.map((warning) => `warning   ${onOneLine(warning)}`),
    ...(tools.length === 0 ? ['tools     none'] : tools.flatMap((tool) => toolLines(tool))),
    ...agents.flatMap(({ name, tools: own, servers: ownServers }) => [
      `agent     ${name}${own === null ? ': the tools of the run that calls it' : ''}`,
      ...ownServers.map((id) => `server    ${onOneLine(id)}: of this agent, connected by its first run`),
      ...(own ?? []).flatMap((tool) => toolLines(tool)),
    ]),
  ].join('\n')
}

function toolLines(tool: ToolDescription): readonly string[] {
  return [`tool      ${onOneLine(tool.name)}: ${toolText(tool)}`, ...reachLines(tool)]
}

function budgetText([name, value]: [string, number | null]): string {
  return `${name} ${value ?? 'unlimited'}`
}

function toolText({ from, server, approval, annotations, sandbox, timeoutMs, deferred }: ToolDescription): string {
  const hints = Object.entries(annotations).flatMap(([hint, holds]) => (holds === true ? [hint] : []))
  const time = timeoutMs === null ? [] : [`at most ${timeoutMs} ms`]
  const origin = server === null ? from : `${from} ${onOneLine(server)}`
  const confined = sandbox === null ? [] : [CONFINED[sandbox]]
  const found = deferred === true ? ['found by search'] : []
  return [origin, APPROVAL[approval], ...hints, ...confined, ...time, ...found].join(', ')
}

const CONFINED = {
  auto: 'in the sandbox if there is one',
  required: 'in the sandbox',
  off: 'without a sandbox',
} as const

const APPROVAL = {
  never: 'without approval',
  always: 'with approval',
  by_arguments: 'with approval by its arguments',
} as const

function reachLines({ reach }: ToolDescription): readonly string[] {
  if (reach === null) return ['          reach: not declared']
  return Object.entries(reach).flatMap(([kind, names]: [string, readonly string[] | undefined]) =>
    names === undefined || names.length === 0 ? [] : [`          ${kind} ${names.map(onOneLine).join(', ')}`],
  )
}

/** On one line: a tool name of a server cannot add lines. */
function onOneLine(text: string): string {
  return text.replace(/\p{C}+|\s+/gu, ' ')
}
