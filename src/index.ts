export { Harness } from './harness/typed-harness.js'
export { withDeps } from './harness/with-deps.js'
export type { AppEntryPoints, AppHarnessConstructor } from './harness/with-deps.js'
export type { HarnessConstructor } from './harness/typed-harness.js'
export type { BatchProgress, MapOptions, MappedRow, RowMapper, RowRun } from './harness/map.js'
export type { AgentDescription, HarnessDescription, ServerDescription, ToolDescription } from './harness/describe.js'
export type {
  BuiltinToolName,
  DepsFactory,
  DepsOption,
  ForkOptions,
  HarnessOptions,
  Prompt,
  ReplayOptions,
  ResumeOptions,
  CloseOptions,
  RunOptions,
} from './harness/options.js'
export type { ContentFlow } from './contracts/flows.js'
export type { Limits, RunLimits, StallOptions, StallRules } from './contracts/limits.js'
export { Budget } from './money/budget.js'
export type { BudgetSettings } from './money/budget.js'
export type { Price, PriceTier, Rates } from './money/price.js'
export type { Prices } from './money/prices.js'
export { HarnessError, ModelRetry } from './contracts/errors.js'
export type { HarnessErrorCode } from './contracts/errors.js'
export type {
  CompletedResult,
  PausedResult,
  HarnessResult,
  OtherCall,
  PendingItem,
  ResumeState,
  RunReport,
  ModelUsage,
  RunUsage,
  StopReason,
  ToolCallRecord,
} from './contracts/result.js'

export { callTool } from './tools/call-tool.js'
export type { CalledTool, CallToolOptions } from './tools/boundary/call.js'
export type { Ask } from './tools/ask.js'
export { defineTool } from './tools/define.js'
export { ToolResult } from './tools/result.js'
export type { ToolSourceHost } from './tools/source.js'
export type { ToolResultFields } from './tools/result.js'
export type { ToolOptions } from './tools/tool-options.js'
export type { ToolOutcome } from './tools/outcome.js'
export type { Envelope } from './tools/boundary/envelope.js'
export type { InferSchema, Schema } from './schema/schema.js'
export type {
  ApprovalContext,
  BackgroundLine,
  ChildRun,
  EarlierResult,
  Reconciliation,
  ChildHistory,
  SpawnOptions,
  ToolAnnotations,
  ToolContext,
  ToolReach,
  ToolSource,
  LongOutput,
  SavedOutput,
  ToolSpec,
} from './tools/spec.js'
export type { ArgumentIssue, Validation } from './schema/validation.js'

export type { Answer, ApprovalAnswer, DeclinedAnswer, QuestionAnswer, Verdict } from './run/machine/answers.js'
export type {
  DurableEvent,
  EphemeralEvent,
  RequestKind,
  RunEvent,
  RunEventKind,
  StreamEvent,
} from './run/machine/events.js'
export type { ConfigPolicy } from './run/machine/config-digest.js'
export type { ForkEffects, ForkPoint } from './run/replay/fork.js'
export type { SigningKey } from './run/core/signature.js'
export { newOwner } from './run/log/owner.js'
export { fileLog } from './store/file-log.js'
export type { FileLogOptions } from './store/file-log.js'
export type { Hook, HookContext } from './run/extension/hooks.js'
export type { HookAnswers, HookContexts, HookEvent } from './run/extension/hooks.js'
export type { ChildReference, StoredChild } from './run/machine/child-state.js'
export type { History, HistoryReference } from './run/resume/given-history.js'
export { inputPort } from './run/stream/input.js'
export type { IdentifiedMessage, InputMessage, InputPort } from './run/stream/input.js'
export type { ListOptions, ListPlace, PruneOptions } from './run/log/listing.js'
export type {
  AppendOptions,
  FollowOptions,
  LogDigest,
  LogEvent,
  LogStore,
  Post,
  ReadOptions,
  RunLog,
} from './run/log/log.js'
export type { ProvenanceOptions, ProvenanceRule } from './run/provenance/options.js'
export { memoryLog } from './store/memory-log.js'
export type { MemoryLogOptions } from './store/memory-log.js'
export { priceRun } from './run/loop/price-run.js'
export type { RunPrice } from './run/loop/price-run.js'
export type { Breach } from './run/machine/limits.js'
export type { LimitKind, RunRules } from './run/machine/rules.js'
export type { RunParent } from './run/machine/state.js'
export type { HarnessStream } from './run/stream/stream.js'
export type { LogSummaries, RunDigest, RunStatus, RunSummary, ThreadSummary } from './run/log/digest.js'
export { MEMORY_THREADS } from './run/log/ref.js'
export type { LogKind, LogRef } from './run/log/ref.js'
export type { ModelCall, ToolCall, WrapModelCall, WrapToolCall } from './run/extension/wraps.js'
export { defineExtension } from './run/extension/extension.js'
export type { Extension, ExtensionRun, RunMembers } from './run/extension/extension.js'
export type { ExtensionContext } from './run/extension/context.js'
export type { Notice, NoticeSource } from './run/extension/context.js'
export type { Decision, Policy, PolicyCall, PolicyContext } from './run/extension/policy.js'
export type { RunTrace, TracedRun, TraceScope, Tracing } from './run/extension/tracing.js'
export type {
  PaidCompaction,
  Preparation,
  ProposedChange,
  ViewContext,
  ViewPolicy,
  ViewProposal,
} from './run/extension/view.js'

export type {
  CacheBust,
  Compaction,
  Model,
  ModelCapabilities,
  ModelDelta,
  ModelSession,
  ModelSettings,
  ModelToolCall,
  ModelTurn,
  ReasoningEffort,
  RequestConstants,
  StructuredOutputMode,
  StructuredOutputRequest,
  ToolChoice,
  ToolDefinition,
  TransportRetry,
  TurnOptions,
} from './contracts/model.js'
export type { ModelRef } from './contracts/model-reference.js'
export { resultForModel, textOf, toolCallsOf } from './contracts/entry.js'
export { fromMessages } from './contracts/from-messages.js'
export type {
  AssistantEntry,
  AssistantPart,
  ContentPart,
  ContentSource,
  FailureMark,
  FinishReason,
  NativePart,
  OpaquePart,
  ReasoningPart,
  TextPart,
  TokenUsage,
  ToolCallPart,
  ToolEntry,
  TranscriptEntry,
  UserEntry,
} from './contracts/entry.js'
export type { TranscriptRepair } from './contracts/mend.js'
export { evidence } from './schema/evidence.js'
export type { Resolution } from './output/resolve.js'
export type { InferOutput, OutputContext, OutputType, OutputValidator } from './tools/output-type.js'
export type { CallEvidence, Evidence, FileEvidence, RowEvidence } from './tools/evidence.js'
export type { JsonInput, JsonObject, JsonSchema, JsonValue } from './util/json.js'
