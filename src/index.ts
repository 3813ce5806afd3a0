export { Harness } from './harness/harness.js'
export { withDeps } from './harness/harness.js'
export type { AppEntryPoints, AppHarnessConstructor } from './harness/harness.js'
export type { HarnessConstructor } from './harness/harness.js'
export type { BatchProgress, MapOptions, MappedRow, RowMapper, RowRun } from './harness/map.js'
export type {
  AgentDescription,
  HarnessDescription,
  ServerDescription,
  ToolDescription,
} from './harness/launch/describe.js'
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
export { Budget } from './run/money/budget.js'
export type { BudgetSettings } from './run/money/budget.js'
export type { Price, PriceTier, Rates } from './run/money/price.js'
export type { Prices } from './run/money/prices.js'
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

export { callTool } from './harness/call-tool.js'
export type { CalledTool, CallToolOptions } from './harness/try-tool.js'
export type { Ask } from './core/tools/ask.js'
export { defineTool } from './core/tools/define.js'
export { ToolResult } from './core/tools/result.js'
export type { ToolSourceHost } from './core/tools/source.js'
export type { ToolResultFields } from './core/tools/result.js'
export type { ToolOptions } from './core/tools/tool-options.js'
export type { ToolOutcome } from './core/tools/outcome.js'
export type { Envelope } from './core/tools/boundary/envelope.js'
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
} from './core/tools/tool-spec.js'
export type { ArgumentIssue, Validation } from './schema/argument-issues.js'

export type { Answer, ApprovalAnswer, DeclinedAnswer, QuestionAnswer, Verdict } from './core/state/answers.js'
export type {
  DurableEvent,
  EphemeralEvent,
  RequestKind,
  RunEvent,
  RunEventKind,
  StreamEvent,
} from './core/state/events.js'
export type { ConfigPolicy } from './core/state/config-digest.js'
export type { ForkEffects, ForkPoint } from './run/replay/fork.js'
export type { SigningKey } from './core/loop/signature.js'
export { newOwner } from './core/log/owner.js'
export { fileLog } from './store/file-log.js'
export type { FileLogOptions } from './store/file-log.js'
export type { Hook, HookContext } from './core/extension/hooks.js'
export type { HookAnswers, HookContexts, HookEvent } from './core/extension/hooks.js'
export type { ChildReference, StoredChild } from './core/state/child-state.js'
export type { History, HistoryReference } from './run/resume/given-history.js'
export { inputPort } from './core/stream/input.js'
export type { IdentifiedMessage, InputMessage, InputPort } from './core/stream/input.js'
export type { ListOptions, ListPlace, PruneOptions } from './core/log/listing.js'
export type {
  AppendOptions,
  FollowOptions,
  LogDigest,
  LogEvent,
  LogStore,
  Post,
  ReadOptions,
  RunLog,
} from './core/log/log.js'
export type { ProvenanceOptions, ProvenanceRule } from './run/provenance/options.js'
export { memoryLog } from './store/memory-log.js'
export type { MemoryLogOptions } from './store/memory-log.js'
export { priceRun } from './run/money/price-run.js'
export type { RunPrice } from './run/money/price-run.js'
export type { Breach } from './core/state/limits.js'
export type { LimitKind, RunRules } from './core/state/rules.js'
export type { RunParent } from './core/state/state.js'
export type { HarnessStream } from './core/stream/stream.js'
export type { LogSummaries, RunDigest, RunStatus, RunSummary, ThreadSummary } from './core/log/digest.js'
export { MEMORY_THREADS } from './core/log/ref.js'
export type { LogKind, LogRef } from './core/log/ref.js'
export type { ModelCall, ToolCall, WrapModelCall, WrapToolCall } from './core/extension/wraps.js'
export { defineExtension } from './core/extension/extension.js'
export type { Extension, ExtensionRun, RunMembers } from './core/extension/extension.js'
export type { ExtensionContext } from './core/extension/context.js'
export type { Notice, NoticeSource } from './core/extension/context.js'
export type { Decision, Policy, PolicyCall, PolicyContext } from './core/extension/policy.js'
export type { RunTrace, TracedRun, TraceScope, Tracing } from './core/extension/tracing.js'
export type {
  PaidCompaction,
  Preparation,
  ProposedChange,
  ViewContext,
  ViewPolicy,
  ViewProposal,
} from './core/extension/view.js'

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
} from './core/model-session.js'
export type { ModelRef } from './contracts/model-reference.js'
export { resultForModel, textOf, toolCallsOf } from './contracts/entry.js'
export { fromMessages } from './run/messages/from-messages.js'
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
export type { Resolution } from './core/state/resolve-turn.js'
export type { InferOutput, OutputContext, OutputType, OutputValidator } from './core/tools/output-type.js'
export type { CallEvidence, Evidence, FileEvidence, RowEvidence } from './core/tools/evidence.js'
export type { JsonInput, JsonObject, JsonSchema, JsonValue } from './util/json.js'
