import { OPTIONAL_BUDGETS } from '#contracts/limits.js'
import type { BudgetOptions } from '#contracts/limits.js'
import { invalidOptions, parse } from '#contracts/parse.js'
import type { InferOutput } from '#core/tools/output-type.js'
import type { ChildHistory, SpawnOptions, ToolSource, ToolSpec } from '#core/tools/tool-spec.js'
import type { Schema } from '#schema/schema.js'
import { isObject } from '#util/json.js'
import type { JsonSchema } from '#util/json.js'
import { Mismatch, shownValue } from '#util/mismatch.js'
import {
  anything,
  boolean,
  either,
  functionOf,
  having,
  integer,
  list,
  matching,
  object,
  oneOf,
  optional,
  partial,
  string,
} from '#util/validate.js'
import type { Complete, Fields, Shape } from '#util/validate.js'

/** The options of a subagent that its child runs get. */
type AgentRun<Output> = Pick<
  SpawnOptions<Output>,
  | 'instructions'
  | 'tools'
  | 'mcpServers'
  | 'model'
  | 'settings'
  | keyof BudgetOptions
  | 'outputType'
  | 'outputMode'
  | 'outputValidator'
  | 'outputRetries'
  | 'toolRetries'
>

/** An agent that the model can hand a task to, by name. `defineSubagent` types its `outputValidator` by its `outputType`. */
export interface SubagentSpec<Output = unknown> extends AgentRun<Output> {
  /** 1 to 64 letters, digits, `_`, `-` or `.`; not `default`. */
  readonly name: string
  /** Its purpose: one line, for the model that chooses. */
  readonly description: string
  /**
   * `inherit`: the tools of the run that calls it, without `subagent` if no further run may be started. Required, also for an
   * agent without tools (`[]`), unless its `history` is `fork` or it has `mcpServers`.
   */
  readonly tools?: NonNullable<SpawnOptions['tools']> | undefined
  /**
   * The part of the caller's conversation that its runs begin with. `inherit`: all of it, with the agent's own tools, instructions
   * and model. `fork`: all of it, with the caller's tools, instructions and model. `{ tokens }`: the latest and most relevant entries within so many tokens, by an
   * estimate, quoted before the task. Default `none`.
   */
  readonly history?: ChildHistory | undefined
  /** Its runs under one calling run take turns: for agents that write to the same files. Default false. */
  readonly exclusive?: boolean | undefined
  /** A call does not wait for its run; the answer is sent to the calling run as a message. Default false. */
  readonly background?: boolean | undefined
}

/** The agent of calls without a name: it has the tools of the run that calls it. */
export type DefaultSubagent = Omit<AgentRun<unknown>, 'tools'> &
  Pick<SubagentSpec, 'exclusive' | 'background' | 'history'>

/** The options of `subagent`. */
export interface SubagentOptions {
  /** Default: only the default agent. */
  readonly agents?: readonly SubagentSpec[] | undefined
  /** Options of the default agent; `false`: there is none, every call names an agent. */
  readonly defaultAgent?: DefaultSubagent | false | undefined
  /** The depth to which subagents may start subagents: 1 (default), only the top run starts them. */
  readonly maxDepth?: number | undefined
  /** Runs that one run may have in progress at once; further calls wait. Default 8. */
  readonly maxConcurrent?: number | undefined
}

export const CHILD_HISTORY: Shape<ChildHistory> = either(
  oneOf('none', 'inherit', 'fork'),
  object<{ readonly tokens: number }>({ tokens: integer(100) }),
)

const RUN_FIELDS: Fields<DefaultSubagent> = {
  instructions: optional(string),
  mcpServers: optional(
    list(having<ToolSource>('a server, made by `mcpStdio` and the like', 'tools'), 'a list of servers'),
  ),
  model: optional(anything()),
  settings: optional(anything()),
  ...OPTIONAL_BUDGETS,
  outputType: optional(anything()),
  outputMode: optional(anything()),
  outputValidator: optional(functionOf()),
  outputRetries: optional(integer(0)),
  toolRetries: optional(integer(0)),
  history: optional(CHILD_HISTORY),
  exclusive: optional(boolean),
  background: optional(boolean),
}

const agentName = matching(/^[\w.-]{1,64}$/, '1 to 64 letters, digits, `_`, `-` or `.`')

const AGENT = object<SubagentSpec>({
  ...RUN_FIELDS,
  name: agentName,
  description: matching(/^(?=.*\S).*$/, 'one line that is not empty'),
  // A tool's name is not enough: a subagent gets the tools that its host passes.
  tools: optional(either(oneOf('inherit'), list(having<ToolSpec>('a tool', 'call'), 'a list of tools'))),
})

const OPTIONS = partial<SubagentOptions>({
  agents: list(anything<SubagentSpec>()),
  defaultAgent: either(oneOf(false), object<DefaultSubagent>(RUN_FIELDS)),
  maxDepth: integer(1),
  maxConcurrent: integer(1),
})

const DEFAULTS = { defaultAgent: {}, maxDepth: 1, maxConcurrent: 8 }

/** A copy with defaults. Throws `invalid_options`. */
export function parseSubagentOptions(options: SubagentOptions): Complete<SubagentOptions> {
  const parsed = parse(OPTIONS, options, '`subagent`')
  const agents = parseSubagents(parsed.agents ?? [])
  if (parsed.defaultAgent === false && agents.length === 0) {
    throw invalidOptions('Without a default agent `agents` must name some.')
  }
  return { ...DEFAULTS, ...parsed, agents }
}

/** A copy of the agents. Throws `invalid_options`, naming the agent and its problem. */
export function parseSubagents(given: unknown): readonly SubagentSpec[] {
  if (!Array.isArray(given)) throw invalidOptions(`Expected the subagents to be a list, got ${shownValue(given)}.`)
  const agents = (given as readonly unknown[]).map(parseSubagent)
  const names = agents.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined)
    throw invalidOptions(`Two subagents have the name \`${twice}\`; each needs a name of its own.`)
  return agents
}

function parseSubagent(given: unknown): SubagentSpec {
  const known = agentName.read(isObject(given) ? given['name'] : undefined)
  const label = known instanceof Mismatch ? 'a subagent' : `subagent \`${known}\``
  const agent = parse(AGENT, given, label)
  const { name, tools, mcpServers, history } = agent
  const isFork = history === 'fork'
  if (name === 'default') throw invalidOptions('`default` is the name of the agent that a call gets if it names none.')
  if (isFork && mcpServers !== undefined) throw invalidOptions(`With \`fork\` ${label} has its caller's servers.`)
  if (isFork && tools !== undefined) throw invalidOptions(`With \`fork\` ${label} has its caller's tools.`)
  if (!isFork && tools === undefined && mcpServers === undefined) {
    throw invalidOptions(`Expected \`tools\` of ${label} to be a list of tools or \`inherit\`, got nothing.`)
  }
  return agent
}

/** Makes agents, their checks typed by their `outputType`. */
export interface DefineSubagent {
  <const Type extends JsonSchema | readonly Schema[]>(
    agent: SubagentSpec<NoInfer<InferOutput<Type>>> & { readonly outputType: Type },
  ): SubagentSpec
  <Output = string>(agent: SubagentSpec<Output>): SubagentSpec
}

/**
 * An agent for `subagents`, and for `subagent` of `thinharness/tools`. Only needed to type an `outputValidator`.
 * @throws HarnessError `invalid_options`, naming the problem.
 */
export const defineSubagent: DefineSubagent = (agent: SubagentSpec): SubagentSpec => {
  parseSubagents([agent])
  return agent
}
