import type { ProjectionOptions } from '../projection.js'
import type { JsonObject, JsonValue } from '#util/json.js'

/** The version of the AI SDK whose UI message stream is written. */
export type Dialect = (typeof DIALECTS)[number]

export const DIALECTS = [5, 6, 7] as const

/** A part of a person's message. */
export type UiInputPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'file'; readonly mediaType: string; readonly url: string; readonly filename?: string }

export interface ToolChunk {
  readonly toolCallId: string
  readonly toolName: string
  /** Absent for the tools that the page knows by name. */
  readonly dynamic?: true
  readonly title?: string
  readonly providerExecuted?: true
}

/** An item of an AI SDK UI message stream: those types, members and values that its clients know. */
export type UiChunk =
  | { readonly type: 'start'; readonly messageId: string; readonly messageMetadata?: JsonObject }
  | { readonly type: 'start-step' | 'finish-step' | 'reset-step' }
  | { readonly type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | ({ readonly type: 'tool-input-start' } & ToolChunk)
  | { readonly type: 'tool-input-delta'; readonly toolCallId: string; readonly inputTextDelta: string }
  | ({ readonly type: 'tool-input-available'; readonly input: JsonValue } & ToolChunk)
  | ({ readonly type: 'tool-input-error'; readonly input: string; readonly errorText: string } & ToolChunk)
  | {
      readonly type: 'tool-approval-request'
      readonly approvalId: string
      readonly toolCallId: string
      readonly approvalDescriptor?: unknown
      readonly isAutomatic?: true
    }
  | {
      readonly type: 'tool-approval-response'
      readonly approvalId: string
      readonly approved: boolean
      readonly reason?: string
    }
  | {
      readonly type: 'tool-output-available'
      readonly toolCallId: string
      readonly output: unknown
      /** The call has not ended: another output follows. */
      readonly preliminary?: true
      readonly dynamic?: true
      readonly providerExecuted?: true
    }
  | {
      readonly type: 'tool-output-error'
      readonly toolCallId: string
      readonly errorText: string
      readonly dynamic?: true
      readonly providerExecuted?: true
    }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'file'; readonly url: string; readonly mediaType: string }
  | { readonly type: 'source-url'; readonly sourceId: string; readonly url: string; readonly title?: string }
  | { readonly type: 'steering-message'; readonly id: string; readonly parts: readonly UiInputPart[] }
  | { readonly type: `data-${string}`; readonly id?: string; readonly data: unknown; readonly transient?: true }
  | { readonly type: 'message-metadata'; readonly messageMetadata: unknown }
  | { readonly type: 'finish'; readonly finishReason: UiFinishReason }
  | { readonly type: 'abort'; readonly reason?: string }
  | { readonly type: 'error'; readonly errorText: string }

export type UiFinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'interrupted' | 'other'

/** Headers of a UI message stream, in addition to those of server-sent events. */
export const UI_STREAM_HEADERS = { 'x-vercel-ai-ui-message-stream': 'v1' } as const

/** A chunk as server-sent event. */
export function encodeUiChunk(chunk: UiChunk): string {
  return `data: ${JSON.stringify(chunk)}\n\n`
}

/** The last line of a stream. */
export const UI_STREAM_END = 'data: [DONE]\n\n'

/** Options of AI SDK UI message streams. */
export interface UiStreamOptions extends ProjectionOptions {
  /** The version of the AI SDK on the page. Default 7. */
  readonly dialect?: Dialect | undefined
  /** In the metadata of the message. */
  readonly threadId?: string | undefined
  /** Arguments of calls as they arrive, or when the call starts. Default: `stream` for dialect 7, `whole` for 5 and 6. */
  readonly toolInputs?: 'stream' | 'whole' | undefined
  /** Tools that the page knows by name: their parts are `tool-<name>`, others are `dynamic-tool`. Default: none. */
  readonly staticTools?: readonly string[] | undefined
  /** Titles of tools by name. */
  readonly titles?: Readonly<Record<string, string>> | undefined
  /** Results as whole envelopes. Default false: their content. */
  readonly envelopes?: boolean | undefined
  /** The model, the tokens and the cost of the run, in the metadata of the message. Default false. */
  readonly usage?: boolean | undefined
  /** The text of a structured answer as text too. Default false: as `data-output` alone. */
  readonly outputText?: boolean | undefined
  /**
   * Child runs as a data part with their status, or not at all. `message`: also the message of a child run, at most twice a second, as
   * preliminary output of the call that waits for it, until the call pauses or ends. Default `status`.
   */
  readonly children?: 'status' | 'message' | 'none' | undefined
}

/** True if arguments are sent when their call starts. */
export function hasWholeInputs({ dialect = 7, toolInputs }: UiStreamOptions): boolean {
  return (toolInputs ?? (dialect === 7 ? 'stream' : 'whole')) === 'whole'
}
