import type { RequestConstants } from '#core/model-session.js'
import type { RunUsage } from '#contracts/result.js'
import { TOKEN_FIELDS } from '#contracts/entry.js'
import type { TokenUsage } from '#contracts/entry.js'
import type { TracedRun } from '#core/extension/tracing.js'
import { parseJson, isObject } from '#util/json.js'
import type { CapturedContent, Identity } from './options.js'
import { ATTRIBUTE, CONTENT, OPERATION, OWN, ADDED } from './names.js'
import type { Attributes, EventOf, SpanError } from './spans.js'

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

export function modelAttributes({
  provider,
  model,
}: {
  readonly provider: string
  readonly model: string
}): Attributes {
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
  const parsed = parseJson(output)
  const envelope = parsed.ok && isObject(parsed.value) ? parsed.value : {}
  const metadata = isObject(envelope['metadata']) ? envelope['metadata'] : {}
  const { agent, tool_mode: toolMode, tools } = metadata
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
