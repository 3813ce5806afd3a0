import { HarnessError } from '../contracts/errors.js'
import type { SpawnOptions } from './spec.js'
import { isObject } from '../util/json.js'
import { unknownKey } from '../util/unknown-key.js'

/** How a subagent works, as a child run is told it. */
type AgentRun<Output> = Pick<
  SpawnOptions<Output>,
  | 'instructions'
  | 'tools'
  | 'fork'
  | 'model'
  | 'settings'
  | 'limits'
  | 'onLimit'
  | 'stall'
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
  /** What it is good for: one line, for the model that chooses. */
  readonly description: string
  /**
   * `inherit`: the tools of the run that calls it, without `subagent` where no further run may be started. To be said, also
   * where there are none (`[]`), unless it is a `fork`.
   */
  readonly tools?: NonNullable<SpawnOptions['tools']>
  /** Its runs under one calling run take turns: for agents that write to the same files. Default false. */
  readonly exclusive?: boolean
  /** A call does not wait for its run, whose answer comes to the calling run as a message. Default false. */
  readonly background?: boolean
}

/** The agent of a call that names none: it has the tools of the run that calls it. */
export type DefaultSubagent = Omit<AgentRun<unknown>, 'tools'> & Pick<SubagentSpec, 'exclusive' | 'background'>

/** What `subagent` can be told. */
export interface SubagentOptions {
  /** Default: none but the default agent. */
  readonly agents?: readonly SubagentSpec[]
  /** How the default agent works; `false`: there is none, every call names an agent. */
  readonly defaultAgent?: DefaultSubagent | false
  /** How deep subagents may start subagents: 1 (default), only the run at the top starts them. */
  readonly maxDepth?: number
  /** How many runs one run may have under way at once; further calls wait. Default 8. */
  readonly maxConcurrent?: number
}

const RUN_KEYS = [
  ...['instructions', 'fork', 'model', 'settings', 'limits', 'outputType', 'outputMode', 'outputRetries'],
  ...['toolRetries', 'exclusive', 'background', 'outputValidator', 'onLimit', 'stall'],
]

/** @throws HarnessError `invalid_options`, naming what is wrong. */
export function checkSubagentOptions(options: SubagentOptions): void {
  requireKnown(options, ['agents', 'defaultAgent', 'maxDepth', 'maxConcurrent'], 'option of `subagent`')
  const { agents = [], defaultAgent = {}, maxDepth = 1, maxConcurrent = 8 } = options
  checkSubagents(agents)
  if (defaultAgent !== false) requireKnown(defaultAgent, RUN_KEYS, 'member of `defaultAgent`')
  if (defaultAgent === false && agents.length === 0) throw invalid('Without a default agent `agents` must name some.')
  checkWhole('maxDepth', maxDepth)
  checkWhole('maxConcurrent', maxConcurrent)
}

/** @throws HarnessError `invalid_options`, naming the agent and what is wrong with it. */
export function checkSubagents(agents: unknown): void {
  if (!Array.isArray(agents)) throw invalid('Expected the subagents to be a list.')
  for (const agent of agents as readonly unknown[]) checkSubagent(agent)
  const names = (agents as readonly SubagentSpec[]).map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw invalid(`Two subagents have the name \`${twice}\`; each needs a name of its own.`)
}

function checkSubagent(agent: unknown): void {
  if (!isObject(agent)) throw invalid(`Expected a subagent to be an object, got ${typeof agent}.`)
  const { name, description, tools, fork = false } = agent
  if (typeof name !== 'string' || !/^[\w.-]{1,64}$/.test(name)) {
    throw invalid(
      `Expected the name of a subagent to be 1 to 64 letters, digits, \`_\`, \`-\` or \`.\`, got \`${String(name)}\`.`,
    )
  }
  if (name === 'default') throw invalid('`default` is the name of the agent that a call gets that names none.')
  if (typeof description !== 'string' || description.trim() === '' || /[\r\n]/.test(description)) {
    throw invalid(`Expected the \`description\` of subagent \`${name}\` to be one line of text.`)
  }
  requireKnown(agent, ['name', 'description', 'tools', ...RUN_KEYS], `member of subagent \`${name}\``)
  checkBackground(name, agent['background'])
  if (fork === true && tools !== undefined) throw invalid(`With \`fork\` subagent \`${name}\` has its caller's tools.`)
  if (fork === true || tools === 'inherit' || (Array.isArray(tools) && tools.every(isTool))) return
  throw invalid(`Expected \`tools\` of subagent \`${name}\` to be a list of tools or \`inherit\`.`)
}

/** A tool's name is none: a subagent gets what its host hands it, never a tool by name. */
function isTool(tool: unknown): boolean {
  return isObject(tool) && typeof tool['call'] === 'function'
}

function checkBackground(name: string, background: unknown): void {
  if (background === undefined || typeof background === 'boolean') return
  throw invalid(`Expected \`background\` of subagent \`${name}\` to be a boolean, got ${typeof background}.`)
}

function requireKnown(options: unknown, known: readonly string[], what: string): void {
  if (!isObject(options)) throw invalid(`Expected an object with each ${what}, got ${typeof options}.`)
  const unknown = unknownKey(options, known, what)
  if (unknown !== undefined) throw invalid(unknown)
}

function checkWhole(name: string, value: unknown): void {
  if (Number.isSafeInteger(value) && Number(value) >= 1) return
  throw invalid(`Expected \`${name}\` of \`subagent\` to be a whole number from 1 up, got \`${String(value)}\`.`)
}

function invalid(message: string): HarnessError {
  return new HarnessError('invalid_options', message)
}
