import type { RequestConstants } from '#core/model-session.js'
import type { RunUsage } from '#contracts/run-usage.js'
import { TOKEN_FIELDS } from '#contracts/entry.js'
import type { TokenUsage } from '#contracts/entry.js'
import type { TracedRun } from '#core/extension/run-tracer.js'
import { jsonObjectIn, isObject } from '#util/json.js'
import type { CapturedContent, Identity } from './options.js'
import type { Attributes, EventOf, SpanError } from './span-sink.js'

/**
 * Every name in a trace. They follow the semantic conventions of OpenTelemetry for generative AI of version 1.41, the
 * last one that was released: since then the conventions live in a repository of their own, without a release so far,
 * in which several metrics and `cache_creation` have other names. Names that the conventions do not have begin with
 * `thinharness.`, except for those in `ADDED`.
 */
export const OPERATION = { run: 'invoke_agent', turn: 'chat', tool: 'execute_tool' } as const

export const ATTRIBUTE = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  conversation: 'gen_ai.conversation.id',
  agentName: 'gen_ai.agent.name',
  agentDescription: 'gen_ai.agent.description',
  requestModel: 'gen_ai.request.model',
  maxTokens: 'gen_ai.request.max_tokens',
  temperature: 'gen_ai.request.temperature',
  outputType: 'gen_ai.output.type',
  finishReasons: 'gen_ai.response.finish_reasons',
  responseId: 'gen_ai.response.id',
  responseModel: 'gen_ai.response.model',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
  toolType: 'gen_ai.tool.type',
  toolDescription: 'gen_ai.tool.description',
  tokenType: 'gen_ai.token.type',
  errorType: 'error.type',
} as const

/** Attributes with content: none of them is set unless content is requested. */
export const CONTENT = {
  instructions: 'gen_ai.system_instructions',
  input: 'gen_ai.input.messages',
  output: 'gen_ai.output.messages',
  tools: 'gen_ai.tool.definitions',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
} as const

/** Names in the style of the conventions, for data that these have no name for. */
export const ADDED = {
  totalTokens: 'gen_ai.usage.total_tokens',
  finalized: 'gen_ai.output.finalized',
  subagentName: 'subagent.name',
  subagentToolMode: 'subagent.tool_mode',
  subagentTools: 'subagent.tools',
  mcpServer: 'mcp.server.id',
  mcpTool: 'mcp.tool.name',
} as const

export const OWN = {
  runId: 'thinharness.run.id',
  resumed: 'thinharness.run.resumed',
  stopReason: 'thinharness.run.stop_reason',
  modelRequests: 'thinharness.run.model_requests',
  toolCalls: 'thinharness.run.tool_calls',
  /** US dollars of the run and the runs below it; in the span of a request those of its reply alone. */
  runCost: 'thinharness.run.cost_usd',
  turnCost: 'thinharness.model.cost_usd',
  paused: 'thinharness.approval.paused',
  pendingCallIds: 'thinharness.approval.pending_call_ids',
  requestKind: 'thinharness.model.request.kind',
  notices: 'thinharness.model.notices',
  nativeFinishReason: 'thinharness.model.finish_reason',
  outputMode: 'thinharness.output.mode',
  toolIndex: 'thinharness.tool.index',
  toolCancelled: 'thinharness.tool.cancelled',
  toolErrorType: 'thinharness.tool.error_type',
  /** Why a provider gave no answer. */
  failure: 'thinharness.failure',
  /** Of the policies: `allow`, `ask` or `deny`, and the rule that decided. */
  policyDecision: 'thinharness.policy.decision',
  policyRule: 'thinharness.policy.rule',
} as const

/** Events on spans. */
export const SPAN_EVENT = {
  exception: 'exception',
  exceptionType: 'exception.type',
  exceptionMessage: 'exception.message',
} as const

