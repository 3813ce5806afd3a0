import { objectSchema } from '#util/json.js'
import { HarnessError } from '#contracts/errors.js'
import { plainJson } from '#util/plain-json.js'
import type {
  BackgroundLine,
  SpawnOptions,
  ToolContext,
  ToolOutcome,
  ToolReach,
  ToolSpec,
} from '#core/tools/tool-spec.js'
import type { JsonObject } from '#util/json.js'
import { Slots } from '#util/queue/slots.js'
import { parseSubagentOptions } from './subagent-options.js'
import type { DefaultSubagent, SubagentOptions, SubagentSpec } from './subagent-options.js'

const NAME = 'subagent'

interface SubagentArguments {
  readonly task: string
  readonly agent?: string
}

/** An agent, ready for calls. */
interface Agent extends Omit<SubagentSpec, 'description'> {
  readonly tools: NonNullable<SpawnOptions['tools']>
}

/**
 * `subagent`: runs a task in a child run, and returns its answer to the model. Events, usage, budgets and pending items of the
 * child run are nested in those of the calling run; after a crash or a pause it continues.
 * @throws HarnessError `invalid_options`.
 */
export function subagent(options: SubagentOptions = {}): ToolSpec {
  const { agents, defaultAgent, maxDepth, maxConcurrent } = parseSubagentOptions(options)
  const named = new Map<string, Agent>(agents.map((agent) => [agent.name, agentOfSpec(agent)]))
  if (defaultAgent !== false) named.set('default', defaultAgentSpec(defaultAgent))
  const slots = new Slots(maxConcurrent)
  const exclusive = new Slots(1)
  return {
    name: NAME,
    description: toolDescription(agents, defaultAgent),
    parameters: toolParameters(defaultAgent !== false),
    onUnknownOutcome: 'retry',
    ...agentsReach(defaultAgent === false ? agents : [...agents, defaultAgent]),
    async call(args, context) {
      const { task, agent: name = 'default' } = args as unknown as SubagentArguments
      const agent = named.get(name)
      if (agent === undefined) return unknownAgent(name, [...named.keys()])
      if (context.depth >= maxDepth) return tooDeep(name, maxDepth)
      const line: BackgroundLine = {
        within(parentRunId, signal, work) {
          const run = () => slots.within(parentRunId, signal, work)
          return agent.exclusive === true ? exclusive.within(parentRunId, signal, run) : run()
        },
      }
      const delegation = { agent, options: spawnOptionsOf(agent, task, { context, maxDepth }), context }
      if (agent.background === true) return taskOutcome(delegation, () => startInBackground(delegation, line))
      return line.within(context.runId, context.signal, () => taskOutcome(delegation, () => runToEnd(delegation)))
    },
  }
}

/** The reach of the agents' own tools; undeclared if one of these tools declares none. */
function agentsReach(agents: readonly Pick<SubagentSpec, 'tools' | 'mcpServers'>[]): { readonly reach?: ToolReach } {
  // The tools of servers are not known yet.
  if (agents.some(({ mcpServers = [] }) => mcpServers.length > 0)) return {}
  const own = agents.flatMap(({ tools = 'inherit' }) => (tools === 'inherit' ? [] : tools))
  if (own.some(({ reach }) => reach === undefined)) return {}
  const all = (kind: keyof ToolReach): readonly string[] => [
    ...new Set(own.flatMap(({ reach }) => reach?.[kind] ?? [])),
  ]
  const kinds = ['reads', 'writes', 'hosts', 'programs', 'secrets'] as const
  return { reach: Object.fromEntries(kinds.flatMap((kind) => (all(kind).length === 0 ? [] : [[kind, all(kind)]]))) }
}

interface Delegation {
  readonly agent: Agent
  readonly options: SpawnOptions<unknown>
  readonly context: ToolContext
}

async function runToEnd({ agent, options, context }: Delegation): Promise<ToolOutcome> {
  const run = context.spawn<unknown>(options)
  const { text, output, usage } = await run.result
  const structured = typeof output !== 'string'
  return {
    kind: 'succeeded',
    content: structured ? JSON.stringify(plainJson(output)) : text,
    metadata: {
      ...aboutAgent(agent),
      run_id: run.runId,
      model_requests: usage.modelRequests,
      structured_output: structured,
    },
  }
}

async function startInBackground(
  { agent, options, context }: Delegation,
  background: BackgroundLine,
): Promise<ToolOutcome> {
  const { runId } = context.spawn<unknown>({ ...options, background })
  return {
    kind: 'succeeded',
    content: `Started as ${runId}. It works in the background; its report arrives as a message.`,
    metadata: { ...aboutAgent(agent), run_id: runId, background: true },
  }
}

