export { Harness } from './harness/harness.js'
export { withDeps } from './harness/harness.js'
export type { HarnessDescription } from './harness/launch/describe.js'
export type { BuiltinToolName, HarnessOptions, Prompt, ResumeOptions, RunOptions } from './harness/options.js'
export type { Limits } from './contracts/limits.js'
export { Budget } from './run/money/budget.js'
export type { Prices } from './run/money/find-price.js'
export { HarnessError, ModelRetry } from './contracts/errors.js'
export type { HarnessErrorCode } from './contracts/errors.js'
export type {
  HarnessResult,
  PendingItem,
  ResumeState,
  RunReport,
  StopReason,
  ToolCallRecord,
} from './contracts/result.js'
export type { RunUsage } from './contracts/run-usage.js'

export { callTool } from './harness/call-tool.js'
export { defineTool } from './core/tools/define-tool.js'
export { ToolResult } from './core/tools/tool-result.js'
export type { ToolOptions } from './core/tools/tool-options.js'
export type { Envelope } from './core/tools/boundary/envelope.js'
export type { Schema } from './schema/schema.js'
export type { ChildRun, SpawnOptions, ToolContext, ToolOutcome, ToolSource, ToolSpec } from './core/tools/tool-spec.js'
export type { Validation } from './schema/argument-issues.js'

export type { Answer } from './core/state/answers.js'
export type { DurableEvent, RunEvent, StreamEvent } from './core/state/events.js'
export { newOwner } from './util/platform/owner.js'
export { fileLog } from './store/file-log.js'
export { compression } from './store/codec/compression.js'
export { encryption } from './store/codec/encryption.js'
export { rekey } from './store/codec/rekey.js'
export type { Hook, HookContext } from './core/extension/hooks.js'
export type { HookEvent } from './core/extension/hooks.js'
export { trusted } from './contracts/trusted.js'
export type { History } from './run/resume/parse-history.js'
export { inputPort } from './harness/input-port.js'
export type { InputPort } from './core/stream/input.js'
export type {
  AppendOptions,
  FollowOptions,
  LogDigest,
  LogEvent,
  LogStore,
  ReadOptions,
  RunLog,
} from './core/log/log.js'
export type { ProvenanceOptions } from './run/provenance/options.js'
export { memoryLog } from './store/memory-log.js'
export { priceRun } from './run/money/price-run.js'
export type { HarnessStream } from './core/stream/stream.js'
export type { RunStatus, RunSummary } from './core/log/run-summary.js'
export { MEMORY_THREADS } from './core/log/ref.js'
export type { LogRef } from './core/log/ref.js'
export type { WrapModelCall, WrapToolCall } from './core/extension/wraps.js'
export { defineExtension } from './core/extension/extension.js'
export type { Extension } from './core/extension/extension.js'
export type { Notice } from './core/extension/context.js'
export type { Decision, Policy } from './core/extension/policy-decision.js'
export type { Tracing } from './core/extension/run-tracer.js'
export type { ProposedChange, ViewContext, ViewPolicy } from './core/extension/view-policy.js'

export type {
  Model,
  ModelCapabilities,
  ModelDelta,
  ModelSession,
  ModelSettings,
  ModelToolCall,
  ModelTurn,
  RequestConstants,
  ToolDefinition,
  TransportRetry,
  TurnOptions,
} from './core/model-session.js'
export type { ModelRef } from './contracts/model-reference.js'
export { resultForModel, textOf, toolCallsOf } from './contracts/entry.js'
export { fromMessages } from './run/messages/from-messages.js'
export type {
  AssistantEntry,
  AssistantPart,
  ContentPart,
  FinishReason,
  NativePart,
  TokenUsage,
  TranscriptEntry,
} from './contracts/entry.js'
export { evidence } from './schema/evidence.js'
export type { OutputType } from './core/tools/output-type.js'
export type { JsonObject, JsonSchema, JsonValue } from './util/json.js'