export const METRIC = {
  tokens: {
    name: 'gen_ai.client.token.usage',
    unit: '{token}',
    description: 'Input and output tokens of a request.',
    boundaries: [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
  },
  duration: {
    name: 'gen_ai.client.operation.duration',
    unit: 's',
    description: 'Time from the start of an operation to its end.',
    boundaries: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  },
  /** The conventions have none; one is proposed (semantic-conventions-genai, pull request 443), for requests alone as here. */
  cost: {
    name: 'thinharness.client.operation.cost',
    unit: '{USD}',
    description: 'Cost of a request, if it is known.',
    boundaries: [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
  },
} as const

/** In a metric, for a tool that was never offered: a model may invent any number of names. */
export const OTHER = '_OTHER'

export function tracedAgentName({ agentName }: TracedRun, identity: Identity): string {
  return agentName === null ? identity.agentName : `subagent.${agentName}`
}

/** The conversation that a run belongs to: stated, or in its metadata. */
export function conversationId({ metadata }: TracedRun, identity: Identity): string | undefined {
  const given = metadata['conversation_id'] ?? metadata['conversationId']
  return identity.conversationId ?? (typeof given === 'string' ? given : undefined)
}

export function runAttributes(run: TracedRun, identity: Identity): Attributes {
  return {
    [ATTRIBUTE.operation]: OPERATION.run,
    [ATTRIBUTE.agentName]: tracedAgentName(run, identity),
    [ATTRIBUTE.agentDescription]: run.agentName === null ? identity.agentDescription : undefined,
    [ATTRIBUTE.conversation]: conversationId(run, identity),
    [OWN.runId]: run.runId,
    [OWN.resumed]: run.resumed ? true : undefined,
  }
}

export function modelAttributes({ provider, model }: Record<'provider' | 'model', string>): Attributes {
  return { [ATTRIBUTE.provider]: provider, [ATTRIBUTE.requestModel]: model }
}

/** Attributes of a request, in addition to its messages. */
export function requestAttributes(constants: RequestConstants | null): Attributes {
  if (constants === null) return {}
  const { settings, structuredOutput } = constants
  return {
    [ATTRIBUTE.maxTokens]: settings.maxOutputTokens,
    [ATTRIBUTE.temperature]: settings.temperature,
    [ATTRIBUTE.outputType]: structuredOutput === null ? undefined : 'json',
  }
}

/** Instructions and tools, if content is captured. */
export function constantContent({ instructions, tools }: RequestConstants, content: CapturedContent): Attributes {
  if (!content.kinds.messages) return {}
  const text = content.redact(instructions, CONTENT.instructions)
  return {
    [CONTENT.instructions]: instructions === '' ? undefined : [{ type: 'text', content: text }],
    [CONTENT.tools]: tools.length === 0 ? undefined : tools.map((tool) => ({ type: 'function', ...tool })),
  }
}

export function replyAttributes(event: EventOf<'model_message'>): Attributes {
  const { entry, nativeFinishReason, responseId, responseModel, finalizedOutputMode } = event
  const finalized = finalizedOutputMode === null ? undefined : true
  return {
    [ATTRIBUTE.responseId]: responseId ?? undefined,
    [ATTRIBUTE.responseModel]: responseModel ?? undefined,
    [ATTRIBUTE.finishReasons]: [entry.finishReason],
    [OWN.nativeFinishReason]: nativeFinishReason ?? undefined,
    ...usageAttributes(entry.usage),
    [OWN.turnCost]: event.cost === undefined ? undefined : inDollars(event.cost),
    [OWN.outputMode]: finalizedOutputMode ?? undefined,
    [ADDED.finalized]: finalized,
  }
}

/** Costs in events are whole micro-dollars. */
export function inDollars(microDollars: number): number {
  return microDollars / 1_000_000
}

function usageAttributes(usage: TokenUsage): Attributes {
  const { inputTokens, outputTokens } = usage
  return {
    ...Object.fromEntries(TOKEN_FIELDS.map((field) => [ATTRIBUTE[field], usage[field] ?? undefined])),
    [ADDED.totalTokens]: inputTokens === null || outputTokens === null ? undefined : inputTokens + outputTokens,
  }
}

export function callAttributes(
  event: EventOf<'tool_call_started' | 'tool_call_completed'>,
  constants: RequestConstants | null,
): Attributes {
  const { callId, toolName, toolIndex } = event
  const decision = event.kind === 'tool_call_started' ? event.decision : undefined
  return {
    [ATTRIBUTE.operation]: OPERATION.tool,
    [ATTRIBUTE.toolName]: toolName,
    [ATTRIBUTE.toolCallId]: callId,
    [ATTRIBUTE.toolType]: 'function',
    [ATTRIBUTE.toolDescription]: constants?.tools.find(({ name }) => name === toolName)?.description,
    [OWN.toolIndex]: toolIndex,
    [OWN.policyDecision]: decision?.decision,
    [OWN.policyRule]: decision?.rule ?? undefined,
  }
}

export function outcomeAttributes(event: EventOf<'tool_call_completed'>, content: CapturedContent): Attributes {
  const { toolName, output, cancelled, errorType, source } = event
  return {
    ...(toolName === 'subagent' && subagentAttributes(output)),
    [OWN.toolCancelled]: cancelled ? true : undefined,
    [OWN.toolErrorType]: errorType ?? undefined,
    [ADDED.mcpServer]: source?.kind === 'server' ? source.name : undefined,
    [ADDED.mcpTool]: source?.kind === 'server' ? source.tool : undefined,
    [CONTENT.toolResult]: content.kinds.toolResults ? content.redactJson(output, CONTENT.toolResult) : undefined,
  }
}

/** The child that ran and its input, from the metadata of the tool's result. */
function subagentAttributes(output: string): Attributes {
  const { metadata } = jsonObjectIn(output)
  const { agent, tool_mode: toolMode, tools } = isObject(metadata) ? metadata : {}
  return {
    [ADDED.subagentName]: typeof agent === 'string' ? agent : undefined,
    [ADDED.subagentToolMode]: typeof toolMode === 'string' ? toolMode : undefined,
    [ADDED.subagentTools]: Array.isArray(tools) ? tools.filter((name) => typeof name === 'string') : undefined,
  }
}

/** The error of a call; null if it succeeded. */
export function callError(event: EventOf<'tool_call_completed'>, content: CapturedContent): SpanError | null {
  const { message } = event
  const type = callErrorType(event)
  if (type === null) return null
  const shown = message !== null && content.kinds.toolResults
  return { type, message: shown ? content.redact(message, CONTENT.toolResult) : null }
}

/** The class of a call's failure: the tool's own if the model may try again, whatever hooks changed. */
export function callErrorType({ ok, cancelled, retryKind, errorType }: EventOf<'tool_call_completed'>): string | null {
  if (ok && retryKind === null) return null
  if (retryKind !== null) return retryKind
  if (cancelled) return 'Cancelled'
  return OWN_TYPES.find((each) => each === errorType) ?? 'ToolExecutionError'
}

const OWN_TYPES = ['ApprovalRejected', 'Timeout'] as const

type RunFailure = Pick<EventOf<'run_failed'>, 'code' | 'errorType' | 'message' | 'failure'>

/** The error of a run. A message that quotes the model is content. */
export function runError({ code, errorType, message, failure }: RunFailure, content: CapturedContent): SpanError {
  const shown = content.kinds.messages || !QUOTES.includes(code)
  const type = code === 'error' && errorType !== 'HarnessError' ? errorType : code
  return { type, message: shown ? content.redact(message, 'exception.message') : null, failure }
}

const QUOTES: readonly string[] = ['unexpected_model_behavior', 'output_validation_failed']

export function endAttributes(stopReason: string, usage: RunUsage): Attributes {
  return {
    [OWN.stopReason]: stopReason,
    [OWN.modelRequests]: usage.modelRequests,
    [OWN.toolCalls]: usage.toolCalls,
    [OWN.runCost]: usage.costUsd ?? undefined,
  }
}