/** The outcome of a task for the model, including failures. */
async function taskOutcome({ agent, context }: Delegation, work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await work()
  } catch (error) {
    // A pause must not be caught, and a cancelled call needs no outcome.
    if (!(error instanceof HarnessError) || context.signal.aborted) throw error
    const isRejected = error.code === 'cancelled_by_hook' && error.run === undefined
    const errorType = isRejected ? 'SubAgentCancelled' : error.code
    return { kind: 'failed', errorType, content: error.message, retry: false, metadata: aboutAgent(agent) }
  }
}

function spawnOptionsOf(
  agent: Agent,
  task: string,
  { context, maxDepth }: { readonly context: ToolContext; readonly maxDepth: number },
): SpawnOptions<unknown> {
  const { name, tools, instructions, exclusive: _, background: __, ...run } = agent
  const { conversation_id: conversationId } = context.metadata
  const shared = {
    prompt: task,
    agentName: name,
    metadata: {
      parent_call_id: context.callId,
      ...(conversationId !== undefined && { conversation_id: conversationId }),
    },
    ...run,
  }
  if (agent.history === 'fork') return shared
  if (tools !== 'inherit') return { ...shared, tools, ...(instructions !== undefined && { instructions }) }
  return {
    ...shared,
    tools,
    instructions: `${instructions ?? INSTRUCTIONS}\n\nWorkspace root: ${context.root}`,
    ...(context.depth + 1 >= maxDepth && { withoutTools: [NAME] }),
  }
}

const INSTRUCTIONS = `You are a subagent: you work on one task for another agent, which reads only your final answer.
Complete the task with the tools you have. You cannot ask questions. End with a short answer: what you found or changed.`

function agentOfSpec({ description: _, ...agent }: SubagentSpec): Agent {
  return { ...agent, tools: agent.tools ?? (agent.mcpServers === undefined ? 'inherit' : []) }
}

function defaultAgentSpec(agent: DefaultSubagent): Agent {
  return { ...agent, name: 'default', tools: 'inherit' }
}

function aboutAgent(agent: Agent): JsonObject {
  return { agent: agent.name, tool_mode: toolModeOf(agent) }
}

function toolModeOf({ history, tools }: Agent): string {
  if (history === 'fork') return 'fork'
  return tools === 'inherit' ? 'inherited' : 'explicit'
}

function unknownAgent(name: string, available: readonly string[]): ToolOutcome {
  const names = [...available].sort()
  return {
    kind: 'failed',
    errorType: 'UnknownSubAgent',
    content: `There is no subagent \`${name.slice(0, 100)}\`. Available: ${names.join(', ')}.`,
    retry: false,
    metadata: { agent: name.slice(0, 100), available: names },
  }
}

function tooDeep(name: string, maxDepth: number): ToolOutcome {
  const content =
    maxDepth === 1
      ? 'A subagent cannot start subagents: do this task yourself.'
      : `Subagents can be nested at most ${maxDepth} deep: do this task yourself.`
  return { kind: 'failed', errorType: 'TooDeep', content, retry: false, metadata: { agent: name } }
}

function toolDescription(agents: readonly SubagentSpec[], defaultAgent: DefaultSubagent | false): string {
  const isInBackground = defaultAgent !== false && defaultAgent.background === true
  const general = `Omit \`agent\` for a general subagent with your own tools${isInBackground ? BACKGROUND : ''}.`
  return [
    'Delegate one self-contained task to a subagent, which works on it alone and returns its answer. It knows only the task, not this conversation, unless it is a fork. Independent tasks can be delegated together.',
    ...(agents.length === 0 ? [] : ['Subagents:', ...agents.map(agentLine)]),
    ...(defaultAgent !== false && (agents.length > 0 || isInBackground) ? [general] : []),
    ...(isInBackground || agents.some(({ background }) => background === true) ? [REPORTS] : []),
  ].join('\n')
}

function agentLine({ name, description, history, background = false }: SubagentSpec): string {
  const known = typeof history === 'object' ? 'parts of this conversation' : 'this conversation'
  const knows = (history ?? 'none') === 'none' ? '' : ` (it knows ${known})`
  const mode = `${history === 'fork' ? ' (a fork: it knows this conversation)' : knows}${background ? BACKGROUND : ''}`
  return `- ${name}: ${description}${mode}`
}

const BACKGROUND = ' (in the background)'
const REPORTS =
  'A call of a background subagent only starts it; its report arrives as a message when it has ended. Continue with other work until then, or end your turn to wait for it.'

function toolParameters(hasDefault: boolean): ToolSpec['parameters'] {
  return objectSchema(hasDefault ? ['task'] : ['task', 'agent'], {
    task: { type: 'string', minLength: 1, description: 'The task, with all information that is needed.' },
    agent: {
      type: 'string',
      minLength: 1,
      description: hasDefault ? 'Name of a subagent. Default: a general one.' : 'Name of a subagent.',
    },
  })
}
