import type { Model, ModelSession, ModelTurn, ToolDefinition } from '../index.js'

/** Names for what the core's contracts speak of, derived from the contracts themselves. */
export type TranscriptEntry = Parameters<ModelSession['turn']>[0][number]
export type AssistantPart = ModelTurn['entry']['parts'][number]
export type ContentPart = (TranscriptEntry & { role: 'user' })['content'][number]
export type FinishReason = ModelTurn['finishReason']
export type TokenUsage = ModelTurn['usage']
export type Capabilities = Model['capabilities']
export type JsonObject = ToolDefinition['parameters']
