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
  retry: 'thinharness.transport_retry',
  outputRetry: 'thinharness.model_retry',
  limitWarning: 'thinharness.limit_warning',
  cacheBust: 'thinharness.cache_bust',
  hookFailed: 'thinharness.hook_failed',
  viewChanged: 'thinharness.view_changed',
  viewPrepared: 'thinharness.view_prepared',
  interrupted: 'thinharness.tool_call_interrupted',
  background: 'thinharness.background_reported',
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
