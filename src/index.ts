export { HarnessError, ModelRetry } from './errors.js'
export type { HarnessErrorCode } from './errors.js'
export type {
  CacheBust,
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
} from './model/contracts.js'
