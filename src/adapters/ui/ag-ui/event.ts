import type { JsonValue } from '#util/json.js'
import type { AgUiMessage, AgUiMetadata, AgUiPart } from './message.js'

/** The version of the protocol in which streams are written. */
export const AG_UI_VERSION = '1.0'

/** Tokens of one model in a stretch. Counts that the provider did not give are absent. */
export interface AgUiUsage {
  readonly provider?: string
  readonly model?: string
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly totalTokens?: number
  readonly reasoningTokens?: number
  readonly cachedInputTokens?: number
  readonly cacheWriteInputTokens?: number
}

/** A person has to answer this before the thread continues. */
export interface AgUiInterrupt {
  /** The id that an entry of `resume` names. */
  readonly id: string
  /** `tool_call`: an approval; `input_required`: a question; `thinharness:unknown_outcome`: what became of a call. */
  readonly reason: string
  readonly message?: string
  readonly toolCallId?: string
  /** JSON Schema of the payload of the answer. */
  readonly responseSchema?: Readonly<Record<string, unknown>>
  /** The child run that asks. */
  readonly subagentRunId?: string
  readonly metadata?: AgUiMetadata
}

export type AgUiOutcome =
  | { readonly type: 'success'; readonly pendingToolCallIds?: readonly string[] }
  | { readonly type: 'interrupt'; readonly interrupts: readonly AgUiInterrupt[] }
  | { readonly type: 'cancelled' }

interface Base {
  readonly metadata?: AgUiMetadata
}

interface OfSubagent extends Base {
  /** The child run to which the event belongs; absent for the run itself. */
  readonly subagentRunId?: string
}

/** Members of each type of event that is written here. */
interface Payloads {
  RUN_STARTED: Base & { readonly threadId: string; readonly runId: string; readonly protocolVersion: string }
  RUN_FINISHED: Base & {
    readonly threadId: string
    readonly runId: string
    readonly result?: JsonValue
    readonly outcome: AgUiOutcome
    readonly usage?: readonly AgUiUsage[]
  }
  RUN_ERROR: Base & { readonly message: string; readonly code: string; readonly usage?: readonly AgUiUsage[] }
  STATE_SNAPSHOT: Base & { readonly snapshot: unknown }
  MESSAGES_SNAPSHOT: Base & { readonly messages: readonly AgUiMessage[] }
  STEP_STARTED: OfSubagent & { readonly stepName: string }
  STEP_FINISHED: OfSubagent & { readonly stepName: string }
  TEXT_MESSAGE_START: OfSubagent & { readonly messageId: string; readonly role: 'assistant' | 'user' }
  TEXT_MESSAGE_CONTENT: OfSubagent & { readonly messageId: string; readonly delta: string }
  TEXT_MESSAGE_END: OfSubagent & { readonly messageId: string }
  REASONING_START: OfSubagent & { readonly messageId: string }
  REASONING_MESSAGE_START: OfSubagent & { readonly messageId: string; readonly role: 'reasoning' }
  REASONING_MESSAGE_CONTENT: OfSubagent & { readonly messageId: string; readonly delta: string }
  REASONING_MESSAGE_END: OfSubagent & { readonly messageId: string }
  REASONING_END: OfSubagent & { readonly messageId: string }
  TOOL_CALL_START: OfSubagent & {
    readonly toolCallId: string
    readonly toolCallName: string
    readonly parentMessageId: string
  }
  TOOL_CALL_ARGS: OfSubagent & { readonly toolCallId: string; readonly delta: string }
  TOOL_CALL_END: OfSubagent & { readonly toolCallId: string }
  TOOL_CALL_RESULT: OfSubagent & {
    readonly messageId: string
    readonly toolCallId: string
    readonly content: string | readonly AgUiPart[]
    readonly role: 'tool'
  }
  ACTIVITY_SNAPSHOT: OfSubagent & {
    readonly messageId: string
    readonly activityType: string
    readonly content: Readonly<Record<string, unknown>>
  }
  CUSTOM: OfSubagent & { readonly name: string; readonly value: unknown }
  SUBAGENT_STARTED: Base & {
    readonly subagentRunId: string
    readonly name: string
    readonly parentSubagentRunId?: string
    readonly parentToolCallId?: string
  }
  SUBAGENT_FINISHED: Base & {
    readonly subagentRunId: string
    readonly outcome:
      { readonly type: 'success' } | { readonly type: 'suspended'; readonly interruptIds?: readonly string[] }
  }
  SUBAGENT_ERROR: Base & { readonly subagentRunId: string; readonly message: string; readonly code: string }
}

/** An event of AG-UI 1.0, of the types that are written here. */
export type AgUiEvent = {
  [Type in keyof Payloads]: { readonly type: Type } & Payloads[Type]
}[keyof Payloads]

export type AgUiEventOf<Type extends AgUiEvent['type']> = Extract<AgUiEvent, { readonly type: Type }>

/** An event as server-sent event. */
export function encodeAgUi(event: AgUiEvent): string {
  return `data: ${JSON.stringify(event)}\n\n`
}
